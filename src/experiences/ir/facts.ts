import type { JsonObject } from '../../events/index.ts'
import { canonicalJson } from '../../kernel/canonical-json.ts'

/**
 * What a condition may look at, loaded beforehand. What is left out can't be served: a condition that reads it is unknown.
 * Each thing that is served is served whole, except memberships and history, which are served by what they hold.
 */
export interface IrFacts {
  nowMs: number
  /** All stored properties; a key that isn't there is null. */
  properties?: Readonly<JsonObject>
  /** The only keys served, as a device has only those that its releases declare. */
  propertyKeys?: ReadonlySet<string>
  /** By segment. One that isn't there can't be served. */
  memberships?: Readonly<Record<string, boolean>>
  /** By segment, since when the customer is a member, in Unix milliseconds. */
  memberSince?: Readonly<Record<string, number>>
  /** By Feature: all that the customer has access to. One that isn't there isn't had. */
  features?: Readonly<Record<string, FeatureFact>>
  /** By Feature, how the subscriptions stand that give it. One that isn't there never had any. */
  standings?: Readonly<Record<string, StandingFact>>
  /** The customer's subscriptions as one. */
  subscription?: StandingFact
  /** The event that is being judged. */
  event?: EventFact
  /** Answers given so far, by key; and by form and key. */
  responses?: Readonly<JsonObject>
  forms?: Readonly<Record<string, Readonly<JsonObject>>>
  journeyId?: string
  /** What questions about past events came to, by `historyKey` of the node. */
  history?: ReadonlyMap<string, boolean | number | null>
}

export interface FeatureFact {
  unlimited: boolean
  /** In units of the Feature; null when boolean or unlimited. */
  balance: number | null
}

export interface StandingFact {
  state: 'none' | 'trialing' | 'active' | 'expired'
  willRenew: boolean
}

export interface EventFact {
  name: string
  occurredAtMs: number
  distinctId: string
  properties: Readonly<JsonObject>
}

/** Unknown never matches, and its negation is unknown too. */
export type Truth = boolean | 'unknown'

/** By what `IrFacts.history` is looked up: equal nodes are one question. */
export function historyKey(node: unknown): string {
  return canonicalJson(node)
}
