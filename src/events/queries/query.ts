import { type Pool, sqlState, type Tx } from '../../db/pool.ts'
import { unreachable } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'
import { queryGroupsMax, queryLaterMsMax, queryMsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { bucketsOf } from './buckets.ts'
import { selectFunnel } from './funnel-store.ts'
import type { SegmentSource } from './membership-store.ts'
import { selectRetention } from './retention-store.ts'
import { slotMs } from './rollup.ts'
import { selectRollup } from './rollup-store.ts'
import { snapshot } from './snapshot.ts'
import type { Source } from './source-store.ts'
import { limitTime } from './store.ts'
import { seriesOf, tooLarge } from './trend.ts'
import { type Cell, measure } from './trend-store.ts'
import type {
  AnalyticsStore,
  Cohort,
  EventAnswer,
  EventQuery,
  FunnelQuery,
  FunnelStep,
  QueryFilter,
  RetentionQuery,
  Series,
  TrendQuery,
} from './types.ts'

export interface QueryOptions {
  /** Connections of their own: questions wait for one another, and nothing else waits for them. */
  pool: Pool
  /** Others, by which a question is ended that nobody waits for any more. */
  cancelPool: Pool
  clock: Clock
  segments: SegmentSource
}

/**
 * For connections that answer queries: large sorts and hashes in memory, and half a machine for one of them. What is over
 * the time of a query is ended by each query itself.
 */
export const querySettings = {
  statement_timeout: `${queryLaterMsMax}ms`,
  work_mem: '64MB',
  max_parallel_workers_per_gather: '2',
}

/** For connections that list events: whatever is asked for, an index is read in its order until the page is full. */
export const listSettings = {
  statement_timeout: `${queryMsMax}ms`,
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
}

/** Answers from PostgreSQL. One query sees one state of the events, however many statements it takes. */
export function createAnalytics({ pool, cancelPool, clock, segments }: QueryOptions): AnalyticsStore {
  return {
    async query(scope, query, { msMax = queryMsMax, signal } = {}) {
      const startedAt = clock.now()
      const cancel = signal && { signal, by: cancelPool }
      const work = snapshot(pool, { scope, msMax, ...(cancel && { cancel }) }, async ({ tx, freshness, ...seen }) => {
        const left = () => limitTime(tx, msMax - (clock.now() - startedAt))
        const { appId, range, filters } = query
        await refuseUnknown(tx, scope, { segments, query })
        const source: Source = { scopeId: scope.scopeId, appId, range, filters, ...seen, segments }
        const answer = await answerOf({ tx, scope, source, left }, query)
        return { ...answer, freshness, elapsedMs: clock.now() - startedAt }
      })
      return work.catch((error: unknown) => {
        throw sqlState(error) === outOfRange ? tooLarge() : error
      })
    },
  }
}

/** An unknown segment would be one without members, and its complement everybody. */
async function refuseUnknown(
  tx: Tx,
  scope: Scope,
  { segments, query }: { segments: SegmentSource; query: EventQuery },
): Promise<void> {
  const ids = filtersOf(query).flatMap((filter) => (filter.scope === 'membership' ? [filter.segment] : []))
  const [unknown] = ids.length === 0 ? [] : await segments.unknown(tx, scope, ids)
  if (unknown === undefined) return
  throw refuse('invalid_request', { param: 'filters', message: `${unknown} is no segment of this project` })
}

function filtersOf(query: EventQuery): QueryFilter[] {
  switch (query.type) {
    case 'funnel':
      return [...query.filters, ...query.steps.flatMap(({ filters }) => filters)]
    case 'retention':
      return [...query.filters, ...query.startEvent.filters, ...query.returnEvent.filters]
    case 'count':
    case 'trend':
      return [...query.filters, ...query.series.flatMap(({ filters }) => filters)]
  }
}

interface Asking {
  tx: Tx
  scope: Scope
  source: Source
  /** To be called before each further statement: they share the time of one. */
  left: () => Promise<void>
}

function answerOf(asking: Asking, query: EventQuery): Promise<EventAnswer> {
  switch (query.type) {
    case 'count':
    case 'trend':
      return trend(asking, query)
    case 'funnel':
      return funnel(asking, query)
    case 'retention':
      return retention(asking, query)
    default:
      return unreachable(query)
  }
}

async function trend(asking: Asking, query: TrendQuery): Promise<EventAnswer> {
  const { range, interval, groupBy } = query
  const edges = interval === null ? [range.start, range.end] : bucketsOf(range, interval)
  const groupsMax = Math.min(
    groupBy.reduce((product, { limit }) => product * limit, 1),
    queryGroupsMax,
  )
  const answered = []
  let rolledUp = true
  for (const [i, series] of query.series.entries()) {
    if (i > 0) await asking.left()
    const slots = await fromRollup(asking, query, series, edges)
    rolledUp &&= slots !== null
    const cells = slots
      ? { cells: slots, keys: [] }
      : await measure(asking.tx, asking.source, { series, edges, groupBy, groupsMax })
    answered.push(seriesOf(series, groupBy, cells, edges.length - 1))
  }
  return {
    type: query.type,
    engine: rolledUp ? 'rollup' : 'postgres',
    times: interval === null ? [] : edges.slice(0, -1),
    series: answered,
  }
}

/** Only where slots add up to exactly what the rows would: no filter, no group, and every edge between two slots. */
async function fromRollup(
  { tx, scope }: Asking,
  { range, filters, groupBy, appId }: TrendQuery,
  { event, measure: { type, ...of }, filters: own }: Series,
  edges: readonly number[],
): Promise<Cell[] | null> {
  if (type !== 'count' && type !== 'sum' && type !== 'avg') return null
  if ('property' in of && of.property !== null) return null
  if (groupBy.length + filters.length + own.length > 0) return null
  const { start, end } = range
  if (![start, end, ...edges].every((at) => at % slotMs === 0)) return null
  return selectRollup(tx, scope, { event, appId, edges, start, end, value: type })
}

async function funnel({ tx, source }: Asking, query: FunnelQuery): Promise<EventAnswer> {
  const reached = await selectFunnel(tx, source, query)
  const steps = query.steps.map(({ event }, i): FunnelStep => {
    const { count = 0, median = null } = reached[i] ?? {}
    return { event, count, medianSeconds: median === null ? null : Math.round(median * 1000) / 1000 }
  })
  return { type: 'funnel', engine: 'postgres', steps }
}

async function retention({ tx, source }: Asking, query: RetentionQuery): Promise<EventAnswer> {
  const edges = bucketsOf(query.range, query.period)
  const found = await selectRetention(tx, source, query, edges)
  const counts = new Map(found.map(({ bucket, later, count }) => [`${bucket} ${later}`, count]))
  const cohorts = edges.slice(0, -1).map((at, i): Cohort => {
    const periods = Math.min(query.periods, edges.length - 2 - i)
    return {
      at,
      size: counts.get(`${i + 1} 0`) ?? 0,
      returning: Array.from({ length: periods }, (_, n) => counts.get(`${i + 1} ${n + 1}`) ?? 0),
    }
  })
  return { type: 'retention', engine: 'postgres', cohorts }
}

const outOfRange = '22003'
