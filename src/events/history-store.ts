import type pg from 'pg'
import { type RawRow, raw, type Statement } from '../db/raw.ts'
import { sliceBytesMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import type { EventPayload, JsonObject, LoggedEvent } from './types.ts'

/** What took a position of a lane, as it is stored: an event with what was decided about its merge, or a command. */
export type Happening =
  | { kind: 'event'; pos: bigint; event: LoggedEvent; merge: { status: string; reason?: string } | null }
  | { kind: 'command'; pos: bigint; name: string; body: JsonObject }

const rowsAtOnce = 500

/** By the primary key of each month and of `command`, merged in the order of positions. */
const read: Statement = {
  name: 'read_history',
  text: `
    select pos, name, body, is_event, uuid, distinct_id, app_id, at_ms, received_ms, value, entity_id, server, recognised,
      historical, merge, origin
    from (
      select *, sum(octet_length(body)) over (order by pos rows unbounded preceding) - octet_length(body) as bytes_before
      from (
        select *
        from (
          (select pos, event as name, props::text as body, true as is_event, uuid, distinct_id, app_id,
             date_part('epoch', ts) * 1000 as at_ms, date_part('epoch', received_at) * 1000 as received_ms, value, entity_id,
             trust = 1 as server, recognised, historical, merge::text as merge, journey_origin::text as origin
           from event
           where scope_id = $1
             and pos > $2
             and pos <= $3
           order by pos
           limit ${rowsAtOnce})
          union all
          (select pos, kind, body::text, false, null, null, null, null, null, null, null, null, null, null, null, null
           from command
           where scope_id = $1
             and pos > $2
             and pos <= $3
           order by pos
           limit ${rowsAtOnce})
        ) both_kinds
        order by pos
        limit ${rowsAtOnce}
      ) next
    ) measured
    where bytes_before < ${sliceBytesMax}
    order by pos`,
}

/** The next happenings behind `after`, up to `through`, in the order of their positions; none: there are no more. */
export async function selectHistory(
  client: pg.ClientBase,
  { scopeId }: Scope,
  { after, through }: { after: bigint; through: bigint },
): Promise<Happening[]> {
  return (await raw(client, read, [scopeId, String(after), String(through)])).map(happeningOf)
}

function happeningOf(row: RawRow): Happening {
  const [pos, name, text, isEvent] = row
  const body = JSON.parse(text ?? '{}') as JsonObject // stored by us
  if (isEvent !== 't') return { kind: 'command', pos: BigInt(pos ?? 0), name: name ?? '', body }
  const merge = row[14]
  return {
    kind: 'event',
    pos: BigInt(pos ?? 0),
    event: eventOf(row, name ?? '', body),
    merge: merge == null ? null : (JSON.parse(merge) as { status: string; reason?: string }), // stored by us
  }
}

/** Directives sent beside the properties were folded into them when the event was stored. */
function eventOf(row: RawRow, name: string, properties: JsonObject): LoggedEvent {
  const [, , , , uuid, distinctId, appId, atMs, receivedMs, value, entityId, server, recognised, historical, , origin] =
    row
  const at = Math.round(Number(atMs))
  const payload: EventPayload = {
    ...{ event: name, distinct_id: distinctId ?? '', uuid: uuid ?? '', timestamp: new Date(at).toISOString() },
    properties,
    ...(value != null && { value: Number(value) }),
    ...(entityId != null && { entityId }),
    ...(origin != null && { journeyOrigin: JSON.parse(origin) as JsonObject }), // stored by us
    trust: server === 't' ? 'server' : 'device',
  }
  return {
    ...{ uuid: uuid ?? '', distinctId: distinctId ?? '', appId: appId ?? null, at },
    receivedAt: Math.round(Number(receivedMs)),
    live: historical !== 't',
    recognised: recognised === 't',
    payload,
  }
}

/** The position of the newest applied event or command. */
export async function selectLanePosition(client: pg.ClientBase, { scopeId }: Scope): Promise<bigint> {
  const { rows } = await client.query<{ pos: bigint }>('select pos from lane where id = $1', [scopeId])
  return rows[0]?.pos ?? 0n
}

/**
 * From when on all events of a project are stored, but for erased ones, in Unix milliseconds; null: since it exists. Months
 * of events are dropped whole, so what is stored without a gap begins with a month.
 */
export async function selectWholeSince(client: pg.ClientBase, { projectId }: Scope): Promise<number | null> {
  const { rows } = await client.query<{ since: number | null }>(
    `with month as (
       select to_timestamp(right(child.relname, 6) || ' UTC', 'YYYYMM TZ') as starts
       from pg_inherits
       join pg_class child on child.oid = inhrelid
       where inhparent = 'event'::regclass
     ), whole as (
       select max(starts) as starts
       from month
       where starts <= clock_timestamp()
         and not exists (
           select
           from month before
           where before.starts >= month.starts - interval '32 days'
             and before.starts < month.starts
         )
     )
     select case when p.created_at < whole.starts then round(extract(epoch from whole.starts) * 1000)::float8 end as since
     from project p, whole
     where p.id = $1`,
    [projectId],
  )
  return rows[0]?.since ?? null
}
