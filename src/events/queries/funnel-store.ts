import type { Sql } from '../../db/pool.ts'
import { createParams, type Params } from './params.ts'
import { customerOf, eventsOf, matches, type Source, withSource } from './source-store.ts'
import type { FunnelQuery, Step } from './types.ts'

export interface Reached {
  /** From 1. */
  step: number
  count: number
  /** Seconds from the step before. */
  median: number | null
}

/**
 * Where an event stands in a customer's history: its time in seconds and its position, both of which a double holds. As one
 * value that compares they are made only of events that count, since building and comparing arrays is the dearest part.
 */
const moment = `date_part('epoch', e.ts) as s, e.pos::float8 as pos`
/** Times are whole milliseconds: this much is less than one, and more than doubles are off by. */
const slackS = 0.0005

/** How far customers came. */
export function selectFunnel(sql: Sql, source: Source, query: FunnelQuery): Promise<Reached[]> {
  return query.start === 'first' && query.order === 'ordered' ? hops(sql, source, query) : chains(sql, source, query)
}

/**
 * From the first start of each customer to the first event of the next step after it, and so on: one hash aggregate and one
 * hash join for each step, all from index event_name_time alone where steps have no filters. The earliest next event is
 * never worse than a later one.
 */
async function hops(sql: Sql, source: Source, { steps, windowMs }: FunnelQuery): Promise<Reached[]> {
  const params = createParams()
  const customer = customerOf(source.merged)
  const ctes = steps.map((step, i) => {
    const rows = eventsOf(source, params, step)
    if (i === 0) {
      return `
      step_1 as materialized (
        select customer, min(array[s, pos]) as at
        from (select ${customer} as customer, ${moment} ${rows}) e
        group by 1
      )`
    }
    return `
      step_${i + 1} as materialized (
        select before.customer, before.start, before.at as before, min(array[e.s, e.pos]) as at
        from (select customer, ${i === 1 ? 'at[1]' : 'start'} as start, at from step_${i}) before
        join (select ${customer} as customer, ${moment} ${rows}) e on e.customer = before.customer
        where (e.s > before.at[1] or (e.s = before.at[1] and e.pos > before.at[2]))
          and e.s <= before.start + ${params.add(windowS(windowMs))}::float8
        group by 1, 2, 3
      )`
  })
  const counts = steps.map((_, i) =>
    i === 0
      ? 'select 1 as step, count(*)::float8 as count, null::float8 as median from step_1'
      : `select ${i + 1}, count(*)::float8, percentile_disc(0.5) within group (order by at[1] - before[1]) from step_${i + 1}`,
  )
  return sql.query<Reached>(
    `${withSource(source, params, ctes)} ${counts.join(' union all ')} order by 1`,
    params.values,
  )
}

/**
 * Every start with its own way onward. A customer's events are walked from the last to the first; an event of a step puts
 * itself before the way that begins at the next event of the following step (`strict`: at the very next event), so at a
 * start the whole way is known. Of a customer's starts counts the first, or the one that came furthest within the window
 * (of several the earliest).
 */
async function chains(sql: Sql, source: Source, { steps, windowMs, order, start }: FunnelQuery): Promise<Reached[]> {
  const params = createParams()
  const strict = order === 'strict'
  const names = strict ? null : [...new Set(steps.map(({ event }) => event))]
  const flags = steps.map((step, i) => `${flagOf(source, params, step)} as is_${i + 1}`)
  const customers = steps.some(({ filters }) => filters.some(({ scope }) => scope === 'customer'))
  const rows = eventsOf(source, params, { event: names, filters: [], customers })
  let walked = `
    select ${customerOf(source.merged)} as customer, ${moment}, null::float8[] as onward, ${flags.join(', ')}
    ${rows}`
  for (let step = steps.length; step > 1; step--) walked = walkedBack(walked, { step, strict })
  const ways = `
    ways as materialized (
      select customer, reached, way
      from (
        select distinct on (customer) customer, s, pos, way, reached
        from (
          select customer, s, pos, array[s, pos] || onward as way
          from (${walked}) walked
          where is_1
        ) started
        cross join lateral (
          select count(*) filter (where way[i] <= s + ${params.add(windowS(windowMs))}::float8) as reached
          from generate_series(1, array_length(way, 1), 2) i
        ) within
        order by customer, ${start === 'any' ? 'reached desc, ' : ''}s, pos
      ) best
    )`
  return sql.query<Reached>(
    `${withSource(source, params, [ways])}
    select step, count(*) filter (where reached >= step)::float8 as count,
      percentile_disc(0.5) within group (order by way[2 * step - 1] - way[2 * step - 3])
        filter (where reached >= step and step > 1) as median
    from generate_series(1, ${params.add(steps.length)}::int) step
    left join ways on true
    group by step
    order by step`,
    params.values,
  )
}

/** The rows with `onward` set to the way that begins at the following `step`. Every pass sees them in the same order. */
function walkedBack(rows: string, { step, strict }: { step: number; strict: boolean }): string {
  const way = `case when is_${step} then array[s, pos] || onward end`
  const next = strict ? `lag(${way})` : `min(${way})`
  const frame = strict ? '' : 'rows between unbounded preceding and 1 preceding'
  const kept = Array.from({ length: step - 1 }, (_, i) => `is_${i + 1}`).join(', ')
  return `
    select customer, s, pos, ${next} over (partition by customer order by s desc, pos desc ${frame}) as onward, ${kept}
    from (${rows}) after_${step}`
}

function windowS(windowMs: number): number {
  return windowMs / 1000 + slackS
}

function flagOf(source: Source, params: Params, { event, filters }: Step): string {
  const conditions = filters.map((filter) => matches(source, params, filter))
  return `(${[`e.event = ${params.add(event)}::text`, ...conditions].join(' and ')})`
}
