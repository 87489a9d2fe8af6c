import type { Pool, Tx } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'

/** JSON as parsed; objects may have any own key, `__proto__` included: read them with Object.keys and Object.hasOwn only. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

export interface Warning {
  code: string
  detail?: string
}

/** The fields that the answer to `/event` gives back as `payload`, after normalisation. Never the key. */
export interface KnownFields {
  event: string
  distinct_id: string
  /** Lower case. */
  uuid: string
  /** ISO 8601 UTC with milliseconds; receipt time when the event had none. */
  timestamp: string
  properties: JsonObject
  value?: number
  entityId?: string
  $anon_distinct_id?: Json
}

/** What stands in event_log.payload: the event after normalisation. */
export interface EventPayload extends KnownFields {
  /** Directives sent at the top level of the event; per key they win over those in `properties`. */
  $set?: JsonObject
  $set_once?: JsonObject
  $unset?: Json[]
  $increment?: JsonObject
  /** Unverified claim of the device. */
  journeyOrigin?: JsonObject
  trust: 'device' | 'server'
  /** Recorded by the service itself. Nothing that is sent can say so. */
  fact?: true
  warnings?: Warning[]
}

/** Who posted an event: the lane it belongs to, and the app it came from (null: a backend). */
export type Origin = Pick<Scope, 'scopeId'> & { appId: string | null }

/** The two queues of a lane: imports never delay live traffic. */
export type Stream = 'live' | 'historical'

/** An event after normalisation, ready for the log. */
export interface NewEvent {
  uuid: string
  distinctId: string
  /** Event time after clamping and time of receipt, in Unix milliseconds. */
  at: number
  receivedAt: number
  known: KnownFields
  /** `known` as JSON. */
  knownText: string
  /** The EventPayload as JSON. */
  text: string
}

/** An event taken from the log: accepted, not yet applied. */
export interface LoggedEvent {
  uuid: string
  distinctId: string
  appId: string | null
  /** Event time after clamping and time of receipt, in Unix milliseconds. */
  at: number
  receivedAt: number
  /** False for imports: their `$set` is newer-only and they start nothing. */
  live: boolean
  /** In the catalogue of system events, or not a `$` name at all. A fact's name is recognised only of a fact. */
  recognised: boolean
  payload: EventPayload
}

/** What the projection decided about one event. Dropped events leave no row and have no effect. */
export type EventOutcome =
  | {
      kind: 'applied'
      customerId: string
      merge: { status: 'merged' | 'refused' | 'same'; reason?: string } | null
      warnings: Warning[]
    }
  | { kind: 'dropped'; reason: 'customer_deleted' }

/** An applied event, as consumers see it, in `pos` order inside the lane transaction. */
export interface LaneEvent {
  pos: bigint
  uuid: string
  name: string
  customerId: string
  distinctId: string
  appId: string | null
  at: number
  receivedAt: number
  trust: 'device' | 'server'
  live: boolean
  recognised: boolean
  originClaim: JsonObject | null
  payload: EventPayload
}

/**
 * Identity and properties, handed to the lane by `main`: events knows no customer.
 * `load` reads and may throw `SliceTooLarge`, `decide` is pure, `write` throws `StaleSlice` when what was loaded has changed
 * meanwhile.
 */
export interface Projection<State, Decision extends { outcomes: EventOutcome[] }> {
  load(pool: Pool, scope: Scope, events: LoggedEvent[]): Promise<State>
  decide(scope: Scope, state: State, events: LoggedEvent[]): Decision
  /** `positions[i]` is the lane position of `events[i]`. */
  write(tx: Tx, scope: Scope, decision: Decision, positions: bigint[]): Promise<void>
}

/** `load` would take more memory than a slice may; the first `fits` of its events, at least one, would not. */
export class SliceTooLarge extends Error {
  readonly fits: number

  constructor(fits: number) {
    super(`only ${fits} events fit in memory`)
    this.fits = fits
  }
}

/** Something changed under the slice: roll back, load and decide again. */
export class StaleSlice extends Error {}

export type Consumer = (tx: Tx, scope: Scope, slice: LaneEvent[]) => Promise<void>

/** What this module says to the operator. */
export interface Log {
  warn: (fields: object, message: string) => void
  error: (fields: object, message: string) => void
}
