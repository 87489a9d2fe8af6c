import { float8s, int4s, texts } from '../../db/binary-array.ts'
import type { Sql, Tx } from '../../db/pool.ts'
import { raw } from '../../db/raw.ts'
import { eventNamesMax, eventPropertiesMax, eventValuesLookedAt, eventValuesMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { FoundName } from './discovery.ts'

export interface FoundProperty {
  event: string
  property: string
  types: number
  at: number
}

const ms = (column: string) => `round(date_part('epoch', ${column}) * 1000)`
const instant = (at: string) => `'epoch'::timestamptz + ${at} * interval '1 millisecond'`

const seen = {
  name: 'seen_event_names',
  text: `
    select n.event, ${ms('n.last_seen')}, p.property, p.types
    from unnest($2::text[]) as wanted (event)
    cross join lateral (
      select event, last_seen
      from event_name
      where scope_id = $1
        and event = wanted.event
      offset 0
    ) n
    left join lateral (
      select property, types
      from event_property
      where scope_id = $1
        and event = wanted.event
      offset 0
    ) p on true`,
}

/** What is stored of these names. */
export async function seenNames(
  tx: Tx,
  { scopeId }: Scope,
  names: readonly FoundName[],
): Promise<Map<string, { at: number; properties: Map<string, number> }>> {
  const stored = new Map<string, { at: number; properties: Map<string, number> }>()
  for (const [event, at, property, types] of await raw(tx.client, seen, [
    scopeId,
    texts(names.map(({ event }) => event)),
  ])) {
    const entry = stored.get(event ?? '') ?? { at: Number(at), properties: new Map() }
    if (property != null) entry.properties.set(property, Number(types))
    stored.set(event ?? '', entry)
  }
  return stored
}

/** A new name only while there is room; one more than is shown tells that there are more. */
const upsertNames = {
  name: 'add_event_names',
  text: `
    insert into event_name as n (scope_id, event, first_seen, last_seen)
    select $1::int, event, ${instant('at')}, ${instant('at')}
    from (
      select item.event, item.at, row_number() over (partition by known.event is null order by item.event) as nth,
        known.event is not null as known
      from unnest($2::text[], $3::float8[]) as item (event, at)
      left join event_name known on known.scope_id = $1::int and known.event = item.event
    ) found
    where known
      or nth <= ${eventNamesMax + 1} - (select count(*) from event_name where scope_id = $1::int)
    on conflict (scope_id, event) do update
    set last_seen = greatest(n.last_seen, excluded.last_seen)`,
}

const upsertProperties = {
  name: 'add_event_properties',
  text: `
    insert into event_property as p (scope_id, event, property, types, last_seen)
    select $1::int, event, property, types, ${instant('at')}
    from (
      select item.event, item.property, item.types, item.at, known.property is not null as known,
        row_number() over (partition by item.event, known.property is null order by item.property) as nth
      from unnest($2::text[], $3::text[], $4::int[], $5::float8[]) as item (event, property, types, at)
      join event_name named on named.scope_id = $1::int and named.event = item.event
      left join event_property known
        on known.scope_id = $1::int and known.event = item.event and known.property = item.property
    ) found
    where known
      or nth <= ${eventPropertiesMax + 1} - (
        select count(*)
        from event_property had
        where had.scope_id = $1::int
          and had.event = found.event
      )
    on conflict (scope_id, event, property) do update
    set types = p.types | excluded.types,
      last_seen = greatest(p.last_seen, excluded.last_seen)`,
}

export async function addNames(
  tx: Tx,
  { scopeId }: Scope,
  names: readonly FoundName[],
  properties: readonly FoundProperty[],
): Promise<void> {
  await raw(tx.client, upsertNames, [
    scopeId,
    texts(names.map(({ event }) => event)),
    float8s(names.map(({ at }) => at)),
  ])
  if (properties.length === 0) return
  await raw(tx.client, upsertProperties, [
    scopeId,
    texts(properties.map(({ event }) => event)),
    texts(properties.map(({ property }) => property)),
    int4s(properties.map(({ types }) => types)),
    float8s(properties.map(({ at }) => at)),
  ])
}

export interface NameRow {
  event: string
  first_seen: Date
  last_seen: Date
}

/** One more than are shown, if there are more. */
export function selectNames(sql: Sql, { scopeId }: Scope): Promise<NameRow[]> {
  return sql.query<NameRow>(
    `select event, first_seen, last_seen
    from event_name
    where scope_id = $1
    order by event
    limit ${eventNamesMax + 1}`,
    [scopeId],
  )
}

export interface PropertyRow {
  property: string
  types: number
  last_seen: Date
}

export function selectProperties(sql: Sql, { scopeId }: Scope, event: string): Promise<PropertyRow[]> {
  return sql.query<PropertyRow>(
    `select property, types, last_seen
    from event_property
    where scope_id = $1
      and event = $2
    order by property
    limit ${eventPropertiesMax + 1}`,
    [scopeId, event],
  )
}

export interface ValueRow {
  value: string | number | boolean | null
  count: number
}

/** Values of the newest events of a name, the most frequent first. Backwards through the index event_name_time. */
export function selectValues(
  sql: Sql,
  { scopeId }: Scope,
  { event, property, prefix }: { event: string; property: string; prefix: string },
): Promise<ValueRow[]> {
  return sql.query<ValueRow>(
    `select value, count(*)::float8 as count
    from (
      select props -> $3::text as value
      from event
      where scope_id = $1
        and event = $2
      order by ts desc, pos desc
      limit ${eventValuesLookedAt}
    ) newest
    where jsonb_typeof(value) in ('string', 'number', 'boolean', 'null')
      and length(value #>> '{}') <= 200
      and starts_with(value #>> '{}', $4::text)
    group by value
    order by count(*) desc, value
    limit ${eventValuesMax}`,
    [scopeId, event, property, prefix],
  )
}
