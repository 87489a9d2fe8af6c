import type { JsonObject } from '../events/index.ts'

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
