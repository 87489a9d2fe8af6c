import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { accessEvent } from './access.ts'
import type { CompiledSet, Version } from './compile.ts'
import { eachEvent } from './scratch-store.ts'
import {
  insertChanges,
  type StoredCustomer,
  selectStates,
  upsertStates,
  writeDue,
  writeMemberships,
} from './state-store.ts'
import { type Cause, type Closed, close, type Opened, open, recount, type Visit } from './visit.ts'

/** A customer entered or left a segment. Each is handed on once, in the transaction that makes it true. */
export interface Transition {
  /** As the Workspace API knows it. */
  segmentId: string
  customerId: string
  edge: 'entered' | 'left'
  cause: Cause
  /** Of the lane. */
  pos: bigint
  /** Unix milliseconds. */
  at: number
}

export interface Moment {
  /** Unix milliseconds. */
  now: number
  /** Pending versions know every customer up to this one. */
  walkedTo: string | null
  /** The position for what no event of a slice led to. */
  position: () => Promise<bigint>
}

/** Looks at customers under the lane's row, and writes what follows, in a fixed number of statements. */
export async function processVisits(
  tx: Tx,
  scope: Scope,
  set: CompiledSet,
  visits: readonly Visit[],
  moment: Moment,
): Promise<Transition[]> {
  const found = await find(tx, scope, set, visits)
  const opened: Opened[] = []
  for (const { visit, stored } of found) opened.push(open(set, visit, stored, moment))
  await countAgain(tx, scope, set, opened)
  return write(
    tx,
    scope,
    opened.map((visit) => close(set, visit)),
    moment,
  )
}

/** Each visit with the customer it is to; those of merged customers join their survivor's. */
async function find(tx: Tx, scope: Scope, set: CompiledSet, visits: readonly Visit[]) {
  let waiting = new Map<string, Visit>()
  for (const visit of visits) join(waiting, visit)
  const found = new Map<string, { visit: Visit; stored: StoredCustomer }>()
  while (waiting.size > 0) {
    const asked = new Map([...waiting].map(([id, visit]) => [id, needsProperties(set, visit)]))
    const stored = await selectStates(tx, scope, asked, { newWhole: set.byProperty.size > 0 })
    const survivors = new Map<string, Visit>()
    for (const [id, visit] of waiting) {
      const customer = stored.get(id)
      if (!customer) continue
      if (customer.mergedInto === null) found.set(id, { visit, stored: customer })
      else {
        const survivor = customer.mergedInto
        const there = found.get(survivor)?.visit ?? waiting.get(survivor)
        if (there) into(there, visit)
        else join(survivors, { ...visit, customerId: survivor })
      }
    }
    waiting = survivors
  }
  return found.values()
}

function needsProperties(set: CompiledSet, { whole, recount: again, keys }: Visit): boolean {
  return set.byProperty.size > 0 && (whole || again || set.hasPending || keys.size > 0)
}

function join(visits: Map<string, Visit>, visit: Visit): void {
  const there = visits.get(visit.customerId)
  if (there) into(there, visit)
  else visits.set(visit.customerId, visit)
}

function into(there: Visit, { events, keys, whole, recount: again, cause, pos }: Visit): void {
  there.events.push(...events)
  for (const key of keys) there.keys.add(key)
  there.whole ||= whole
  there.recount ||= again
  if (cause === 'merge' || there.cause === 'timer') there.cause = cause
  if (pos !== null && (there.pos === null || pos > there.pos)) there.pos = pos
}

/** Counts stored events for what has to be counted again. */
export async function countAgain(tx: Tx, scope: Scope, set: CompiledSet, opened: readonly Opened[]): Promise<void> {
  const again = new Map(
    opened.filter(({ recounted }) => recounted.size > 0).map((visit) => [visit.visit.customerId, visit]),
  )
  if (again.size === 0) return
  const names = new Set<string>()
  for (const { recounted } of again.values()) for (const version of recounted) addNames(names, version)
  await eachEvent(tx, scope, { customerIds: [...again.keys()], names: [...names] }, (customerId, event) => {
    const visit = again.get(customerId)
    if (visit) recount(set, visit, event)
  })
}

function addNames(names: Set<string>, { leaves }: Version): void {
  for (const { leaf } of leaves) {
    if ('event' in leaf) names.add(leaf.event)
    else if (leaf.kind === 'feature') names.add(accessEvent)
  }
}

async function write(tx: Tx, scope: Scope, closed: readonly Closed[], moment: Moment): Promise<Transition[]> {
  const customer = ({ opened }: Closed) => opened.visit.customerId
  await upsertStates(
    tx,
    scope,
    closed.flatMap((visit) => (visit.text === null ? [] : [{ customerId: customer(visit), text: visit.text }])),
  )
  await writeDue(
    tx,
    scope,
    closed.flatMap((visit) => (visit.due === null ? [] : [{ customerId: customer(visit), at: visit.due.at }])),
  )
  await writeMemberships(
    tx,
    scope,
    closed.flatMap((visit) =>
      visit.memberships.map(({ version, since }) => ({
        ...{ versionId: version.id, customerId: customer(visit), since },
        told: visit.opened.state.told.has(version.segmentId),
      })),
    ),
  )
  return writeTransitions(tx, scope, closed, moment)
}

async function writeTransitions(
  tx: Tx,
  scope: Scope,
  closed: readonly Closed[],
  moment: Moment,
): Promise<Transition[]> {
  const told = closed.filter(({ edges }) => edges.length > 0)
  if (told.length === 0) return []
  const other = told.some(({ opened }) => opened.visit.pos === null) ? await moment.position() : 0n
  const changes = told.flatMap(({ opened: { visit, state }, edges }) =>
    edges.map(({ version, edge }) => ({
      ...{ pos: visit.pos ?? other, segmentId: version.segmentId, publicId: version.publicId },
      ...{ customerId: visit.customerId, edge, cause: visit.cause, at: state.now },
    })),
  )
  changes.sort((a, b) => Number(a.pos - b.pos))
  await insertChanges(tx, scope, changes)
  return changes.map(({ publicId, customerId, edge, cause, pos, at }) => ({
    segmentId: publicId,
    customerId,
    edge,
    cause,
    pos,
    at,
  }))
}
