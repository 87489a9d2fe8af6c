import { type Tx, together } from '../../db/pool.ts'
import type { Consumer, LaneEvent } from '../../events/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { segmentPartCustomers, segmentStepCustomers } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { directivesOf } from '../directives.ts'
import { accessEvent } from './access.ts'
import type { CompiledSet } from './compile.ts'
import { type SegmentLog, tellProblems } from './problems.ts'
import { processVisits, type Transition } from './process.ts'
import { setOf } from './set-store.ts'
import { type Header, selectHeader } from './state-store.ts'
import type { Cause, Visit } from './visit.ts'

/** Told of a slice together with the memberships that it changed; of a step between slices with the changes alone. */
export type MembershipConsumer = (tx: Tx, scope: Scope, slice: LaneEvent[], transitions: Transition[]) => Promise<void>

/** Keeps memberships inside the lane's transaction, after properties, and hands slices and changes on. */
export function createSegmentConsumer(
  clock: Clock,
  consumers: readonly MembershipConsumer[],
  log: SegmentLog,
): Consumer {
  return async (tx, scope, slice) => {
    const header = await selectHeader(tx, scope, { dueBy: null, limit: segmentStepCustomers })
    const transitions = header ? await look(tx, scope, header, { slice, now: clock.now(), log }) : []
    for (const consumer of consumers) await consumer(tx, scope, slice, transitions)
  }
}

async function look(
  tx: Tx,
  scope: Scope,
  header: Header,
  { slice, now, log }: { slice: LaneEvent[]; now: number; log: SegmentLog },
): Promise<Transition[]> {
  const set = await setOf(tx, scope, header.revision)
  const visits = [...visitsOf(set, slice).values(), ...marksOf(header, slice).map(visitOfMark)]
  if (visits.length === 0) return []
  const last = slice.at(-1)?.pos ?? 0n
  // Whatever merges customers marks them.
  const areCurrent = header.marked.length === 0
  const moment = { now, walkedTo: header.walkedTo, position: async () => last, areCurrent }
  const parts = areCurrent && !set.hasPending ? partsOf(visits) : [visits]
  const processed = await together(parts.map((part) => processVisits(tx, scope, set, part, moment)))
  for (const one of processed) tellProblems(log, scope, one)
  return processed.flatMap(({ transitions }) => transitions).sort((a, b) => Number(a.pos - b.pos))
}

/**
 * Customers who have nothing to do with one another, in parts: while some are computed here, PostgreSQL reads and writes others.
 * In the order of their ids, in which whoever writes several of them locks them.
 */
function partsOf(visits: readonly Visit[]): Visit[][] {
  const sorted = visits.toSorted((a, b) => (a.customerId < b.customerId ? -1 : 1))
  const parts: Visit[][] = []
  for (let at = 0; at < sorted.length; at += segmentPartCustomers)
    parts.push(sorted.slice(at, at + segmentPartCustomers))
  return parts
}

/** Those of the slice's own customers, such as a merge it has made: others are a step's, which no event is blamed for. */
function marksOf({ marked }: Header, slice: readonly LaneEvent[]): Header['marked'] {
  if (marked.length === 0) return []
  const own = new Set(slice.map(({ customerId }) => customerId))
  return marked.filter(({ customerId, cause }) => own.has(customerId) && cause !== 'recount' && cause !== 'count')
}

/** Customers that an event of the slice may have moved, each once. */
export function visitsOf(set: CompiledSet, slice: readonly LaneEvent[]): Map<string, Visit> {
  const visits = new Map<string, Visit>()
  for (const event of slice) {
    const counts = set.byEvent.has(event.name) || (event.name === accessEvent && set.features.size > 0)
    const keys = set.byProperty.size > 0 ? touchedKeys(set, event) : []
    if (!counts && keys.length === 0 && !set.holdsOnNothing) continue
    const visit = visitTo(visits, event)
    visit.pos = event.pos
    if (event.live) visit.cause = 'event'
    for (const key of keys) visit.keys.add(key)
    if (!counts) continue
    const { pos, name, at, receivedAt, payload, trust, recognised } = event
    const fact = trust === 'server' && recognised
    visit.events.push({
      name,
      at: Math.min(at, receivedAt),
      properties: payload.properties,
      fact,
      place: [at, `${pos}`],
    })
  }
  return visits
}

function visitTo(visits: Map<string, Visit>, { customerId, live, pos }: LaneEvent): Visit {
  const there = visits.get(customerId)
  if (there) return there
  const cause = live ? 'event' : 'historical'
  const visit: Visit = { customerId, events: [], keys: new Set(), whole: false, recount: false, cause, pos }
  visits.set(customerId, visit)
  return visit
}

function touchedKeys(set: CompiledSet, { payload }: LaneEvent): string[] {
  const directives = directivesOf(payload, [])
  if (!directives) return []
  const { setOnce, set: replaced, increment, unset } = directives
  return [...setOnce.keys(), ...replaced.keys(), ...increment.keys(), ...unset].filter((key) => set.byProperty.has(key))
}

/** A customer that something other than an event moved. `recount`: its events are counted again. */
export function visitOfMark({ customerId, cause }: { customerId: string; cause: string }): Visit {
  const recount = cause === 'recount'
  const told: Cause =
    cause === 'merge' || recount ? 'merge' : cause === 'event' || cause === 'timer' ? cause : 'backfill'
  return { customerId, events: [], keys: new Set(), whole: true, recount, cause: told, pos: null }
}
