import { type Pool, sqlState } from '../db/pool.ts'
import { deadErrorCharsMax, laneStoppedMs } from '../kernel/limits.ts'
import { insertDeadEvent } from './dead-event-store.ts'
import { loggedEventOf } from './dedupe.ts'
import { type Cursor, cursorBehind, type HeldLane, type LogRow, moveCursor, stopLane } from './lane-store.ts'
import type { LoggedEvent, Stream } from './types.ts'
import { insertWarnings } from './warning-store.ts'

export interface Burial {
  stream: Stream
  row: LogRow
  error: unknown
  /** Why the lane has to stop with it; null: it goes on. */
  stop: string | null
}

/** Sets one event aside and moves the lane behind it, in one transaction. Null: the lane is lost, and nothing was written. */
export async function bury(pool: Pool, lane: HeldLane, { stream, row, error, stop }: Burial): Promise<Cursor | null> {
  const cursor = cursorBehind(row)
  const message = error instanceof Error ? error.message : String(error)
  const dead = { row, error: storable(message).slice(0, deadErrorCharsMax), errorCode: sqlState(error) ?? null }
  const warning = { code: 'event_dead_lettered', detail: dead.error }
  return pool.transaction(async (tx) => {
    if ((await moveCursor(tx, lane, { stream, to: cursor, events: 0 })) === null) return null
    await insertDeadEvent(tx, lane.scope, stream, dead)
    await Promise.all(insertWarnings(tx, lane.scope, [{ warning, event: shown(row, stream) }]))
    if (stop !== null) await stopLane(tx, lane, { why: stop, ms: laneStoppedMs })
    return cursor
  })
}

function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}

/** What can be said of it, also when its payload is what cannot be read. */
function shown(row: LogRow, stream: Stream): LoggedEvent {
  const { uuid, distinctId } = row
  const payload = { ...{ event: nameIn(row.text), distinct_id: distinctId, uuid }, ...nothingElse }
  return loggedEventOf(row, payload, stream)
}

const nothingElse = { timestamp: '', properties: {}, trust: 'device' } as const

function nameIn(text: string): string {
  try {
    const { event } = JSON.parse(text)
    return typeof event === 'string' ? storable(event) : 'unknown'
  } catch {
    return 'unknown'
  }
}
