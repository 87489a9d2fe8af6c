import { type Pool, type Tx, together } from '../db/pool.ts'
import { assert, must } from '../kernel/assert.ts'
import { type Ahead, isFull, startAhead, takeAhead } from './ahead.ts'
import type { Noted } from './count-warnings.ts'
import { type Fresh, freshOf, type SeenBefore } from './dedupe.ts'
import { type EventRow, insertEvents, insertSeen } from './effects-store.ts'
import { eventRowOf, laneEventOf, warningsOf } from './event-row.ts'
import { type Cursor, cursorBehind, type HeldLane, type LogRow, moveCursor, readSlice } from './lane-store.ts'
import { ensureEventMonths, monthOf } from './partitions.ts'
import { isPoison, PoisonedSlice } from './poison.ts'
import {
  type Consumer,
  type EventOutcome,
  type LaneEvent,
  type LoggedEvent,
  type Projection,
  SliceTooLarge,
  type Stream,
  type Warning,
} from './types.ts'
import { insertWarnings } from './warning-store.ts'

export interface SliceWork<State, Decision extends { outcomes: EventOutcome[] }> {
  pool: Pool
  /** For what is read before the transaction. */
  reading: Pool
  projection: Projection<State, Decision>
  consumers: readonly Consumer[]
  /** Months whose partition of `event` is known to exist; filled here. */
  months: Set<number>
}

/**
 * `empty`: nothing to take. `unsafe`: rows are there whose place in the order is not final yet. `lost`: another worker has
 * the lane and nothing was written. `applied`: committed, and the lane's cursor now stands behind the slice.
 */
export type SliceResult =
  | { kind: 'empty' | 'unsafe' | 'lost' }
  | ({ kind: 'applied'; cursor: Cursor; ahead: Ahead | null } & SliceCounts)

export interface SliceOptions {
  /** Takes no more rows than this. */
  rowsMax?: number
  /** Given by the slice before this one. */
  ahead?: Ahead | null
  /** Whether the next slice may be read while this one is written, where this one is full. */
  readAhead?: boolean
}

export interface SliceCounts {
  /** Rows taken from the log; what was neither a duplicate nor dropped is applied. */
  read: number
  applied: number
  dropped: number
  duplicates: number
  /** Uuids that came again with another body. */
  differing: string[]
  refusedMerges: number
  /** Set aside because they cannot be applied. */
  dead: number
  /** When each applied event was received, in Unix milliseconds. */
  receivedAt: number[]
}

/**
 * Takes the next slice of one stream and applies it in one transaction: cursor, projection, seen keys, event rows and
 * consumers. All is read and decided before it, so that it is short. Throws `StaleSlice` when what was decided on has
 * changed meanwhile, `PoisonedSlice` when trying again will not help; then, and after any other error, nothing of the slice
 * has happened.
 */
export async function applySlice<State, Decision extends { outcomes: EventOutcome[] }>(
  work: SliceWork<State, Decision>,
  lane: HeldLane,
  stream: Stream,
  { rowsMax = Number.POSITIVE_INFINITY, ahead = null, readAhead = false }: SliceOptions = {},
): Promise<SliceResult> {
  const { rows, unsafe, seen } = (await takeAhead(ahead, lane, stream)) ?? {
    ...(await work.reading.connected((client) => readSlice(client, lane, stream))),
    seen: undefined,
  }
  if (rows.length === 0) return { kind: unsafe ? 'unsafe' : 'empty' }
  const taken = rows.slice(0, rowsMax)
  try {
    return await applyRows(work, lane, stream, { rows: taken, seen, readAhead: readAhead && isFull(taken) })
  } catch (error) {
    // Somebody may have dropped one.
    work.months.clear()
    throw isPoison(error) ? new PoisonedSlice(stream, taken, error) : error
  }
}

async function applyRows<State, Decision extends { outcomes: EventOutcome[] }>(
  work: SliceWork<State, Decision>,
  lane: HeldLane,
  stream: Stream,
  { rows, seen, readAhead }: { rows: readonly LogRow[]; seen: SeenBefore | undefined; readAhead: boolean },
): Promise<SliceResult> {
  const { pool, projection, consumers } = work
  const last = must(rows.at(-1), 'a slice has rows')
  const { fresh, duplicates, differing } = freshOf(rows, stream, seen)
  await ensureMonths(work, fresh)

  const events = fresh.map(({ event }) => event)
  // No state survives a commit in memory: it is loaded for each slice, and a slice of duplicates needs none.
  const state = events.length > 0 ? await loadWithin(work, lane, events) : null
  if (state?.kind === 'too_large') {
    const after = must(events[state.fits], 'a part of the slice fits')
    const end = rows.findIndex(({ uuid }) => uuid === after.uuid)
    return applyRows(work, lane, stream, { rows: rows.slice(0, end), seen, readAhead: false })
  }
  const decision = state && projection.decide(lane.scope, state.loaded, events)
  const outcomes = decision?.outcomes ?? []
  assert(outcomes.length === events.length, 'every event has an outcome')
  const applied = outcomes.filter(({ kind }) => kind === 'applied').length

  const cursor = cursorBehind(last)
  let ahead: Ahead | null = null
  const committed = await pool.transaction(async (tx) => {
    const before = await moveCursor(tx, lane, { stream, to: cursor, events: applied })
    if (before === null) return false
    const { positions, eventRows, laneEvents, noted } = place(fresh, outcomes, before)
    await together([
      ...writeEvents(tx, lane, stream, eventRows),
      ...(decision ? [projection.write(tx, lane.scope, decision, positions)] : []),
      ...insertWarnings(tx, lane.scope, [...noted, ...differing.map((event) => ({ event, warning: differs }))]),
    ])
    if (readAhead) ahead = startAhead(work.reading, lane, { stream, from: cursor, applied: eventRows })
    if (laneEvents.length > 0) for (const consumer of consumers) await consumer(tx, lane.scope, laneEvents)
    return true
  })
  if (!committed) return { kind: 'lost' }
  return {
    kind: 'applied',
    cursor,
    ahead,
    read: rows.length,
    applied,
    dropped: events.length - applied,
    duplicates,
    differing: differing.map(({ uuid }) => uuid),
    refusedMerges: outcomes.filter((outcome) => outcome.kind === 'applied' && outcome.merge?.status === 'refused')
      .length,
    dead: 0,
    receivedAt: events.flatMap(({ receivedAt }, i) => (outcomes[i]?.kind === 'applied' ? [receivedAt] : [])),
  }
}

const differs: Warning = { code: 'duplicate_body_differs' }

/** What the projection loads, or how many of the events it would hold in memory. */
async function loadWithin<State, Decision extends { outcomes: EventOutcome[] }>(
  { reading, projection }: SliceWork<State, Decision>,
  { scope }: HeldLane,
  events: LoggedEvent[],
): Promise<{ kind: 'loaded'; loaded: State } | { kind: 'too_large'; fits: number }> {
  try {
    return { kind: 'loaded', loaded: await projection.load(reading, scope, events) }
  } catch (error) {
    if (!(error instanceof SliceTooLarge)) throw error
    assert(error.fits > 0 && error.fits < events.length, 'one event always fits')
    return { kind: 'too_large', fits: error.fits }
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
  noted: Noted[]
}

/** Positions without gaps, in the order of the log. */
function place(fresh: readonly Fresh[], outcomes: readonly EventOutcome[], before: bigint): Placed {
  const placed: Placed = { positions: [], eventRows: [], laneEvents: [], noted: [] }
  let pos = before
  for (const [i, { event, bodyHash }] of fresh.entries()) {
    const outcome = outcomes[i]
    if (outcome?.kind === 'applied') {
      pos++
      const warnings = warningsOf(event, outcome)
      placed.eventRows.push(eventRowOf({ event, bodyHash, pos }, outcome, warnings))
      for (const warning of warnings) placed.noted.push({ event, warning })
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
