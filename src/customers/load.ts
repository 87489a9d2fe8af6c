import type pg from 'pg'
import { type LoggedEvent, SliceTooLarge, StaleSlice } from '../events/index.ts'
import { assert } from '../kernel/assert.ts'
import { customerGenerationsMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { customerIdFor } from './customer-id.ts'
import { hasDirectives } from './directives.ts'
import { anonymousIdOf, asksToIdentify } from './identify.ts'
import { namesOnePerson } from './identity.ts'
import { selectAliases, selectNames, selectTaken } from './load-store.ts'
import type { CustomerRecord, SliceState } from './slice.ts'

/** Reads what a slice of events will be applied to, in a fixed number of statements: one, and two more when ids are new. Throws SliceTooLarge. */
export async function loadSlice(
  client: pg.ClientBase,
  scope: Scope,
  events: LoggedEvent[],
  { tombstoneKey, force = false }: { tombstoneKey: Buffer; force?: boolean },
): Promise<SliceState> {
  const wanted = idsOf(events)
  const distinctIds = [...wanted.keys()]
  const names = await selectNames(client, scope, { tombstoneKey, distinctIds, whole: [...wanted.values()] })
  const state: SliceState = {
    pos: names[0]?.pos ?? 0n,
    aliases: new Map(),
    customers: new Map(),
    deleted: new Set(),
    births: new Map(),
  }
  const leftOut = new Set<string>()
  for (const [i, { alias, deleted }] of names.entries()) {
    const distinctId = distinctIds[i] ?? ''
    if (deleted) state.deleted.add(distinctId)
    if (alias === null) continue
    const { customerId, customer, identified } = alias
    state.aliases.set(distinctId, { customerId, identified })
    if (wanted.get(distinctId) !== true) continue
    assert(customer?.mergedInto === null, 'a merge moved all distinct ids of its source')
    if (customer.properties === null) leftOut.add(distinctId)
    state.customers.set(customerId, customer)
  }
  if (leftOut.size > 0)
    throw new SliceTooLarge(events.findIndex((event) => wholeIdsOf(event).some((id) => leftOut.has(id))))
  await loadOtherNames(client, scope, state, { events, force })
  const unknown = new Set(events.map(({ distinctId }) => distinctId).filter((id) => !state.aliases.has(id)))
  return { ...state, births: await foreseeBirths(client, scope, [...unknown]) }
}

/** The distinct ids of the slice, and whether more than the name of the customer behind them is needed. */
function idsOf(events: LoggedEvent[]): Map<string, boolean> {
  const wanted = new Map<string, boolean>()
  for (const event of events) {
    if (!wanted.has(event.distinctId)) wanted.set(event.distinctId, false)
    for (const id of wholeIdsOf(event)) wanted.set(id, true)
  }
  return wanted
}

/** Whose record the event may read or change. A ruling about two ids reads it too, whatever it says. */
function wholeIdsOf(event: LoggedEvent): string[] {
  const source = sourceIdOf(event)
  if (source !== null) return [event.distinctId, source]
  return asksToIdentify(event) || hasDirectives(event.payload) ? [event.distinctId] : []
}

/** The other id of an identify that may lead to a merge. */
function sourceIdOf(event: LoggedEvent): string | null {
  const id = asksToIdentify(event) ? anonymousIdOf(event) : undefined
  return id !== undefined && namesOnePerson(id) ? id : null
}

/**
 * A merge moves every distinct id of the source, so all of them must be known. An unidentified customer with more than one
 * is rare: ids are gathered by identifies, which identify it.
 */
async function loadOtherNames(
  client: pg.ClientBase,
  scope: Scope,
  state: SliceState,
  { events, force }: { events: LoggedEvent[]; force: boolean },
): Promise<void> {
  const sources = new Map<string, CustomerRecord>()
  for (const event of events) {
    const customerId = state.aliases.get(sourceIdOf(event) ?? '')?.customerId
    const customer = state.customers.get(customerId ?? '')
    if (customer && (force || !customer.identified) && customer.aliasCount > 1) sources.set(customer.id, customer)
  }
  if (sources.size === 0) return
  const aliases = await selectAliases(client, scope, [...sources.keys()])
  for (const { distinctId, customerId, identified } of aliases) {
    state.aliases.set(distinctId, { customerId, identified })
  }
  const counted = Map.groupBy(aliases, ({ customerId }) => customerId)
  for (const { id, aliasCount } of sources.values()) {
    if (counted.get(id)?.length !== aliasCount) throw new StaleSlice('a customer got or lost distinct ids meanwhile')
  }
}

/**
 * What the customers of ids that name nobody are born as: generation 0, unless the id gave birth before and was taken from
 * that customer since.
 */
export async function foreseeBirths(
  client: pg.ClientBase,
  scope: Scope,
  distinctIds: string[],
): Promise<SliceState['births']> {
  const births: SliceState['births'] = new Map()
  let unborn = distinctIds
  for (let generation = 0; unborn.length > 0; generation++) {
    assert(generation < customerGenerationsMax, 'a distinct id is not split from its customer this often')
    const born = unborn.map((distinctId) => ({ distinctId, customerId: customerIdFor(scope, distinctId, generation) }))
    const ids = born.map(({ customerId }) => customerId)
    const taken = await selectTaken(client, scope, ids)
    for (const { distinctId, customerId } of born) {
      if (!taken.has(customerId)) births.set(distinctId, { customerId, generation })
    }
    unborn = unborn.filter((distinctId) => !births.has(distinctId))
  }
  return births
}
