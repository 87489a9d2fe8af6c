import type { EventOutcome, JsonObject } from '../events/index.ts'

/** One distinct id that names a customer. */
export interface Alias {
  customerId: string
  /** It was the target of an identify. */
  identified: boolean
}

/** A customer row, as loaded for a slice of events. */
export interface CustomerRecord {
  id: string
  /** JSON text of the properties and of their write times; null: left out, see SliceTooLarge. */
  properties: string | null
  times: string | null
  identified: boolean
  /** Unix milliseconds. */
  createdAt: number
  version: number
  generation: number
  /** How many distinct ids name it. */
  aliasCount: number
}

/** All that a decision about a slice looks at. */
export interface SliceState {
  /** Position of the lane before anything below was read. */
  pos: bigint
  /** By distinct id. */
  aliases: Map<string, Alias>
  /** By customer id, those that an event of the slice may read or change; no merged ones. */
  customers: Map<string, CustomerRecord>
  /** Distinct ids with a tombstone. */
  deleted: Set<string>
  /** What the customers of ids that name nobody will be born as. */
  births: Map<string, { customerId: string; generation: number }>
}

/** A customer row to insert, or to update if it still has `expectedVersion`. */
export interface CustomerWrite {
  id: string
  /** Null: unchanged. */
  properties: string | null
  times: string | null
  identified: boolean
  createdAt: number
  version: number
  expectedVersion: number
  generation: number
  aliasCount: number
  mergedInto: string | null
}

export interface AliasWrite {
  distinctId: string
  customerId: string
  identified: boolean
  /** Unix milliseconds; of new ones only. */
  firstSeenAt: number
  /** Whom it named before; null: it is new. */
  before: string | null
  /** The event of the slice that gave it to this customer; null: it was there before and only became identified. */
  event: number | null
}

/** A row of merge_journal. */
export interface JournalEntry {
  customerId: string
  sourceCustomerId: string | null
  sourceDistinctId: string
  targetDistinctId: string
  eventUuid: string | null
  event: number
  status: 'merged' | 'refused'
  reason: string | null
  /** Before-images and the ids that moved: what a split needs. */
  moved: JsonObject | null
  /** Index in `Decision.merges`, for two customers that became one. */
  merge: number | null
}

export interface MergedPair {
  sourceCustomerId: string
  targetCustomerId: string
}

/** Everything a slice of events does to customers, folded: one write for each row. */
export interface Decision {
  outcomes: EventOutcome[]
  births: CustomerWrite[]
  updates: CustomerWrite[]
  newAliases: AliasWrite[]
  movedAliases: AliasWrite[]
  /** Customers that became one, in the order it happened. */
  merges: MergedPair[]
  journal: JournalEntry[]
  /** What was looked at, to tell at the time of writing whether it still holds. */
  state: SliceState
}
