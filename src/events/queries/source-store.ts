import { conditionOf } from './filter-store.ts'
import type { SegmentSource } from './membership-store.ts'
import type { Params } from './params.ts'
import type { QueryFilter, TimeRange } from './types.ts'

/** What all statements of one query share. */
export interface Source {
  scopeId: number
  appId: string | null
  range: TimeRange
  /** Of the whole query. */
  filters: QueryFilter[]
  /** Some record's events stand under it though it was merged into another one. */
  merged: boolean
  /** No event has a position beyond. */
  newest: bigint
  segments: SegmentSource
}

/** Beside an event `e`: the customer it belongs to now. */
export const customerOf = (merged: boolean) => (merged ? 'coalesce(s.survivor, e.customer_id)' : 'e.customer_id')

/**
 * Records whose events still stand under them after a merge, with the customers they became, over however many hops. They
 * are few: once the events of a merge were re-pointed, its row of customer_change is settled. By customer_change_unsettled.
 * To be put into `with recursive`.
 */
export const survivors = (scopeId: string) => `
  walk (id, survivor) as (
    select c.id, c.merged_into
    from customer_change gone
    join customer c on c.scope_id = ${scopeId} and c.id = gone.source_customer_id
    where gone.scope_id = ${scopeId}
      and gone.settled_at is null
      and gone.kind = 'merge'
      and c.merged_into is not null
    union
    select walk.id, c.merged_into
    from walk
    join customer c on c.scope_id = ${scopeId} and c.id = walk.survivor
    where c.merged_into is not null
  ), survivor (id, survivor) as materialized (
    select walk.id, walk.survivor
    from walk
    join customer c on c.scope_id = ${scopeId} and c.id = walk.survivor
    where c.merged_into is null
  )`

export const anyMerged = `
  select exists (
    select
    from customer_change
    where scope_id = $1
      and settled_at is null
      and kind = 'merge'
  ) as merged`

/** `with` and what the other parts of a statement are made of; `survivors` comes first where it is needed. */
export function withSource({ scopeId, merged }: Source, params: Params, ctes: string[]): string {
  const all = [...(merged ? [survivors(`${params.add(scopeId)}::int`)] : []), ...ctes]
  return all.length === 0 ? '' : `with recursive ${all.join(', ')}`
}

/**
 * `from … where …` of the events of one name (null: of all): `e` the event, `c` its customer where asked for. By the index
 * event_name_time, without reading rows where only time, position and customer are looked at.
 */
export function eventsOf(
  source: Source,
  params: Params,
  {
    event,
    filters,
    customers = false,
  }: { event: string | string[] | null; filters: QueryFilter[]; customers?: boolean },
): string {
  const { scopeId, appId, range, merged } = source
  const all = [...source.filters, ...filters]
  const scope = `${params.add(scopeId)}::int`
  const joined = customers || all.some((filter) => filter.scope === 'customer')
  return `
    from event e
    ${merged ? 'left join survivor s on s.id = e.customer_id' : ''}
    ${joined ? `left join customer c on c.scope_id = ${scope} and c.id = ${customerOf(merged)}` : ''}
    where e.scope_id = ${scope}
      and e.ts >= ${instant(params, range.start)}
      and e.ts < ${instant(params, range.end)}
      ${event === null ? '' : `and e.event = ${Array.isArray(event) ? `any (${params.add(event)}::text[])` : `${params.add(event)}::text`}`}
      ${appId === null ? '' : `and e.app_id = ${params.add(appId)}::text`}
      ${all.map((filter) => `and ${matches(source, params, filter)}`).join('\n')}`
}

export function matches(source: Source, params: Params, filter: QueryFilter): string {
  if (filter.scope === 'membership') {
    const inside = source.segments.isMember({
      scopeId: `${params.add(source.scopeId)}::int`,
      customer: customerOf(source.merged),
      segment: `${params.add(filter.segment)}::text`,
    })
    return filter.is ? `(${inside})` : `not (${inside})`
  }
  return conditionOf(params, filter.scope === 'event' ? 'e.props' : 'c.properties', filter)
}

export function instant(params: Params, ms: number): string {
  return `${params.add(new Date(ms).toISOString())}::timestamptz`
}

/** Number, from 1, of the bucket an event lies in. */
export function bucket(params: Params, edges: readonly number[]): string {
  return `width_bucket(e.ts, ${params.add(edges.map((edge) => new Date(edge).toISOString()))}::timestamptz[])`
}
