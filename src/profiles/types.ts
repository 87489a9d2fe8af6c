import type { Catalogue, WholeStanding } from '../entitlements/index.ts'
import type { JsonObject } from '../events/index.ts'
import type { Assignment, Delivery } from '../experiences/index.ts'
import type { WireNames } from '../kernel/wire-names.ts'
import type { AppScope } from '../tenancy/index.ts'

/** Unix milliseconds. */
export type Ms = number

/** The last time that a customer entered or left a segment. */
export interface Edge {
  edge: 'entered' | 'left'
  /** Something happened to the customer; otherwise a definition changed or history was imported. */
  isEvent: boolean
  at: Ms
}

/** What the frequency of an Experience counts. */
export interface Counted {
  count: number
  /** The newest of the counted. */
  times: readonly Ms[]
}

/** A run that has not ended. */
export interface OpenJourney {
  id: string
  appId: string
  experienceRowId: number
  versionNumber: number
  status: string
  generation: number
  /** The leg that is offered or runs. */
  sectionKey: string | null
  held: boolean
  context: { event: JsonObject; responses: JsonObject }
  conversion: Conversion
}

/** How far a journey's goal was met. */
export interface Conversion {
  startedAt: Ms
  revision: number
  basis?: { eventId: string; occurredAt: Ms }
  conversion?: { eventId: string; occurredAt: Ms }
}

/** Everything about one customer that a profile is made of, as of one instant. */
export interface Person extends WholeStanding {
  /** The record that the first event of an id without one will make; absent until it was foreseen. */
  birthId?: string
  /** Of the catalogue, at that instant. */
  revision: bigint
  /** The customer's number: it moves with what the other members hold. */
  rev: bigint
  properties: JsonObject
  /** Since when, by version of a segment; those it is not in are left out. */
  members: ReadonlyMap<number, Ms>
  /** By number of the segment. */
  edges: ReadonlyMap<number, Edge>
  /** Segments whose memberships were looked up. */
  segments: ReadonlySet<string>
  /** By number of the Experience; never enrolled: not there. */
  enrolments: ReadonlyMap<number, Counted>
  journeys: readonly OpenJourney[]
  /** Since when all journeys of the customer rest; null: they don't. */
  pausedAt: Ms | null
  /** By number of the experiment and phase. */
  assignments: ReadonlyMap<string, Assignment>
}

/** What all profiles of a scope are made of: read once for each revision of the catalogue. */
export interface Ground {
  catalogue: Catalogue
  delivery: Delivery
}

export interface Wire {
  names: WireNames
  renderBaseUrl: string
  assetBaseUrl: string
}

export interface ProfileInput extends Ground {
  wire: Wire
  app: Pick<AppScope, 'appId' | 'platform'>
  person: Person
  locale: string | null
}
