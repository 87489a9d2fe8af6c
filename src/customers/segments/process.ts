import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { accessEvent } from './access.ts'
import { type Aside, forgetAside, setAside } from './aside-store.ts'
import { blame } from './blame.ts'
import type { CompiledSet, Version } from './compile.ts'
import { type Budget, eachEvent, laneBudget } from './scratch-store.ts'
import {
  dropTimers,
  insertChanges,
  type StoredCustomer,
  selectStates,
  upsertStates,
  writeDue,
  writeMemberships,
} from './state-store.ts'
import { giveUpPending } from './steps-store.ts'
import { type Cause, type Closed, close, interrupt, type Opened, open, recount, type Visit } from './visit.ts'

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
  /** For counting stored events again; what is left is marked to be counted next. */
  budget?: Budget
  /** The visits are to customers of this slice, and it has merged none. */
  areCurrent?: boolean
}

/** What came of some visits. */
export interface Processed {
  transitions: Transition[]
  /** Customers that could not be looked at. */
  aside: Aside[]
  /** Definitions that could not be computed, by id of the version. */
  failed: number[]
  /** More is to be counted of some customers before all pending versions know them. */
  isCounting: boolean
}

/** A visit with the customer as it is stored. */
export interface Looked {
  visit: Visit
  stored: StoredCustomer
}

/**
 * Looks at customers under the lane's row, and writes what follows, in a fixed number of statements. A customer that cannot
 * be looked at is set aside and stops nobody else; a pending definition that is the cause is given up.
 */
export async function processVisits(
  tx: Tx,
  scope: Scope,
  set: CompiledSet,
  visits: readonly Visit[],
  moment: Moment,
): Promise<Processed> {
  const { found, gone } = await find(tx, scope, set, visits, moment)
  await dropTimers(tx, scope, gone)
  let { closed, failures } = await look(tx, scope, set, found, moment)
  const blamed = new Set<number>()
  const aside: Aside[] = []
  if (failures.length > 0) {
    const again = (of: CompiledSet, one: Looked) => look(tx, scope, of, [one], moment)
    for (const failure of failures) {
      const verdict = await blame(set, (of) => again(of, failure.looked))
      for (const id of verdict.versions) blamed.add(id)
      if (verdict.closed) closed = [...closed, verdict.closed]
      else aside.push({ customerId: failure.looked.visit.customerId, error: failure.error })
    }
  }
  const transitions = await write(tx, scope, closed, moment)
  const mended = closed.filter(({ opened }) => opened.visit.recount).map(({ opened }) => opened.visit.customerId)
  await forgetAside(tx, scope, mended)
  if (aside.length > 0) await setAside(tx, scope, aside, moment.now)
  const failed = blamed.size > 0 ? await giveUpPending(tx, scope, [...blamed]) : []
  return { transitions, aside, failed, isCounting: closed.some(({ opened }) => opened.again?.isWhole === false) }
}

export interface Looks {
  closed: Closed[]
  failures: { looked: Looked; error: unknown }[]
}

/** Everything that can be wrong about one customer, told apart customer by customer. */
async function look(tx: Tx, scope: Scope, set: CompiledSet, found: Iterable<Looked>, moment: Moment): Promise<Looks> {
  const opened = new Map<Opened, Looked>()
  const failures: Looks['failures'] = []
  for (const looked of found) {
    try {
      opened.set(open(set, looked.visit, looked.stored, moment), looked)
    } catch (error) {
      failures.push({ looked, error })
    }
  }
  await countAgain(tx, scope, set, [...opened.keys()], {
    budget: moment.budget ?? laneBudget,
    onFailure: (one, error) => {
      const looked = opened.get(one)
      if (looked) failures.push({ looked, error })
      opened.delete(one)
    },
  })
  const closed: Closed[] = []
  for (const [one, looked] of opened) {
    try {
      closed.push(close(set, one))
    } catch (error) {
      failures.push({ looked, error })
    }
  }
  return { closed, failures }
}

/** Each visit with the customer it is to; those of merged customers join their survivor's. */
async function find(
  tx: Tx,
  scope: Scope,
  set: CompiledSet,
  visits: readonly Visit[],
  { areCurrent = false }: Moment,
): Promise<{ found: Iterable<Looked>; gone: string[] }> {
  let waiting = new Map<string, Visit>()
  for (const visit of visits) join(waiting, visit)
  const found = new Map<string, Looked>()
  const gone: string[] = []
  while (waiting.size > 0) {
    const asked = new Map([...waiting].map(([id, visit]) => [id, needsProperties(set, visit)]))
    const stored = await selectStates(tx, scope, asked, { newWhole: set.byProperty.size > 0, areCurrent })
    const survivors = new Map<string, Visit>()
    for (const [id, visit] of waiting) {
      const customer = stored.get(id)
      // What rings for one that is no more would ring for ever.
      if (!customer || customer.mergedInto !== null) gone.push(id)
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
  return { found: found.values(), gone }
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

/** Counts stored events for what has to be counted again. Whoever has more of them than may be read is interrupted. */
export async function countAgain(
  tx: Tx,
  scope: Scope,
  set: CompiledSet,
  opened: readonly Opened[],
  { budget, onFailure }: { budget: Budget; onFailure?: (one: Opened, error: unknown) => void },
): Promise<void> {
  const again = new Map(opened.filter((one) => one.again !== null).map((one) => [one.visit.customerId, one]))
  if (again.size === 0) return
  const names = new Set<string>()
  for (const one of again.values()) for (const version of one.again?.versions ?? []) addNames(names, version)
  const whose = [...again].map(([customerId, one]) => ({ customerId, after: one.again?.counting.after ?? null }))
  const left = await eachEvent(tx, scope, { whose, names: [...names], budget }, (customerId, event) => {
    const one = again.get(customerId)
    if (!one) return
    try {
      recount(set, one, event)
    } catch (error) {
      if (!onFailure) throw error
      again.delete(customerId)
      onFailure(one, error)
    }
  })
  for (const [customerId, after] of left) {
    const one = again.get(customerId)
    if (one) interrupt(one, after)
  }
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
    closed.flatMap((visit) => (visit.due === null ? [] : [{ customerId: customer(visit), ...visit.due }])),
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
