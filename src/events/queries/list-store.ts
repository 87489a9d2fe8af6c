import { hash } from 'node:crypto'
import type { Sql } from '../../db/pool.ts'
import { eventPageBytesMax, eventPositionsScanMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { JsonObject, Warning } from '../types.ts'
import { createParams, type Params } from './params.ts'
import { customerOf, survivors } from './source-store.ts'

/** An event as it is stored, with the customer it belongs to now. Instants are Unix milliseconds. */
export interface StoredEvent {
  position: bigint
  uuid: string
  event: string
  distinctId: string
  customerId: string
  appId: string | null
  at: number
  receivedAt: number
  properties: JsonObject
  value: number | null
  entityId: string | null
  trust: 'device' | 'server'
  recognised: boolean
  historical: boolean
  merge: { status: string; reason?: string } | null
  warnings: Warning[]
}

/** In order. `isCut`: there are more, but these are large enough for one page. */
export interface EventRows {
  events: StoredEvent[]
  isCut: boolean
}

export interface EventFilters {
  appId: string | null
  /** Null: of every name. */
  events: readonly string[] | null
  distinctId: string | null
  /** All records that resolve to the customer; null: of any customer. */
  customerIds: readonly string[] | null
  /** Half-open, of the timestamp. */
  start: number | null
  end: number | null
}

const columns = `
  e.pos, e.uuid, e.event, e.distinct_id, e.app_id, round(date_part('epoch', e.ts) * 1000) as at,
  round(date_part('epoch', e.received_at) * 1000) as received_at, e.props, e.value, e.entity_id, e.trust, e.recognised,
  e.historical, e.merge, e.warnings`

interface EventRow {
  found: bigint
  pos: bigint
  uuid: string
  customer_id: string
  distinct_id: string
  app_id: string | null
  event: string
  at: number
  received_at: number
  props: JsonObject
  value: number | null
  entity_id: string | null
  trust: number
  recognised: boolean
  historical: boolean
  merge: StoredEvent['merge']
  warnings: Warning[] | null
}

const instant = (params: Params, ms: number) => `${params.add(new Date(ms).toISOString())}::timestamptz`

/**
 * By time, after the last event of the page before. The index is the customer's, the name's or the scope's
 * (event_customer_time, event_name_time, event_time), read in its order; what else is asked for is filtered on the way. Each
 * record of a customer is looked up by itself: of several, no index gives the order.
 */
export async function selectByTime(
  sql: Sql,
  scope: Scope,
  filters: EventFilters,
  page: {
    newestFirst: boolean
    limit: number
    bound: bigint
    after: { at: number; position: bigint } | null
    merged: boolean
  },
): Promise<EventRows> {
  const params = createParams()
  const { newestFirst, limit, bound, after, merged } = page
  const { customerIds, ...others } = filters
  const conditions = [
    ...conditionsOf(params, scope, { ...others, customerIds: null }),
    ...(customerIds === null ? [] : ['e.customer_id = record.id']),
    `e.pos <= ${params.add(bound)}::bigint`,
    ...(after
      ? [
          `(e.ts, e.pos) ${newestFirst ? '<' : '>'} (${instant(params, after.at)}, ${params.add(after.position)}::bigint)`,
        ]
      : []),
  ]
  const direction = newestFirst ? 'desc' : 'asc'
  const records = customerIds === null ? null : `unnest(${params.add(customerIds)}::uuid[]) record (id)`
  const order = `ts ${direction}, pos ${direction}`
  return selectEvents(sql, scope, { params, merged, conditions, records, order, limit, kept: isUsual(filters) })
}

/** Of the positions `(from, to]`, in their order. By the primary key. */
export async function selectByPosition(
  sql: Sql,
  scope: Scope,
  filters: EventFilters,
  { from, to, limit, merged }: { from: bigint; to: bigint; limit: number; merged: boolean },
): Promise<EventRows> {
  const params = createParams()
  const conditions = [
    ...conditionsOf(params, scope, filters),
    `e.pos > ${params.add(from)}::bigint`,
    `e.pos <= ${params.add(to)}::bigint`,
  ]
  const kept = isUsual(filters)
  return selectEvents(sql, scope, { params, merged, conditions, records: null, order: 'pos', limit, kept })
}

/** The event of a uuid, once it is applied. Through event_seen, which also knows the day and so the partition. */
export async function selectByUuid(
  sql: Sql,
  scope: Scope,
  uuid: string,
  merged: boolean,
): Promise<StoredEvent | undefined> {
  const [seen] = await sql.query<{ pos: bigint; day: string }>(
    `select pos, received_day::text as day
    from event_seen
    where scope_id = $1
      and uuid = $2`,
    [scope.scopeId, uuid],
  )
  if (!seen) return undefined
  const params = createParams()
  const day = `${params.add(seen.day)}::date`
  const conditions = [
    `e.scope_id = ${params.add(scope.scopeId)}::int`,
    `e.pos = ${params.add(seen.pos)}::bigint`,
    `e.received_at >= ${day}::timestamp at time zone 'UTC'`,
    `e.received_at < (${day} + 1)::timestamp at time zone 'UTC'`,
  ]
  const { events } = await selectEvents(sql, scope, {
    params,
    merged,
    conditions,
    records: null,
    order: 'pos',
    limit: 1,
    kept: true,
  })
  return events[0]
}

/** How far a page by position looks. */
export function lastLookedAt(from: bigint, newest: bigint): bigint {
  const far = from + BigInt(eventPositionsScanMax)
  return far < newest ? far : newest
}

/** Asked for all the time, in few shapes. */
function isUsual({ appId, start, end }: EventFilters): boolean {
  return appId === null && start === null && end === null
}

function conditionsOf(params: Params, { scopeId }: Scope, filters: EventFilters): string[] {
  const { appId, events, distinctId, customerIds, start, end } = filters
  return [
    `e.scope_id = ${params.add(scopeId)}::int`,
    ...(appId === null ? [] : [`e.app_id = ${params.add(appId)}::text`]),
    ...(events === null ? [] : [oneOf(params, 'e.event', 'text', events)]),
    ...(distinctId === null ? [] : [`e.distinct_id = ${params.add(distinctId)}::text`]),
    ...(customerIds === null ? [] : [oneOf(params, 'e.customer_id', 'uuid', customerIds)]),
    ...(start === null ? [] : [`e.ts >= ${instant(params, start)}`]),
    ...(end === null ? [] : [`e.ts < ${instant(params, end)}`]),
  ]
}

/** Of one value the index gives the order too. */
function oneOf(params: Params, column: string, type: 'text' | 'uuid', values: readonly string[]): string {
  const [only, ...more] = values
  return only !== undefined && more.length === 0
    ? `${column} = ${params.add(only)}::${type}`
    : `${column} = any (${params.add(values)}::${type}[])`
}

/**
 * `kept`: prepared under a name made of its text, which differs by what is asked for and not by the values. Over the months
 * of a few years planning costs more than reading a page.
 */
async function selectEvents(
  sql: Sql,
  { scopeId }: Scope,
  wanted: {
    params: Params
    merged: boolean
    conditions: string[]
    /** `e.customer_id = record.id` is among the conditions. */
    records: string | null
    order: string
    limit: number
    kept: boolean
  },
): Promise<EventRows> {
  const { params, merged, conditions, records, order, limit, kept } = wanted
  const inOrder = order.replaceAll(/\b(?=ts|pos)/g, 'e.')
  const limited = `
    order by ${inOrder}
    limit ${params.add(limit)}::int`
  const next = `
    select *
    from event e
    where ${conditions.join(' and ')}
    ${limited}`
  const text = `
    ${merged ? `with recursive ${survivors(`${params.add(scopeId)}::int`)}` : ''}
    select ${columns}, e.found, ${customerOf(merged)} as customer_id
    from (
      select *, count(*) over () as found,
        sum(octet_length(props::text)) over (order by ${order} rows unbounded preceding) - octet_length(props::text) as bytes_before
      from (${records === null ? next : `select e.* from ${records} cross join lateral (${next}) e ${limited}`}) next
    ) e
    ${merged ? 'left join survivor s on s.id = e.customer_id' : ''}
    where e.bytes_before < ${eventPageBytesMax}
    order by ${inOrder}`
  const rows = await sql.query<EventRow>(text, params.values, kept ? `events_${hash('sha1', text)}` : undefined)
  return { isCut: rows.length < Number(rows[0]?.found ?? 0), events: rows.map(eventOf) }
}

function eventOf(row: EventRow): StoredEvent {
  return {
    position: row.pos,
    uuid: row.uuid,
    event: row.event,
    distinctId: row.distinct_id,
    customerId: row.customer_id,
    appId: row.app_id,
    at: row.at,
    receivedAt: row.received_at,
    properties: row.props,
    value: row.value,
    entityId: row.entity_id,
    trust: row.trust === 1 ? 'server' : 'device',
    recognised: row.recognised,
    historical: row.historical,
    merge: row.merge,
    warnings: row.warnings ?? [],
  }
}
