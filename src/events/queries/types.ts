import type { Scope } from '../../tenancy/index.ts'
import type { Filter } from '../conditions/filter.ts'
import type { Freshness } from '../freshness.ts'

/** A condition on a property of the event, or of the customer as they are now. */
export type PropertyFilter = Filter & { scope: 'event' | 'customer' }

/** Whether the customer is in a segment now. */
export interface MembershipFilter {
  scope: 'membership'
  segment: string
  is: boolean
}

export type QueryFilter = PropertyFilter | MembershipFilter

export type Measure =
  | { type: 'count' | 'unique_customers' }
  /** Of a property, or without one of the event's own `value`. */
  | { type: 'sum' | 'avg' | 'min' | 'max' | 'p50' | 'p90' | 'p95'; property: string | null }

export interface Series {
  event: string
  measure: Measure
  filters: QueryFilter[]
}

export interface GroupBy {
  scope: 'event' | 'customer'
  property: string
  limit: number
}

export type Interval = 'hour' | 'day' | 'week' | 'month'

/** Half-open, Unix milliseconds. Days, weeks and months are those of the IANA zone. */
export interface TimeRange {
  start: number
  end: number
  zone: string
}

interface AnyQuery {
  appId: string | null
  range: TimeRange
  filters: QueryFilter[]
}

export interface TrendQuery extends AnyQuery {
  type: 'trend' | 'count'
  /** Null: one number for the whole range. */
  interval: Interval | null
  series: Series[]
  groupBy: GroupBy[]
}

export interface Step {
  event: string
  filters: QueryFilter[]
}

export interface FunnelQuery extends AnyQuery {
  type: 'funnel'
  steps: Step[]
  windowMs: number
  order: 'ordered' | 'strict'
  start: 'first' | 'any'
}

export interface RetentionQuery extends AnyQuery {
  type: 'retention'
  startEvent: Step
  returnEvent: Step
  period: 'day' | 'week' | 'month'
  periods: number
  mode: 'first' | 'every'
}

export type EventQuery = TrendQuery | FunnelQuery | RetentionQuery

/** One line of a trend: its total and a value for each bucket. Null where there is nothing to speak of. */
export interface Line {
  total: number | null
  values: (number | null)[]
}

export interface TrendSeries {
  event: string
  measure: string
  /** Events whose property is no number; they are left out. */
  nonNumeric: number
  groups: (Line & { key: Record<string, unknown> })[]
  /** All groups that are not shown, together. Null when all are shown. */
  other: Line | null
}

export interface FunnelStep {
  event: string
  count: number
  /** Seconds from the step before. Null for the first step and where nobody came so far. */
  medianSeconds: number | null
}

export interface Cohort {
  /** Where its period begins. */
  at: number
  size: number
  /** Of the periods after its own, as far as the range goes. */
  returning: number[]
}

export type EventAnswer = { engine: 'postgres' | 'rollup' } & (
  | { type: 'trend' | 'count'; times: number[]; series: TrendSeries[] }
  | { type: 'funnel'; steps: FunnelStep[] }
  | { type: 'retention'; cohorts: Cohort[] }
)

export type EventQueryResult = EventAnswer & { freshness: Freshness; elapsedMs: number }

export interface QueryOptions {
  /** Its caller comes back for the answer: it has a minute, and keeps nobody waiting whose caller stays. */
  isLater?: boolean
  /** From now to its answer; the usual time when absent. */
  msMax?: number
  /** Aborted when nobody waits for the answer any more. */
  signal?: AbortSignal
}

/** What answers queries. The same rows give the same answers, whichever driver does. */
export interface AnalyticsStore {
  /**
   * Throws 503 `query_timeout` when it takes too long, and when `signal` ends it; 503 `service_unavailable` when most of its
   * time or all of it went by before its turn came.
   */
  query: (scope: Scope, query: EventQuery, options?: QueryOptions) => Promise<EventQueryResult>
  /** Runs what else reads many events, in the turn of a question. Throws 503 `service_unavailable` when that does not come in time. */
  inTurn: <T>(work: () => Promise<T>) => Promise<T>
}
