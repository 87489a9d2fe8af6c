import { type Issue, refuse } from '../../kernel/errors.ts'
import {
  eventNameCharsMax,
  queryBucketsMax,
  queryFiltersMax,
  queryGroupByMax,
  queryGroupsMax,
  queryPeriodsMax,
  queryPointsMax,
  queryRangeMsMax,
  querySeriesMax,
  queryStepsMax,
} from '../../kernel/limits.ts'
import { codePoints, isStorable } from '../../kernel/text.ts'
import { collector, fieldsOf, parseKey, parseOperator, type Report } from '../conditions/parse-filter.ts'
import { parseTimestamp } from '../timestamp.ts'
import { bucketsMax, isZone } from './buckets.ts'
import type {
  EventQuery,
  FunnelQuery,
  GroupBy,
  Interval,
  Measure,
  QueryFilter,
  RetentionQuery,
  Series,
  Step,
  TimeRange,
  TrendQuery,
} from './types.ts'

/** The body of a query as it is sent; unknown until it is read here. */
export type QueryBody = Record<string, unknown>

const issuesMax = 100
const dayMs = 86_400_000
/** Between these all zones have whole minutes, or PostgreSQL and JavaScript agree about what they have. */
const firstInstant = Date.UTC(1900, 0)
const lastInstant = Date.UTC(9000, 0)

const common = ['type', 'project_id', 'app_id', 'time_range', 'filters'] as const
const fields = {
  count: [...common, 'series', 'group_by'],
  trend: [...common, 'series', 'group_by', 'interval'],
  funnel: [...common, 'steps', 'window', 'order', 'start', 'count'],
  retention: [...common, 'start_event', 'return_event', 'period', 'periods', 'mode'],
} as const

/** Reads a query. Throws 400 `invalid_request` with everything that is wrong and where it stands. */
export function parseQuery(body: QueryBody): EventQuery {
  const { issues, report } = collector(issuesMax)
  const query = read(body, report)
  if (issues.length > 0 || query === null) throw refused(issues)
  refuseTooMuch(query)
  return query
}

function refused(issues: Issue[]) {
  const [first] = issues
  return refuse('invalid_request', {
    issues,
    ...(first && { param: first.path, message: `${first.path} ${first.message}` }),
  })
}

function wrong(path: string, message: string) {
  return refused([{ path, message }])
}

function read(body: QueryBody, report: Report): EventQuery | null {
  const { type } = body
  if (type !== 'count' && type !== 'trend' && type !== 'funnel' && type !== 'retention') {
    report('type', 'must be count, trend, funnel or retention')
    return null
  }
  for (const name of Object.keys(body)) {
    if (!fields[type].some((known) => known === name)) report(name, `is no field of a ${type}`)
  }
  const shared = {
    appId: body.app_id === undefined ? null : text(body.app_id, 'app_id', report, 64),
    range: readRange(body.time_range, report),
    filters: readFilters(body.filters, 'filters', report),
  }
  switch (type) {
    case 'count':
    case 'trend':
      return readTrend(type, body, shared, report)
    case 'funnel':
      return readFunnel(body, shared, report)
    case 'retention':
      return readRetention(body, shared, report)
  }
}

type Shared = Pick<EventQuery, 'appId' | 'range' | 'filters'>

function readTrend(type: 'count' | 'trend', body: QueryBody, shared: Shared, report: Report): TrendQuery {
  const interval =
    type === 'count' ? null : oneOf<Interval>(['hour', 'day', 'week', 'month'], body.interval, 'interval', report)
  const series = listOf(body.series, 'series', { min: 1, max: querySeriesMax }, report).map((item, i) =>
    readSeries(item, `series[${i}]`, report),
  )
  const groupBy =
    body.group_by === undefined
      ? []
      : listOf(body.group_by, 'group_by', { min: 0, max: queryGroupByMax }, report).map((item, i) =>
          readGroupBy(item, `group_by[${i}]`, report),
        )
  if (new Set(groupBy.map(({ property }) => property)).size < groupBy.length) {
    report('group_by', 'must not name a property twice')
  }
  return { type, ...shared, interval, series, groupBy }
}

function readSeries(item: unknown, path: string, report: Report): Series {
  const known = fieldsOf(item, ['event', 'measure', 'filters'], path, report) ?? {}
  return {
    event: eventName(known.event, `${path}.event`, report),
    measure: readMeasure(known.measure, `${path}.measure`, report),
    filters: readFilters(known.filters, `${path}.filters`, report),
  }
}

const measures = ['count', 'unique_customers', 'sum', 'avg', 'min', 'max', 'p50', 'p90', 'p95'] as const

function readMeasure(item: unknown, path: string, report: Report): Measure {
  if (item === undefined) return { type: 'count' }
  const known = fieldsOf(item, ['type', 'property'], path, report) ?? {}
  const type = oneOf(measures, known.type, `${path}.type`, report)
  const { property } = known
  if (type === 'count' || type === 'unique_customers') {
    if (property !== undefined) report(`${path}.property`, `must be left out for ${type}`)
    return { type }
  }
  return { type, property: property === undefined ? null : (parseKey(property, `${path}.property`, report) ?? '') }
}

const groupLimitDefault = 25

function readGroupBy(item: unknown, path: string, report: Report): GroupBy {
  const known = fieldsOf(item, ['scope', 'property', 'limit'], path, report) ?? {}
  return {
    scope: oneOf(['event', 'customer'] as const, known.scope, `${path}.scope`, report),
    property: parseKey(known.property, `${path}.property`, report) ?? '',
    limit: whole(known.limit ?? groupLimitDefault, `${path}.limit`, { min: 1, max: queryGroupsMax }, report),
  }
}

function readFunnel(body: QueryBody, shared: Shared, report: Report): FunnelQuery {
  if (body.count !== undefined && body.count !== 'unique_customers') report('count', 'must be unique_customers')
  return {
    type: 'funnel',
    ...shared,
    steps: listOf(body.steps, 'steps', { min: 2, max: queryStepsMax }, report).map((item, i) =>
      readStep(item, `steps[${i}]`, report),
    ),
    windowMs: readWindow(body.window, report),
    order: oneOf(['ordered', 'strict'] as const, body.order ?? 'ordered', 'order', report),
    // Without a default: on the same rows the two give quite different numbers.
    start: oneOf(['first', 'any'] as const, body.start, 'start', report),
  }
}

const unitMs = { second: 1000, minute: 60_000, hour: 3_600_000, day: dayMs, week: 7 * dayMs }

function readWindow(item: unknown, report: Report): number {
  const known = fieldsOf(item, ['value', 'unit'], 'window', report) ?? {}
  const unit = oneOf(['second', 'minute', 'hour', 'day', 'week'] as const, known.unit, 'window.unit', report)
  const max = Math.floor(queryRangeMsMax / unitMs[unit])
  return whole(known.value, 'window.value', { min: 1, max }, report) * unitMs[unit]
}

function readStep(item: unknown, path: string, report: Report): Step {
  const known = fieldsOf(item, ['event', 'filters'], path, report) ?? {}
  return {
    event: eventName(known.event, `${path}.event`, report),
    filters: readFilters(known.filters, `${path}.filters`, report),
  }
}

function readRetention(body: QueryBody, shared: Shared, report: Report): RetentionQuery {
  return {
    type: 'retention',
    ...shared,
    startEvent: readStep(body.start_event, 'start_event', report),
    returnEvent: readStep(body.return_event, 'return_event', report),
    period: oneOf(['day', 'week', 'month'] as const, body.period, 'period', report),
    periods: whole(body.periods, 'periods', { min: 1, max: queryPeriodsMax }, report),
    mode: oneOf(['first', 'every'] as const, body.mode ?? 'first', 'mode', report),
  }
}

function readRange(item: unknown, report: Report): TimeRange {
  const known = fieldsOf(item, ['start', 'end', 'timezone'], 'time_range', report) ?? {}
  const start = instant(known.start, 'time_range.start', report)
  const end = instant(known.end, 'time_range.end', report)
  const zone = known.timezone ?? 'UTC'
  if (typeof zone !== 'string' || !isZone(zone)) {
    report('time_range.timezone', 'must be a name of the IANA time zone database, such as Europe/Oslo')
  }
  if (end <= start) report('time_range.end', 'must be after start')
  if (end - start > queryRangeMsMax) {
    report('time_range', `must not be longer than ${queryRangeMsMax / dayMs} days; POST /v1/event_exports has no limit`)
  }
  return { start, end, zone: typeof zone === 'string' ? zone : '' }
}

function readFilters(items: unknown, path: string, report: Report): QueryFilter[] {
  if (items === undefined) return []
  return listOf(items, path, { min: 0, max: queryFiltersMax }, report).flatMap(
    (item, i) => readFilter(item, `${path}[${i}]`, report) ?? [],
  )
}

function readFilter(item: unknown, path: string, report: Report): QueryFilter | null {
  const known = fieldsOf(item, ['scope', 'property', 'op', 'value', 'segment', 'is'], path, report)
  if (!known) return null
  const scope = oneOf(['event', 'customer', 'membership'] as const, known.scope, `${path}.scope`, report)
  for (const name of scope === 'membership' ? (['property', 'op', 'value'] as const) : (['segment', 'is'] as const)) {
    if (known[name] !== undefined) report(`${path}.${name}`, `is no field of a filter on ${scope}`)
  }
  if (scope === 'membership') {
    if (known.is !== undefined && typeof known.is !== 'boolean') report(`${path}.is`, 'must be true or false')
    return { scope, segment: text(known.segment, `${path}.segment`, report, 64), is: known.is !== false }
  }
  const property = parseKey(known.property, `${path}.property`, report)
  const condition = parseOperator(known, path, report)
  return property === null || condition === null ? null : { scope, property, ...condition }
}

/** What cannot be said of one field alone. */
function refuseTooMuch(query: EventQuery): void {
  const interval = query.type === 'retention' ? query.period : query.type === 'trend' ? query.interval : null
  const buckets = interval === null ? 1 : bucketsMax(query.range, interval)
  if (buckets > queryBucketsMax) throw wrong('interval', `makes more than ${queryBucketsMax} buckets of this range`)
  if (query.type !== 'trend') return
  const limits = query.groupBy.reduce((product, { limit }) => product * limit, 1)
  const points = query.series.length * Math.min(limits, queryGroupsMax) * buckets
  if (points > queryPointsMax) {
    throw wrong(
      'group_by',
      `makes up to ${points} points, at most ${queryPointsMax} are answered: lower its limits, or take longer intervals`,
    )
  }
}

function listOf(items: unknown, path: string, { min, max }: Bounds, report: Report): unknown[] {
  if (Array.isArray(items) && items.length >= min && items.length <= max) return items
  report(path, `must be a list of ${min} to ${max}`)
  return []
}

interface Bounds {
  min: number
  max: number
}

function whole(value: unknown, path: string, { min, max }: Bounds, report: Report): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  report(path, `must be a whole number from ${min} to ${max}`)
  return min
}

function oneOf<const T extends string>(values: readonly T[], value: unknown, path: string, report: Report): T {
  const found = values.find((each) => each === value)
  if (found !== undefined) return found
  report(path, `must be ${values.slice(0, -1).join(', ')} or ${values.at(-1)}`)
  const [fallback] = values
  if (fallback === undefined) throw new Error('there is a value to choose')
  return fallback
}

function eventName(value: unknown, path: string, report: Report): string {
  return text(value, path, report, eventNameCharsMax)
}

function text(value: unknown, path: string, report: Report, charsMax: number): string {
  const fits = typeof value === 'string' && value !== '' && isStorable(value)
  if (fits && codePoints(value, charsMax) <= charsMax) return value
  report(path, `must be a text of 1 to ${charsMax} characters`)
  return ''
}

function instant(value: unknown, path: string, report: Report): number {
  const at = typeof value === 'string' ? parseTimestamp(value) : null
  if (at !== null && at >= firstInstant && at <= lastInstant) return at
  report(path, 'must be an ISO 8601 time from 1900 on')
  return Number.NaN
}
