import Type from 'typebox'
import type { Pool } from '../../db/pool.ts'
import {
  type AnalyticsStore,
  answerLater,
  type EventQuery,
  type EventQueryResult,
  getLater,
  type Line,
  type Log,
  newQueryId,
  parseQuery,
  type QueryGuard,
  type QueryOptions,
} from '../../events/index.ts'
import { refuse } from '../../kernel/errors.ts'
import { closed, instant, nullable, nullableNumber, oneOf } from '../schema.ts'
import { instantOf } from './amount.ts'
import type { Endpoints } from './endpoint.ts'
import { freshnessFields, freshnessOf } from './event-object.ts'
import { byId, projectId } from './parts.ts'

export interface EventQueryServices {
  pool: Pool
  analytics: AnalyticsStore
  queryGuard: QueryGuard
  log: Log
}

const Values = { data: Type.Array(Type.Object({ time: instant, value: nullableNumber })), total: nullableNumber }

const Result = Type.Object(
  {
    object: Type.Literal('event_query_result'),
    id: Type.String(),
    type: Type.Optional(oneOf('count', 'trend', 'funnel', 'retention')),
    status: oneOf('running', 'completed', 'failed'),
    series: Type.Optional(
      Type.Array(
        Type.Object({
          event: Type.String(),
          measure: Type.String(),
          non_numeric: Type.Integer({ description: 'Events left out because their property is no number.' }),
          groups: Type.Array(Type.Object({ key: Type.Record(Type.String(), Type.Unknown()), ...Values })),
          other: nullable(Type.Object(Values)),
        }),
      ),
    ),
    steps: Type.Optional(
      Type.Array(
        Type.Object({
          event: Type.String(),
          count: Type.Integer(),
          conversion_from_previous: nullableNumber,
          conversion_from_start: nullableNumber,
          median_time_s: Type.Unsafe<number | null>({ ...nullableNumber, description: 'Since the step before.' }),
        }),
      ),
    ),
    cohorts: Type.Optional(
      Type.Array(
        Type.Object({
          time: instant,
          size: Type.Integer(),
          returning: Type.Array(
            Type.Object({ period: Type.Integer(), customers: Type.Integer(), rate: nullableNumber }),
          ),
        }),
      ),
    ),
    error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
    meta: Type.Optional(
      Type.Object({
        ...freshnessFields,
        engine: oneOf('postgres', 'rollup'),
        exact: Type.Literal(true),
        truncated: Type.Boolean({ description: 'Some groups are answered together, in `other`.' }),
        elapsed_ms: Type.Integer(),
      }),
    ),
  },
  { title: 'EventQueryResult' },
)

const tag = 'Events'
const filters =
  'Each `{scope: event or customer, property, op, value}` or `{scope: membership, segment, is}`; all must hold.'
const step = '`{event, filters?}`.'

/** Read by `parseQuery`, which says exactly what is wrong. */
const Body = closed(
  {
    project_id: projectId,
    type: Type.Unknown({ description: '`count`, `trend`, `funnel` or `retention`.' }),
    app_id: Type.Optional(Type.Unknown({ description: 'Only events of this app.' })),
    time_range: Type.Unknown({
      description:
        '`{start, end, timezone?}`: start included, end not, at most 400 days; an IANA zone, UTC when absent.',
    }),
    filters: Type.Optional(Type.Unknown({ description: filters })),
    interval: Type.Optional(Type.Unknown({ description: 'Of a trend: `hour`, `day`, `week` or `month`.' })),
    series: Type.Optional(
      Type.Unknown({
        description:
          'Of a count or trend, 1 to 10: `{event, measure: {type, property?}, filters?}`. Types: `count`, `unique_customers`, `sum`, `avg`, `min`, `max`, `p50`, `p90`, `p95`; without a property of the `value` of events.',
      }),
    ),
    group_by: Type.Optional(
      Type.Unknown({
        description: 'Of a count or trend, up to 3: `{scope: event or customer, property, limit?: 1 to 1000}`.',
      }),
    ),
    steps: Type.Optional(Type.Unknown({ description: `Of a funnel, 2 to 20, each ${step}` })),
    window: Type.Optional(
      Type.Unknown({ description: 'Of a funnel: `{value, unit: second, minute, hour, day or week}`.' }),
    ),
    order: Type.Optional(
      Type.Unknown({ description: 'Of a funnel: `ordered` (default), or `strict`: nothing between.' }),
    ),
    start: Type.Optional(
      Type.Unknown({ description: 'Of a funnel, required: `first` or `any` matching start of a customer.' }),
    ),
    count: Type.Optional(Type.Unknown({ description: 'Of a funnel: `unique_customers`.' })),
    start_event: Type.Optional(Type.Unknown({ description: `Of a retention: ${step}` })),
    return_event: Type.Optional(Type.Unknown({ description: `Of a retention: ${step}` })),
    period: Type.Optional(Type.Unknown({ description: 'Of a retention: `day`, `week` or `month`.' })),
    periods: Type.Optional(Type.Unknown({ description: 'Of a retention: 1 to 24.' })),
    mode: Type.Optional(Type.Unknown({ description: 'Of a retention: `first` (default) or `every` start.' })),
  },
  { title: 'EventQuery' },
)

export function eventQueries({ get, ask }: Endpoints, services: EventQueryServices): void {
  const { pool, analytics, queryGuard, log } = services

  ask(
    {
      path: '/event_queries',
      operationId: 'queryEvents',
      tag,
      summary: 'Ask a question about events',
      description:
        'Counts, trends, funnels and retention, exact and as fresh as `meta.as_of` says. 10 seconds at most, waiting for other questions included, 5 at a time and 240 a minute for each workspace. With `Prefer: respond-async` the answer is fetched later and may take a minute.',
      body: Body,
      answers: { 200: Result, 202: Result },
      errors: [404, 409, 429],
    },
    async (under, { body }) => {
      const { workspaceId } = under.caller
      queryGuard.take(workspaceId, ({ limit, remaining, resetS }) => {
        under.tell('ratelimit-limit', limit)
        under.tell('ratelimit-remaining', remaining)
        under.tell('ratelimit-reset', resetS)
      })
      const scope = under.scope(body.project_id)
      const query = parseQuery(body)
      const id = newQueryId()
      const answer = async (options: QueryOptions) => show(id, query, await analytics.query(scope, query, options))
      if (!prefersLater(under.header('prefer'))) {
        return { status: 200, body: await queryGuard.run(workspaceId, () => answer({ signal: under.gone })) }
      }
      under.tell('preference-applied', 'respond-async')
      const end = queryGuard.start(workspaceId)
      const work = () => answer({ isLater: true }).finally(end)
      await answerLater({ pool, log }, scope, id, work).catch((error: unknown) => {
        end()
        throw error
      })
      return { status: 202, body: { object: 'event_query_result', id, type: query.type, status: 'running' } }
    },
  )

  get(
    {
      path: '/event_queries/:id',
      operationId: 'getEventQuery',
      tag,
      summary: 'Get the answer of a query that was asked to respond later',
      description: 'For a day.',
      params: byId,
      answers: { 200: Result },
      errors: [404],
    },
    async (look, { params }) => {
      const found = await getLater(pool, look.scopes(), params.id)
      if (!found) throw refuse('not_found')
      if (found.result !== null) return JSON.parse(found.result) as unknown
      const { id, status, error } = found
      return { object: 'event_query_result', id, status, ...(error && { error }) }
    },
  )
}

function prefersLater(prefer: string | undefined): boolean {
  return prefer?.split(',').some((each) => each.trim().toLowerCase() === 'respond-async') ?? false
}

function show(id: string, { type }: EventQuery, result: EventQueryResult) {
  const isTruncated = 'series' in result && result.series.some(({ other }) => other !== null)
  return {
    object: 'event_query_result',
    ...{ id, type, status: 'completed' },
    ...shownAnswer(result),
    meta: {
      ...freshnessOf(result.freshness),
      ...{ engine: result.engine, exact: true, truncated: isTruncated, elapsed_ms: Math.round(result.elapsedMs) },
    },
  }
}

function shownAnswer(result: EventQueryResult) {
  switch (result.type) {
    case 'funnel':
      return {
        steps: result.steps.map(({ event, count, medianSeconds }, i) => ({
          ...{ event, count },
          conversion_from_previous: i === 0 ? null : share(count, result.steps[i - 1]?.count ?? 0),
          conversion_from_start: share(count, result.steps[0]?.count ?? 0),
          median_time_s: medianSeconds,
        })),
      }
    case 'retention':
      return {
        cohorts: result.cohorts.map(({ at, size, returning }) => ({
          time: instantOf(at),
          size,
          returning: returning.map((customers, i) => ({ period: i + 1, customers, rate: share(customers, size) })),
        })),
      }
    case 'count':
    case 'trend': {
      const times = result.times.map(instantOf)
      const line = ({ total, values }: Line) => ({
        total,
        data: times.map((time, i) => ({ time, value: values[i] ?? null })),
      })
      return {
        series: result.series.map(({ event, measure, nonNumeric, groups, other }) => ({
          ...{ event, measure, non_numeric: nonNumeric },
          groups: groups.map(({ key, ...of }) => ({ key, ...line(of) })),
          other: other && line(other),
        })),
      }
    }
  }
}

/** Null where there is nobody to be a share of. */
function share(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole
}
