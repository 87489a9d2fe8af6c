import type { Pool } from '../db/pool.ts'
import { sliceEventsMax } from '../kernel/limits.ts'
import type { SeenBefore } from './dedupe.ts'
import { type Cursor, type HeldLane, type LogRow, readSlice } from './lane-store.ts'
import type { Stream } from './types.ts'

/**
 * The next rows of a log that has many, read while the slice before them is written: PostgreSQL and this process work at the
 * same time. Rows only; customers are loaded when their slice is applied, after the commit of the one before.
 */
export interface Ahead {
  stream: Stream
  /** The place of the slice before: these rows are of use to whoever stands there still. */
  from: Cursor
  /** Null: they could not be read. */
  found: Promise<{ rows: LogRow[]; unsafe: boolean } | null>
  /** What the slice before has applied. Its keys were not there yet when the rows were read. */
  seen: SeenBefore
}

/** Most likely there are more: a slice that is not full was all there was. */
export function isFull(rows: readonly LogRow[]): boolean {
  return rows.length === sliceEventsMax
}

export function startAhead(
  reading: Pool,
  lane: HeldLane,
  { stream, from, applied }: { stream: Stream; from: Cursor; applied: readonly { uuid: string; bodyHash: bigint }[] },
): Ahead {
  const there = { ...lane, cursors: { ...lane.cursors, [stream]: from } }
  const found = reading.connected((client) => readSlice(client, there, stream)).catch(() => null)
  return { stream, from, found, seen: new Map(applied.map(({ uuid, bodyHash }) => [uuid, bodyHash])) }
}

/** Null when there are none, or none that are of use here: the very cursor they were read from has to be the lane's. */
export async function takeAhead(
  ahead: Ahead | null,
  { cursors }: HeldLane,
  stream: Stream,
): Promise<{ rows: LogRow[]; unsafe: boolean; seen: SeenBefore } | null> {
  if (ahead?.stream !== stream || ahead.from !== cursors[stream]) return null
  const found = await ahead.found
  return found && found.rows.length > 0 ? { ...found, seen: ahead.seen } : null
}
