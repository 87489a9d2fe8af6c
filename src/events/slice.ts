import { type Pool, sqlState, type Tx } from '../db/pool.ts'
import { assert } from '../kernel/assert.ts'
import { type Fresh, freshOf } from './dedupe.ts'
import { type EventRow, insertEvents, insertSeen } from './effects-store.ts'
import { eventRowOf, laneEventOf } from './event-row.ts'
import { type Cursor, type HeldLane, moveCursor, readSlice } from './lane-store.ts'
import { ensureEventMonths, monthOf } from './partitions.ts'
import type { Consumer, EventOutcome, LaneEvent, Projection, Stream } from './types.ts'

export interface SliceWork<State, Decision extends { outcomes: EventOutcome[] }> {
  pool: Pool
  projection: Projection<State, Decision>
  consumers: readonly Consumer[]
  /** Months whose partition of `event` is known to exist; filled here. */
  months: Set<number>
}

/**
 * `empty`: nothing to take. `unsafe`: rows are there whose place in the order is not final yet. `lost`: another worker has
 * the lane and nothing was written. `applied`: committed, and the lane's cursor now stands behind the slice.
 */
export type SliceResult = { kind: 'empty' | 'unsafe' | 'lost' } | ({ kind: 'applied'; cursor: Cursor } & SliceCounts)

export interface SliceCounts {
  /** Rows taken from the log; what was neither a duplicate nor dropped is applied. */
  read: number
  applied: number
  dropped: number
  duplicates: number
  /** Uuids that came again with another body. */
  differing: string[]
}

/**
 * Takes the next slice of one stream and applies it in one transaction: cursor, projection, seen keys, event rows and
 * consumers. All is read and decided before it, so that it is short. Throws `StaleSlice` when what was decided on has
 * changed meanwhile; then, and after any other error, nothing of the slice has happened.
 */
export async function applySlice<State, Decision extends { outcomes: EventOutcome[] }>(
  work: SliceWork<State, Decision>,
  lane: HeldLane,
  stream: Stream,
): Promise<SliceResult> {
  const { pool, projection, consumers } = work
  const { rows, unsafe } = await pool.connected((client) => readSlice(client, lane, stream))
  const last = rows.at(-1)
  if (!last) return { kind: unsafe ? 'unsafe' : 'empty' }
  const { fresh, duplicates, differing } = freshOf(rows, stream)
  await ensureMonths(work, fresh)

  const events = fresh.map(({ event }) => event)
  // No state survives a commit in memory: it is loaded for each slice, and a slice of duplicates needs none.
  const decision =
    events.length > 0 ? projection.decide(lane.scope, await projection.load(pool, lane.scope, events), events) : null
  const outcomes = decision?.outcomes ?? []
  assert(outcomes.length === events.length, 'every event has an outcome')
  const applied = outcomes.filter(({ kind }) => kind === 'applied').length

  const cursor = { gen: last.gen, xid: last.xid, seq: last.seq, loggedAt: last.loggedAt }
  const committed = await pool.transaction(async (tx) => {
    const before = await moveCursor(tx, lane, { stream, to: cursor, events: applied })
    if (before === null || !decision) return before !== null
    const { positions, eventRows, laneEvents } = place(fresh, outcomes, before)
    await together([...writeEvents(tx, lane, stream, eventRows), projection.write(tx, lane.scope, decision, positions)])
    if (laneEvents.length > 0) for (const consumer of consumers) await consumer(tx, lane.scope, laneEvents)
    return true
  })
  if (!committed) return { kind: 'lost' }
  return {
    kind: 'applied',
    cursor,
    read: rows.length,
    applied,
    dropped: events.length - applied,
    duplicates,
    differing,
  }
}

async function ensureMonths(
  { pool, months }: { pool: Pool; months: Set<number> },
  fresh: readonly Fresh[],
): Promise<void> {
  const missing = new Set<number>()
  for (const { event } of fresh) {
    const month = monthOf(event.receivedAt)
    if (!months.has(month)) missing.add(month)
  }
  if (missing.size === 0) return
  await ensureEventMonths(pool, missing)
  for (const month of missing) months.add(month)
}

interface Placed {
  /** Of each event; a dropped one takes none and shows that of the event before it. */
  positions: bigint[]
  eventRows: EventRow[]
  laneEvents: LaneEvent[]
}

/** Positions without gaps, in the order of the log. */
function place(fresh: readonly Fresh[], outcomes: readonly EventOutcome[], before: bigint): Placed {
  const placed: Placed = { positions: [], eventRows: [], laneEvents: [] }
  let pos = before
  for (const [i, { event, bodyHash }] of fresh.entries()) {
    const outcome = outcomes[i]
    if (outcome?.kind === 'applied') {
      pos++
      placed.eventRows.push(eventRowOf(event, bodyHash, pos, outcome))
      placed.laneEvents.push(laneEventOf(event, pos, outcome))
    }
    placed.positions.push(pos)
  }
  return placed
}

function writeEvents(tx: Tx, { scope }: HeldLane, stream: Stream, rows: readonly EventRow[]): Promise<void>[] {
  if (rows.length === 0) return []
  return [insertSeen(tx, scope, rows), insertEvents(tx, scope, rows, { historical: stream === 'historical' })]
}

/** Statements sent one behind the other. Of several errors the one that caused the others: not "transaction is aborted". */
async function together(writes: Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(writes)
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
  if (errors.length > 0) throw errors.find((error) => sqlState(error) !== '25P02') ?? errors[0]
}
