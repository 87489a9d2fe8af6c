import type { Tx } from '../db/pool.ts'
import type { Json, JsonObject } from '../events/index.ts'
import type { Scope } from '../tenancy/index.ts'

/** A customer as others see it. Instants are Unix milliseconds. */
export interface Customer {
  /** UUID; on the wire with the prefix `cus_`. */
  id: string
  /** By first appearance. */
  distinctIds: DistinctId[]
  identified: boolean
  properties: JsonObject
  createdAt: number
  updatedAt: number
  version: number
  /** The customer it went on as; null for everyone who is listed or found. */
  mergedInto: string | null
}

export interface DistinctId {
  distinctId: string
  /** It was the target of an identify. */
  identified: boolean
  firstSeenAt: number
}

/** Where a page of customers begins: after the one created then with this id, towards older ones. */
export interface CustomerCursor {
  createdAt: number
  id: string
}

/** One decision about identity: two customers or ids joined, or why they were not. */
export interface Merge {
  id: bigint
  /** Whom the target id named afterwards. */
  customerId: string
  sourceCustomerId: string | null
  sourceDistinctId: string
  targetDistinctId: string
  eventUuid: string | null
  position: bigint
  status: 'merged' | 'refused' | 'split'
  reason: string | null
  createdAt: number
}

/** Two customers that became one, by an event or by a command. */
export interface CustomerMerge {
  sourceCustomerId: string
  targetCustomerId: string
  /** Of the lane. */
  position: bigint
}

/** A merge taken back: the source is a customer of its own again. */
export interface CustomerSplit {
  sourceCustomerId: string
  targetCustomerId: string
  position: bigint
  /** When the merge was, in Unix milliseconds. */
  mergedAt: number
  /**
   * `join`: two records became one. `rename`: the source's record went on as the target's, whose id was new; what it had at
   * `mergedAt` was the source's. `add`: the source's id was new and nothing was its own.
   */
  how: 'join' | 'rename' | 'add'
  /** What `merge` gave for a `join`, else null. */
  moved: Json
}

/**
 * What another module keeps for customers, and moves in the transaction that merges or splits them. Participants run one
 * after the other in the order the roof lists them; customers and aliases are written before the first.
 */
export interface MergeParticipant {
  /** What its notes stand under in the merge journal: for ever. */
  name: string
  /** In order. Gives for each merge what its split needs: JSON, null when nothing moved. */
  merge: (tx: Tx, scope: Scope, merges: CustomerMerge[]) => Promise<Json[]>
  split: (tx: Tx, scope: Scope, split: CustomerSplit) => Promise<void>
  /** Ends what goes on by itself for a customer that is deleted; what is stored is erased afterwards. */
  delete?: (tx: Tx, scope: Scope, customerIds: string[]) => Promise<void>
}

/** A deleted customer: every record that it was, and every distinct id that named it. */
export interface Erasure {
  customerIds: string[]
  distinctIds: string[]
  /** Uuids of events, of anybody, that named one of the ids as the one to be joined. */
  mentions: string[]
}

/** Removes what another module stores of deleted customers, in slices. Repeating a slice, or all of them, changes nothing. */
export interface Eraser {
  name: string
  /** One slice, well below a second. True: nothing of them is left. */
  erase: (tx: Tx, scope: Scope, whom: Erasure) => Promise<boolean>
}
