import type { JsonObject } from '../../events/index.ts'
import type { Ms, Trust } from '../types.ts'

/** What the lane hands on. Bodies are JSON. */
export type InboxBody =
  | ({ kind: 'event' } & InboxEvent)
  /** A customer entered or left a segment. */
  | { kind: 'edge'; segmentId: string; edge: 'entered' | 'left'; at: Ms }
  /** Properties changed that an eligibility reads. */
  | { kind: 'touched' }

export interface InboxEvent {
  uuid: string
  name: string
  distinctId: string
  appId: string | null
  at: Ms
  receivedAt: Ms
  trust: Trust
  /** The service itself said it. */
  fact: boolean
  live: boolean
  /** What the device claims it comes of. */
  origin: JsonObject | null
  properties: JsonObject
}

export interface InboxRow {
  customerId: string
  pos: bigint
  n: number
  receivedAt: Ms
  body: InboxBody
}
