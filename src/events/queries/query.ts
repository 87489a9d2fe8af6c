import { type Pool, sqlState, type Tx } from '../../db/pool.ts'
import { must, unreachable } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Refusal, refuse } from '../../kernel/errors.ts'
import { createGate } from '../../kernel/gate.ts'
import { queryGroupsMax, queryLaterMsMax, queryMsMax, questionsWaitingMax } from '../../kernel/limits.ts'
import { retryAfterS } from '../../kernel/retry-after.ts'
import type { Scope } from '../../tenancy/index.ts'
import { bucketsOf } from './buckets.ts'
import { capacity } from './capacity.ts'
import { selectFunnel } from './funnel-store.ts'
import type { SegmentSource } from './membership-store.ts'
import { selectRetention } from './retention-store.ts'
import { slotMs } from './rollup.ts'
import { selectRollup } from './rollup-store.ts'
import { snapshot } from './snapshot.ts'
import type { Source } from './source-store.ts'
import { limitTime } from './store.ts'
import { seriesOf, tooLarge } from './trend.ts'
import { type Cells, measure } from './trend-store.ts'
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
  TrendSeries,
} from './types.ts'

export interface AnalyticsOptions {
  /** Connections of questions, for all that `atOnce` lets run. */
  pool: Pool
  /** Others, which no question keeps busy: for what slots answer, and to end a question that nobody waits for any more. */
  lookupPool: Pool
  /** Questions at once, and as many again of those that are answered later. */
  atOnce: number
  clock: Clock
  segments: SegmentSource
  /** Nobody waits for a turn from then on. */
  closed?: AbortSignal
}

/**
 * For connections that answer queries: large sorts and hashes in memory. What is over the time of a query is ended by each
 * query itself.
 */
export const querySettings = {
  statement_timeout: `${queryLaterMsMax}ms`,
  work_mem: '64MB',
  max_parallel_workers_per_gather: String(capacity.parallelWorkers),
}

/** For connections that list events: whatever is asked for, an index is read in its order until the page is full. */
export const listSettings = {
  statement_timeout: `${queryMsMax}ms`,
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
}

/**
 * Answers from PostgreSQL. One query sees one state of the events, however many statements it takes. A few run at once, the
 * others wait for their turn and not for a connection, which a pool gives up on too soon and to nobody in particular. What
 * slots answer alone takes milliseconds and waits for nobody.
 */
export function createAnalytics(options: AnalyticsOptions): AnalyticsStore {
  const { pool, lookupPool, atOnce, clock, segments, closed } = options
  const gate = () => createGate({ atOnce, waitingMax: questionsWaitingMax, ...(closed && { closed }) })
  const [now, later] = [gate(), gate()]
  return {
    async query(scope, query, { isLater = false, msMax = isLater ? queryLaterMsMax : queryMsMax, signal } = {}) {
      const startedAt = clock.now()
      const msLeft = () => msMax - (clock.now() - startedAt)
      const cancel = signal && { signal, by: lookupPool }
      const see = <T extends object | null>(on: Pool, read: (asking: Asking) => Promise<T>) =>
        snapshot(on, { scope, msMax: msLeft(), ...(cancel && { cancel }) }, async ({ tx, freshness, ...seen }) => {
          const { appId, range, filters } = query
          const source: Source = { scopeId: scope.scopeId, appId, range, filters, ...seen, segments }
          const answer = await read({ tx, scope, source, left: () => limitTime(tx, msLeft()) })
          return answer && { ...answer, freshness, elapsedMs: clock.now() - startedAt }
        })
      try {
        const slots = ofSlots(query)
        const found = slots && (await see(lookupPool, (asking) => trend(asking, slots, fromRollup)))
        if (found) return found
        const work = () => {
          const hasWaited = msLeft() < msMax / 2
          return see(pool, (asking) => answerOf(asking, query)).catch((error: unknown) => {
            throw hasWaited ? tooBusy(error) : error
          })
        }
        return await (isLater ? later : now)(work, { msMax: msLeft(), signal })
      } catch (error) {
        throw sqlState(error) === outOfRange ? tooLarge() : error
      }
    },
    inTurn: (work) => now(work, { msMax: queryMsMax }),
  }
}

/** What had no time left because others had it: asking for less would not help, coming again does. */
function tooBusy(error: unknown): unknown {
  const isLate = error instanceof Refusal && error.code === 'query_timeout'
  return isLate ? refuse('service_unavailable', { retryAfterS: retryAfterS(), cause: error }) : error
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

async function answerOf(asking: Asking, query: EventQuery): Promise<EventAnswer> {
  await refuseUnknown(asking.tx, asking.scope, { segments: asking.source.segments, query })
  switch (query.type) {
    case 'count':
    case 'trend':
      return must(await trend(asking, charted(query), fromAnything), 'rows answer everything')
    case 'funnel':
      return funnel(asking, query)
    case 'retention':
      return retention(asking, query)
    default:
      return unreachable(query)
  }
}

/** A trend, and the edges of its buckets. */
interface Charted {
  query: TrendQuery
  edges: readonly number[]
}

function charted(query: TrendQuery): Charted {
  const { range, interval } = query
  return { query, edges: interval === null ? [range.start, range.end] : bucketsOf(range, interval) }
}

/** Cells of one series, and what they were read from. Null where that doesn't tell. */
type Measured = (Cells & Pick<EventAnswer, 'engine'>) | null
type Measuring = (asking: Asking, charted: Charted, series: Series) => Promise<Measured>

/** Null when one of its series can't be told. */
async function trend(asking: Asking, asked: Charted, measuring: Measuring): Promise<EventAnswer | null> {
  const { query, edges } = asked
  const answered: TrendSeries[] = []
  let engine: EventAnswer['engine'] = 'rollup'
  for (const [i, series] of query.series.entries()) {
    if (i > 0) await asking.left()
    const measured = await measuring(asking, asked, series)
    if (!measured) return null
    if (measured.engine === 'postgres') engine = 'postgres'
    answered.push(seriesOf(series, query.groupBy, measured, edges.length - 1))
  }
  return { type: query.type, engine, times: query.interval === null ? [] : edges.slice(0, -1), series: answered }
}

async function fromAnything(asking: Asking, asked: Charted, series: Series): Promise<Measured> {
  const slots = await fromRollup(asking, asked, series)
  if (slots) return slots
  const {
    edges,
    query: { groupBy },
  } = asked
  const groupsMax = Math.min(
    groupBy.reduce((product, { limit }) => product * limit, 1),
    queryGroupsMax,
  )
  const cells = await measure(asking.tx, asking.source, { series, edges, groupBy, groupsMax })
  return { ...cells, engine: 'postgres' }
}

/** Null also when a slot keeps no sum. */
async function fromRollup({ tx, scope }: Asking, asked: Charted, series: Series): Promise<Measured> {
  const value = valueOfSlots(asked, series)
  if (value === null) return null
  const { appId, range } = asked.query
  const of = { event: series.event, appId, edges: asked.edges, start: range.start, end: range.end }
  const cells = await selectRollup(tx, scope, { ...of, value })
  return cells && { cells, keys: [], engine: 'rollup' }
}

/** Null unless slots are asked for nothing that they don't keep, in all series. */
function ofSlots(query: EventQuery): Charted | null {
  if (query.type !== 'trend' && query.type !== 'count') return null
  const asked = charted(query)
  return query.series.every((series) => valueOfSlots(asked, series) !== null) ? asked : null
}

/** Only where slots add up to exactly what the rows would: no filter, no group, and every edge between two slots. */
function valueOfSlots(
  { query: { range, filters, groupBy }, edges }: Charted,
  { measure: { type, ...of }, filters: own }: Series,
): 'count' | 'sum' | 'avg' | null {
  if (type !== 'count' && type !== 'sum' && type !== 'avg') return null
  if ('property' in of && of.property !== null) return null
  if (groupBy.length + filters.length + own.length > 0) return null
  return [range.start, range.end, ...edges].every((at) => at % slotMs === 0) ? type : null
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
