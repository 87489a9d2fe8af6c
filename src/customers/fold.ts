import type { Warning } from '../events/index.ts'
import { assert, must } from '../kernel/assert.ts'
import { type Draft, draftOf, newborn, propertiesOf, touch } from './draft.ts'
import { joinPropertySets } from './properties.ts'
import type { AliasWrite, JournalEntry, MergedPair, SliceState } from './slice.ts'

/** A slice on its way from what was loaded to what will be written. */
export interface Fold {
  state: SliceState
  drafts: Map<string, Draft>
  aliases: Map<string, AliasWrite>
  /** The known distinct ids of each customer. */
  names: Map<string, string[]>
  merges: MergedPair[]
  journal: JournalEntry[]
}

export function openFold(state: SliceState): Fold {
  const names = new Map<string, string[]>()
  for (const [distinctId, { customerId }] of state.aliases) {
    const known = names.get(customerId)
    if (known) known.push(distinctId)
    else names.set(customerId, [distinctId])
  }
  return { state, drafts: new Map(), aliases: new Map(), names, merges: [], journal: [] }
}

/** The id of the customer that a distinct id names at this point of the slice. */
export function customerIdOf(fold: Fold, distinctId: string): string | null {
  return (fold.aliases.get(distinctId) ?? fold.state.aliases.get(distinctId))?.customerId ?? null
}

/** The customer itself: for events that may read or change it, as only theirs are loaded. */
export function named(fold: Fold, distinctId: string): Draft | null {
  const customerId = customerIdOf(fold, distinctId)
  return customerId === null ? null : draftOfCustomer(fold, customerId)
}

function draftOfCustomer(fold: Fold, customerId: string): Draft {
  let draft = fold.drafts.get(customerId)
  if (draft === undefined) {
    draft = draftOf(
      must(fold.state.customers.get(customerId), 'the customer of an event that may change it was loaded'),
    )
    fold.drafts.set(customerId, draft)
  }
  return draft
}

/** The customer of an id that names nobody; `at` is in Unix milliseconds. */
export function birth(fold: Fold, { distinctId, at }: { distinctId: string; at: number }, event: number): Draft {
  const customer = newborn(must(fold.state.births.get(distinctId), 'the birth was foreseen'), at, event)
  fold.drafts.set(customer.id, customer)
  attach(fold, customer, distinctId, at, event)
  return customer
}

/** Gives the customer one more distinct id. */
export function attach(fold: Fold, customer: Draft, distinctId: string, firstSeenAt: number, event: number): void {
  const customerId = customer.id
  fold.aliases.set(distinctId, { distinctId, customerId, identified: false, firstSeenAt, before: null, event })
  namesOf(fold, customer.id).push(distinctId)
  customer.aliasCount++
  touch(customer, event)
}

/** Moves everything of `source` to `target`, which survives. Gives the distinct ids that moved. */
export function join(fold: Fold, source: Draft, target: Draft, event: number, warnings: Warning[]): string[] {
  const distinctIds = namesOf(fold, source.id)
  assert(distinctIds.length === source.aliasCount, 'all distinct ids of a merged customer are known')
  for (const distinctId of distinctIds) {
    const alias = aliasOf(fold, distinctId)
    fold.aliases.set(distinctId, { ...alias, customerId: target.id, event })
    namesOf(fold, target.id).push(distinctId)
  }
  target.properties = joinPropertySets(propertiesOf(source), propertiesOf(target), warnings)
  target.propertiesChanged = true
  target.createdAt = Math.min(source.createdAt, target.createdAt)
  target.aliasCount += source.aliasCount
  target.version = Math.max(source.version, target.version) + 1
  target.touchedBy = event
  source.mergedInto = target.id
  source.aliasCount = 0
  touch(source, event)
  fold.names.delete(source.id)
  fold.merges.push({ sourceCustomerId: source.id, targetCustomerId: target.id })
  return distinctIds
}

export function identifiedBy(fold: Fold, customer: Draft, distinctId: string, event: number): void {
  const alias = aliasOf(fold, distinctId)
  if (alias.identified && customer.identified) return
  fold.aliases.set(distinctId, { ...alias, identified: true })
  customer.identified = true
  touch(customer, event)
}

function aliasOf(fold: Fold, distinctId: string): AliasWrite {
  const decided = fold.aliases.get(distinctId)
  if (decided) return decided
  const { customerId, identified } = must(fold.state.aliases.get(distinctId), 'the distinct id is known')
  return { distinctId, customerId, identified, firstSeenAt: 0, before: customerId, event: null }
}

/** The distinct ids of a customer, as far as they were loaded. */
export function namesOf(fold: Fold, customerId: string): string[] {
  let names = fold.names.get(customerId)
  if (names === undefined) {
    names = []
    fold.names.set(customerId, names)
  }
  return names
}
