import type { Sql } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { createParams, type Params } from './params.ts'
import { bucket, customerOf, eventsOf, type Source, withSource } from './source-store.ts'
import type { GroupBy, Measure, Series } from './types.ts'

/** What was measured in one bucket of one group, or in all of its buckets. */
export interface Cell {
  /** From 1 in the order of totals; null for all other groups together. 0 without groups. */
  group: number | null
  /** From 1; null for the whole range. */
  bucket: number | null
  count: number
  /** How many had a number to measure. */
  numbers: number
  value: number | null
}

export interface Cells {
  cells: Cell[]
  /** Of each shown group, from the largest: the JSON of its values, as far as they are shown. */
  keys: string[][]
}

export interface Asked {
  series: Series
  edges: readonly number[]
  groupBy: GroupBy[]
  groupsMax: number
}

const numberOf = (properties: string, property: string) =>
  `case jsonb_typeof(${properties} -> ${property}) when 'number' then (${properties} ->> ${property})::float8 end`

function measuredValue(params: Params, measure: Measure): string {
  if (!('property' in measure)) return 'null::float8'
  return measure.property === null ? 'e.value' : numberOf('e.props', `${params.add(measure.property)}::text`)
}

const aggregates: Record<Measure['type'], string> = {
  count: 'count(*)::float8',
  unique_customers: 'count(distinct customer)::float8',
  // Nothing to add up is 0, in the order of groups too.
  sum: 'coalesce(sum(v), 0)',
  // avg() fails on numbers whose squares are too large.
  avg: 'sum(v) / nullif(count(v), 0)',
  min: 'min(v)',
  max: 'max(v)',
  // One of the numbers that are there, not one between.
  p50: 'percentile_disc(0.5) within group (order by v)',
  p90: 'percentile_disc(0.9) within group (order by v)',
  p95: 'percentile_disc(0.95) within group (order by v)',
}

const columns = (measure: Measure) =>
  `count(*)::float8 as count, count(v)::float8 as numbers, ${aggregates[measure.type]} as value`

/** Each statement gives cells; those without a bucket are totals. */
export async function measure(sql: Sql, source: Source, asked: Asked): Promise<Cells> {
  const { series, groupBy } = asked
  if (groupBy.length > 0) return measureGroups(sql, source, asked)
  const cells = series.measure.type === 'unique_customers' ? countCustomers : measureAll
  return { cells: await cells(sql, source, asked), keys: [] }
}

/** Counting without filters never reads a row: 1,000,000 index entries take 0.2 s. */
async function measureAll(sql: Sql, source: Source, { series, edges }: Asked): Promise<Cell[]> {
  const params = createParams()
  const rows = eventsOf(source, params, series)
  const text = `
    ${withSource(source, params, [])}
    select 0 as group, bucket, ${columns(series.measure)}
    from (
      select ${edges.length > 2 ? bucket(params, edges) : '1'} as bucket, ${measuredValue(params, series.measure)} as v
      ${rows}
    ) r
    group by ${isAdditive(series.measure) ? 'bucket' : 'grouping sets ((), (bucket))'}`
  return sql.query<Cell>(text, params.values)
}

/** Totals of these follow from their buckets; grouping sets would keep the statement from running in parallel. */
function isAdditive({ type }: Measure): boolean {
  return type === 'count' || type === 'sum' || type === 'avg' || type === 'min' || type === 'max'
}

/** Each customer once in each bucket first: counting them is then counting rows. */
async function countCustomers(sql: Sql, source: Source, { series, edges }: Asked): Promise<Cell[]> {
  const params = createParams()
  const seen = `
    seen as materialized (
      select ${edges.length > 2 ? bucket(params, edges) : '1'} as bucket, ${customerOf(source.merged)} as customer, count(*) as count
      ${eventsOf(source, params, series)}
      group by 1, 2
    )`
  return sql.query<Cell>(
    `${withSource(source, params, [seen])}
    select 0 as group, bucket, sum(count)::float8 as count, 0::float8 as numbers, count(*)::float8 as value
    from seen
    group by bucket
    union all
    select 0, null, coalesce(sum(count), 0)::float8, 0, count(*)::float8
    from (select sum(count) as count from seen group by customer) once`,
    params.values,
  )
}

/** Longer values are shown cut, and those that begin alike count as one. */
const keyCharsMax = 200

/**
 * The groups with the largest totals by name, all others as one. An absent property is null; objects and lists stand for
 * themselves as text.
 */
async function measureGroups(sql: Sql, source: Source, { series, edges, groupBy, groupsMax }: Asked): Promise<Cells> {
  const params = createParams()
  const keys = groupBy.map(({ scope, property }) => {
    const found = `${scope === 'event' ? 'e.props' : 'c.properties'} -> ${params.add(property)}::text`
    return `left(coalesce(${found}, 'null')::text, ${keyCharsMax + 2})`
  })
  const customers = groupBy.some(({ scope }) => scope === 'customer')
  const r = `
    r as materialized (
      select array[${keys.join(', ')}] collate "C" as key, ${edges.length > 2 ? bucket(params, edges) : '1'} as bucket,
        ${measuredValue(params, series.measure)} as v, ${customerOf(source.merged)} as customer
      ${eventsOf(source, params, { ...series, customers })}
    )`
  const largest = `
    largest as materialized (
      select key, row_number() over (order by ${aggregates[series.measure.type]} desc nulls last, key)::int as rank
      from r
      group by key
      order by 2
      limit ${params.add(groupsMax)}::int
    )`
  const found = await sql.query<Cell & { key: string[] | null }>(
    `${withSource(source, params, [r, largest])}
    select largest.rank as group, r.bucket, min(largest.key) as key, ${columns(series.measure)}
    from r
    left join largest on largest.key = r.key
    group by grouping sets ((largest.rank), (largest.rank, r.bucket))
    order by 1, 2`,
    params.values,
  )
  const shown = new Map(found.flatMap(({ group, key }) => (group === null || key === null ? [] : [[group, key]])))
  const ranks = [...shown.keys()].toSorted((a, b) => a - b)
  return { cells: found, keys: ranks.map((rank) => must(shown.get(rank), 'each rank has its key')) }
}
