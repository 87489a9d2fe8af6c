import type { Platform } from '../tenancy/index.ts'

/** Epoch milliseconds: whole, far below 2^53. */
export type Ms = number
/** Units of a Feature; of a credit system: credits times 10^scale. Never a double. */
export type Units = bigint

export type FeatureType = 'boolean' | 'metered' | 'creditSystem'
export type CycleUnit = 'minute' | 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'semiAnnual' | 'year'

/** A published key; the type never changes. */
export interface Feature {
  id: number
  publicId: string
  key: string
  name: string
  type: FeatureType
  /** The platforms it applies to; null is all. */
  platforms: Platform[] | null
  /** Decimal places of a credit system, 0 for the others. */
  scale: number
}

/** One unit of the member Feature costs `credits / per` credits. */
export interface Cost {
  credits: bigint
  per: bigint
}

export interface Cycle {
  unit: CycleUnit
  count: number
  /** Start of period 0; every later start is counted from here, never from the one before. */
  anchor: Ms
}

export interface Rollover {
  /** Most units that the live rollover grants of one grant hold together; null is unbounded. */
  max: Units | null
  /** How many further periods the units live, at least 1; null is for ever. */
  periods: number | null
}

export type GrantOrigin = 'product' | 'purchase' | 'manual' | 'journey' | 'rollover'

/** The right to some units of one Feature from one source, over a time interval. */
export interface Grant {
  /** Negative while a rollover decided in this transaction has no row yet. */
  id: bigint
  accountId: bigint
  entityId: string | null
  origin: GrantOrigin
  /** The grant whose period left these units; null unless the origin is rollover. */
  rolledFrom: bigint | null
  /** 0 recurring, free or given; 1 purchased. */
  rank: number
  unlimited: boolean
  amount: Units
  remaining: Units
  effectiveAt: Ms
  /** Half-open: usable while now < expiresAt. */
  expiresAt: Ms | null
  /** A recurring grant does not refill at or after this. */
  paidUntil: Ms | null
  cycle: Cycle | null
  /** The period that `remaining` belongs to; refills of later periods are virtual until a consume writes them. */
  periodNo: bigint
  rollover: Rollover | null
  revokedAt: Ms | null
  createdAt: Ms
}

/** A customer's standing with one Feature: the lock, the clock, the version, the counters and the unsettled grants. */
export interface Account {
  id: bigint
  featureId: number
  /** Lifetime units used without an entity. */
  used: Units
  /** Lifetime units used, by entity. */
  entities: Map<string, { used: Units; registered: boolean }>
  grants: Grant[]
  /** Of attached Products, for entities that nobody registered; absent where no decision about an entity needs them. */
  offers?: EntityOffer[]
  lastAt: Ms
  version: bigint
}

/** What an attached Product gives each of the first `max` entities that use the Feature. */
export interface EntityOffer {
  id: bigint
  productId: string | null
  origin: GrantOrigin
  rank: number
  unlimited: boolean
  amount: Units
  interval: CycleUnit | null
  rollover: Rollover | null
  effectiveAt: Ms
  expiresAt: Ms | null
  /** No period begins from here on; null: as long as it has effect. */
  paidUntil: Ms | null
  max: number
  /** Entities that have a grant of it, registered ones included, ever. */
  taken: number
  /** Those of them that were asked about. */
  had: ReadonlySet<string>
}

/** What one decision looks at. */
export interface State {
  now: Ms
  feature: Feature
  /** The Feature applies to the caller's platform. */
  applies: boolean
  entity: string | null
  /** Absent when the customer has none. */
  own: Account | null
  /** The credit systems that contain the Feature and in which the customer has an account. */
  pools: PoolState[]
}

export interface PoolState {
  feature: Feature
  cost: Cost
  account: Account
}

export interface AccessDecision {
  code: 'feature_found' | 'feature_inapplicable' | 'customer_missing'
  allowed: boolean
  unlimited: boolean
  /** Units of the requested Feature, capped at 2^53 − 1; null when unlimited or boolean. */
  balance: number | null
}

export type UsageMode = 'consume' | 'set_usage'

export type UsageCode =
  | 'consumed'
  | 'insufficient_balance'
  | 'access_inactive'
  | 'feature_inapplicable'
  | 'feature_not_consumable'
  | 'customer_missing'

export interface UsageCommand {
  mode: UsageMode
  /** 1 to 2^53 − 1; in set_usage the cumulative total. */
  quantity: Units
}

export interface UsageDecision {
  accepted: boolean
  code: UsageCode
  balance: number | null
  unlimited: boolean
  /** A check for one unit would be allowed right after this decision. */
  active: boolean
}

/** One movement that a decision asks the store to write. `remaining` is the grant's after the movement. */
export type Change =
  | { kind: 'draw'; account: bigint; grant: bigint; period: bigint; delta: Units; remaining: Units }
  /**
   * What was left of `period` goes; its refill follows at once. `rolled` is what this settlement put into rollover
   * grants: at most what lapsed, or more when whole periods were missed, because each of them left its units too.
   * A lapse without refill is that of a rollover grant whose units a newer one takes over.
   */
  | { kind: 'lapse'; account: bigint; grant: bigint; period: bigint; delta: Units; remaining: Units; rolled: Units }
  /** The grant is full again and stands in `period`. Comes right after its lapse, which is there also when nothing was left. */
  | { kind: 'refill'; account: bigint; grant: bigint; period: bigint; delta: Units; remaining: Units }
  /**
   * A new grant made of what the periods before `period` left; (from, period) is unique. Its id is negative until the
   * store has numbered it, and no two such ids are equal in any account.
   */
  | { kind: 'rollover'; account: bigint; from: bigint; period: bigint; grant: Grant }
  /** The grant of an entity that takes a place in an offer by its first use. Numbered like that of a rollover. */
  | { kind: 'grant'; account: bigint; offer: bigint; grant: Grant }
  /** Ends the grant at `revokedAt`: what is unspent leaves now, or stays usable until a later instant (delta 0). */
  | {
      kind: 'revoke'
      account: bigint
      grant: bigint
      period: bigint
      delta: Units
      remaining: Units
      revokedAt: Ms
      /** Units of the period that were spent before; they stay spent. */
      uncollected: Units
    }
  /** Whoever sold it moved its end, and how long it refills. No units move. */
  | {
      kind: 'extend'
      account: bigint
      grant: bigint
      period: bigint
      delta: Units
      remaining: Units
      expiresAt: Ms | null
      paidUntil: Ms | null
    }
  /** A part was refunded: so much of it leaves, and what was spent before is uncollected by now. */
  | {
      kind: 'shrink'
      account: bigint
      grant: bigint
      period: bigint
      delta: Units
      remaining: Units
      /** With that of earlier refunds. */
      uncollected: Units
    }
  /** A refund was taken back: the grant lives on, with what refunds took from it. */
  | { kind: 'restore'; account: bigint; grant: bigint; period: bigint; delta: Units; remaining: Units }
  /** Units that an operation drew go back to the very grant. */
  | { kind: 'reverse'; account: bigint; grant: bigint; period: bigint; delta: Units; remaining: Units }
  /** The usage counter of the account (entity null) or of one entity, raised to `used`. */
  | { kind: 'used'; account: bigint; entity: string | null; used: Units }

export interface UsageOutcome {
  decision: UsageDecision
  /** In the order to write them; empty unless something was spent. */
  changes: readonly Change[]
}
