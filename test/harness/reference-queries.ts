import { type Filter, propertyOf, testOfFilters } from '../../src/events/conditions/filter.ts'
import type { Json, JsonObject } from '../../src/events/index.ts'
import type {
  Cohort,
  EventQuery,
  FunnelQuery,
  FunnelStep,
  Line,
  QueryFilter,
  RetentionQuery,
  Series,
  TrendQuery,
  TrendSeries,
} from '../../src/events/queries/types.ts'

/** An event as queries see it: of the customer it belongs to now. */
export interface Row {
  position: number
  at: number
  event: string
  appId: string | null
  customer: string
  value: number | null
  properties: JsonObject
}

export interface World {
  rows: Row[]
  /** Properties by customer. */
  customers: Map<string, JsonObject>
  /** Customers of each segment. */
  segments: Map<string, Set<string>>
}

/** What a query has to answer: plainly, row by row, with nothing of the code that makes the SQL. */
export function answerBy(world: World, query: EventQuery) {
  const rows = world.rows
    .filter(({ at, appId }) => at >= query.range.start && at < query.range.end && (query.appId ?? appId) === appId)
    .filter((row) => passes(world, row, query.filters))
    .toSorted(inOrder)
  switch (query.type) {
    case 'count':
    case 'trend':
      return { series: query.series.map((series) => trendOf(world, rows, query, series)) }
    case 'funnel':
      return { steps: funnelOf(world, rows, query) }
    case 'retention':
      return { cohorts: retentionOf(world, rows, query) }
  }
}

function inOrder(a: Row, b: Row): number {
  return a.at - b.at || a.position - b.position
}

function passes(world: World, row: Row, filters: readonly QueryFilter[]): boolean {
  return filters.every((filter) => {
    if (filter.scope === 'membership') {
      return (world.segments.get(filter.segment)?.has(row.customer) ?? false) === filter.is
    }
    return testOfFilters([filter as Filter])(propertiesOf(world, row, filter.scope))
  })
}

function propertiesOf({ customers }: World, row: Row, scope: 'event' | 'customer'): JsonObject {
  return scope === 'event' ? row.properties : (customers.get(row.customer) ?? {})
}

function trendOf(world: World, all: Row[], { range, interval, groupBy }: TrendQuery, series: Series) {
  const rows = all.filter((row) => row.event === series.event && passes(world, row, series.filters))
  const keyOf = (row: Row) =>
    groupBy.map(({ scope, property }) => propertyOf(propertiesOf(world, row, scope), property) ?? null)
  const labels = interval === null ? null : labelsOf(range, interval)
  const line = (of: Row[]): Line => ({
    total: measured(of, series),
    values: labels
      ? labels.map((label) =>
          measured(
            of.filter(({ at }) => labelOf(at, range.zone, interval ?? 'day') === label),
            series,
          ),
        )
      : [measured(of, series)],
  })
  const groups = [...Map.groupBy(rows, (row) => spaced(keyOf(row)))]
    .map(([text, of]) => ({ text, key: keyOf(of[0] as Row), rows: of, total: measured(of, series) }))
    .toSorted(
      (a, b) =>
        (b.total ?? Number.NEGATIVE_INFINITY) - (a.total ?? Number.NEGATIVE_INFINITY) ||
        Buffer.compare(Buffer.from(a.text), Buffer.from(b.text)),
    )
  const max = groupBy.reduce((product, { limit }) => product * limit, 1)
  const others = groups.slice(max).flatMap((group) => group.rows)
  const { measure } = series
  const answer: Omit<TrendSeries, 'measure'> = {
    event: series.event,
    nonNumeric:
      'property' in measure && measure.property !== null
        ? rows.filter((row) => numberIn(row, series) === null).length
        : 0,
    groups:
      groupBy.length === 0
        ? [{ key: {}, ...line(rows) }]
        : groups.slice(0, max).map((group) => ({
            key: Object.fromEntries(groupBy.map(({ property }, i) => [property, shown(group.key[i])])),
            ...line(group.rows),
          })),
    other: groupBy.length > 0 && others.length > 0 ? line(others) : null,
  }
  return answer
}

function shown(value: Json | undefined): Json {
  if (value === undefined) return null
  return typeof value === 'object' && value !== null ? spaced(value) : value
}

/** As PostgreSQL writes it, for the values of these tests. */
function spaced(value: Json): string {
  return JSON.stringify(value).replaceAll(',', ', ').replaceAll(':', ': ')
}

function numberIn(row: Row, { measure }: Series): number | null {
  if (!('property' in measure)) return null
  const value = measure.property === null ? row.value : propertyOf(row.properties, measure.property)
  return typeof value === 'number' ? value : null
}

function measured(rows: Row[], series: Series): number | null {
  const { type } = series.measure
  if (type === 'count') return rows.length
  if (type === 'unique_customers') return new Set(rows.map(({ customer }) => customer)).size
  const numbers = rows.flatMap((row) => numberIn(row, series) ?? []).toSorted((a, b) => a - b)
  const sum = numbers.reduce((a, b) => a + b, 0)
  const atLeast = (share: number) => numbers[Math.max(Math.ceil(share * numbers.length), 1) - 1] ?? null
  switch (type) {
    case 'sum':
      return sum
    case 'avg':
      return numbers.length === 0 ? null : sum / numbers.length
    case 'min':
      return numbers[0] ?? null
    case 'max':
      return numbers.at(-1) ?? null
    case 'p50':
      return atLeast(0.5)
    case 'p90':
      return atLeast(0.9)
    case 'p95':
      return atLeast(0.95)
  }
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** What the calendar and clock of a zone say of an instant, as a text that is the same within a bucket. */
function labelOf(at: number, zone: string, interval: 'hour' | 'day' | 'week' | 'month'): string {
  let format = formats.get(zone)
  if (!format) {
    format = new Intl.DateTimeFormat('en-CA', {
      ...{ timeZone: zone, hourCycle: 'h23', timeZoneName: 'longOffset' },
      ...{ year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit' },
    })
    formats.set(zone, format)
  }
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]))
  const day = `${parts.get('year')}-${parts.get('month')}-${parts.get('day')}`
  if (interval === 'month') return day.slice(0, 7)
  // The two hours of a night when clocks go back differ by their offset.
  if (interval === 'hour') return `${day} ${parts.get('hour')} ${parts.get('timeZoneName')}`
  if (interval === 'day') return day
  const date = new Date(`${day}T00:00:00Z`)
  date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7))
  return date.toISOString().slice(0, 10)
}

/** Every bucket of the range, found by walking through it in quarters of an hour. */
export function labelsOf(
  { start, end, zone }: EventQuery['range'],
  interval: 'hour' | 'day' | 'week' | 'month',
): string[] {
  const labels = new Set([labelOf(start, zone, interval)])
  for (let at = Math.ceil(start / 900_000) * 900_000; at < end; at += 900_000) labels.add(labelOf(at, zone, interval))
  return [...labels]
}

function funnelOf(world: World, rows: Row[], { steps, windowMs, order, start }: FunnelQuery): FunnelStep[] {
  const best = [...Map.groupBy(rows, ({ customer }) => customer).values()].flatMap((of) => {
    const isStep = (row: Row | undefined, i: number) => {
      const step = steps[i]
      return row !== undefined && step !== undefined && row.event === step.event && passes(world, row, step.filters)
    }
    const ways = of.flatMap((first, i) => {
      if (!isStep(first, 0)) return []
      const way = [first.at]
      let at = i
      while (way.length < steps.length) {
        const step = way.length
        at = order === 'strict' ? at + 1 : of.findIndex((row, n) => n > at && isStep(row, step))
        const next = at < 0 ? undefined : of[at]
        if (!next || !isStep(next, step) || next.at > first.at + windowMs) break
        way.push(next.at)
      }
      return [way]
    })
    if (start === 'first') return ways.slice(0, 1)
    const longest = Math.max(...ways.map(({ length }) => length))
    return ways.filter(({ length }) => length === longest).slice(0, 1)
  })
  return steps.map(({ event }, i) => {
    const there = best.filter(({ length }) => length > i)
    const times = there.map((way) => ((way[i] ?? 0) - (way[i - 1] ?? 0)) / 1000).toSorted((a, b) => a - b)
    return {
      event,
      count: there.length,
      medianSeconds: i === 0 ? null : (times[Math.ceil(times.length / 2) - 1] ?? null),
    }
  })
}

function retentionOf(world: World, rows: Row[], query: RetentionQuery): Omit<Cohort, 'at'>[] {
  const { range, period, periods, mode, startEvent, returnEvent } = query
  const labels = labelsOf(range, period)
  const periodsOf = ({ event, filters }: RetentionQuery['startEvent']) => {
    const of = rows.filter((row) => row.event === event && passes(world, row, filters))
    return new Map(
      [...Map.groupBy(of, ({ customer }) => customer)].map(([customer, own]) => [
        customer,
        new Set(own.map(({ at }) => labels.indexOf(labelOf(at, range.zone, period)))),
      ]),
    )
  }
  const [started, returned] = [periodsOf(startEvent), periodsOf(returnEvent)]
  return labels.map((_, i) => {
    const cohort = [...started].filter(([, own]) => (mode === 'first' ? Math.min(...own) === i : own.has(i)))
    return {
      size: cohort.length,
      returning: Array.from(
        { length: Math.min(periods, labels.length - 1 - i) },
        (_, n) => cohort.filter(([customer]) => returned.get(customer)?.has(i + 1 + n) ?? false).length,
      ),
    }
  })
}
