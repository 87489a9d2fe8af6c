import type { Sql } from '../../db/pool.ts'
import { createParams, type Params } from './params.ts'
import { customerOf, eventsOf, instant, matches, type Source, withSource } from './source-store.ts'
import type { FunnelQuery, Step, TimeRange } from './types.ts'

export interface Reached {
  /** From 1. */
  step: number
  count: number
  /** Seconds from the step before. */
  median: number | null
}

/** How far customers came. */
export function selectFunnel(sql: Sql, source: Source, query: FunnelQuery): Promise<Reached[]> {
  return query.start === 'first' && query.order === 'ordered' ? hops(sql, source, query) : chains(sql, source, query)
}

/**
 * An event's place in time as one number: milliseconds since the range began, times what no position reaches, plus the
 * position. Finding the least of such numbers costs a fraction of what arrays cost. An int8 holds the places of 400 days and
 * 130 million positions, or of 60 days and 890 million; beyond that they are numeric.
 */
interface Place {
  /** Of an event `e`. */
  of: string
  /** Milliseconds since the range began. */
  ms: (place: string) => string
  position: (place: string) => string
  /** Milliseconds as the number that begins them. */
  from: (ms: string) => string
}

const int8Limit = 2n ** 63n

function spanMs({ start, end }: TimeRange): number {
  return Math.ceil(end) - Math.floor(start) + 1
}

function placeIn({ range, newest }: Source, params: Params): Place {
  // Twice the range: a window begins in it and is as long at most.
  const positions = int8Limit / BigInt(2 * spanMs(range)) - 1n
  const type = newest < positions ? 'int8' : 'numeric'
  const each = `${params.add(type === 'int8' ? positions : int8Limit)}::${type}`
  const ms = `(date_part('epoch', e.ts) * 1000 - ${params.add(Math.floor(range.start))}::float8)::int8`
  return {
    of: `(${ms} * ${each} + e.pos)`,
    ms: (place) => `((${place} - ${place} % ${each}) / ${each})`,
    position: (place) => `(${place} % ${each})::int8`,
    from: (from) => `(${from} * ${each})`,
  }
}

/**
 * From the first start of each customer to the first event of the next step after it, and so on: one hash aggregate and one
 * hash join for each step, all from index event_name_time alone where steps have no filters. The earliest next event is
 * never worse than a later one. Only events that come into question get a place: comparing times is cheaper.
 */
async function hops(sql: Sql, source: Source, { steps, windowMs }: FunnelQuery): Promise<Reached[]> {
  const params = createParams()
  const place = placeIn(source, params)
  const customer = customerOf(source.merged)
  const rangeStart = instant(params, Math.floor(source.range.start))
  const ctes = steps.map((step, i) => {
    const rows = eventsOf(source, params, step)
    const events = `(select ${customer} as customer, e.ts, e.pos ${rows}) e`
    const found =
      i === 0
        ? `
        select customer, min(${place.of}) as place, null::timestamptz as before, null::timestamptz as last
        from ${events}
        group by 1`
        : `
        select b.customer, min(${place.of}) as place, min(b.ts) as before, min(b.last) as last
        from step_${i} b
        join ${events} on e.customer = b.customer
        where (e.ts, e.pos) > (b.ts, b.pos)
          and e.ts <= b.last
        group by 1`
    const last = i === 0 ? `ts + ${params.add(windowMs)}::float8 * interval '1 millisecond'` : 'last'
    return `
      step_${i + 1} as materialized (
        select customer, ts, pos, before, ${last} as last
        from (
          select customer, before, last, ${place.position('place')} as pos,
            ${rangeStart} + ${place.ms('place')}::float8 * interval '1 millisecond' as ts
          from (${found}) found
        ) placed
      )`
  })
  const counts = steps.map((_, i) =>
    i === 0
      ? 'select 1 as step, count(*)::float8 as count, null::float8 as median from step_1'
      : `select ${i + 1}, count(*)::float8, date_part('epoch', percentile_disc(0.5) within group (order by ts - before)) from step_${i + 1}`,
  )
  return sql.query<Reached>(
    `${withSource(source, params, ctes)} ${counts.join(' union all ')} order by 1`,
    params.values,
  )
}

/**
 * Every start with its own way onward. A customer's events are walked from the last to the first, in one order for all
 * steps; each carries the places of the way that begins at the next event of the following step (`strict`: at the very next
 * event), so at a start the whole way is known. Ways never overtake each other: the least place of each further step is
 * that of the nearest way. Of a customer's starts counts the first, or the one that came furthest within the window (of
 * several the earliest).
 */
async function chains(sql: Sql, source: Source, { steps, windowMs, order, start }: FunnelQuery): Promise<Reached[]> {
  const params = createParams()
  const place = placeIn(source, params)
  const strict = order === 'strict'
  const names = strict ? null : [...new Set(steps.map(({ event }) => event))]
  const flags = steps.map((step, i) => `${flagOf(source, params, step)} as is_${i + 1}`)
  const customers = steps.some(({ filters }) => filters.some(({ scope }) => scope === 'customer'))
  const rows = eventsOf(source, params, { event: names, filters: [], customers })
  const later = steps.map((_, i) => i + 1).slice(1)
  let walked = `
    select ${customerOf(source.merged)} as customer, ${place.of} as place, ${flags.join(', ')}
    ${rows}`
  for (let step = steps.length; step > 1; step--) walked = walkedBack(walked, { step, steps: steps.length, strict })
  const end = place.from(`(${place.ms('place')} + ${params.add(Math.min(windowMs, spanMs(source.range)) + 1)}::int8)`)
  const ways = `
    ways as materialized (
      select distinct on (customer) reached, place_1, ${later.map((step) => `place_${step}`).join(', ')}
      from (
        select customer, place as place_1, ${later.map((step) => `place_${step}`).join(', ')},
          1 + ${later.map((step) => `coalesce(place_${step} < ${end}, false)::int`).join(' + ')} as reached
        from (${walked}) walked
        where is_1
      ) started
      order by customer, ${start === 'any' ? 'reached desc, ' : ''}place_1
    )`
  const counts = later.map(
    (step) => `
    select ${step}, count(*)::float8,
      percentile_disc(0.5) within group (order by ${place.ms(`place_${step}`)} - ${place.ms(`place_${step - 1}`)})::float8 / 1000
    from ways
    where reached >= ${step}`,
  )
  return sql.query<Reached>(
    `${withSource(source, params, [ways])}
    select 1 as step, count(*)::float8 as count, null::float8 as median
    from ways
    union all ${counts.join(' union all ')}
    order by 1`,
    params.values,
  )
}

/** The rows with the places of `step` and all after it, as the following event of `step` knows them. */
function walkedBack(rows: string, { step, steps, strict }: { step: number; steps: number; strict: boolean }): string {
  const known = Array.from({ length: steps - step + 1 }, (_, i) => step + i)
  const next = known.map((each) => {
    const its = `case when is_${step} then ${each === step ? 'place' : `place_${each}`} end`
    return `${strict ? 'lag' : 'min'}(${its}) over onward as place_${each}`
  })
  const kept = Array.from({ length: step - 1 }, (_, i) => `is_${i + 1}`)
  return `
    select customer, place, ${[...kept, ...next].join(', ')}
    from (${rows}) after_${step}
    window onward as (
      partition by customer
      order by place desc
      ${strict ? '' : 'rows between unbounded preceding and 1 preceding'}
    )`
}

function flagOf(source: Source, params: Params, { event, filters }: Step): string {
  const conditions = filters.map((filter) => matches(source, params, filter))
  return `(${[`e.event = ${params.add(event)}::text`, ...conditions].join(' and ')})`
}
