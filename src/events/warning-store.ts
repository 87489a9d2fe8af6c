import { float8s, int4s, int8s, texts, uuids } from '../db/binary-array.ts'
import type { Sql, Tx } from '../db/pool.ts'
import { raw } from '../db/raw.ts'
import { warningSamplesMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { countWarnings, type Noted } from './count-warnings.ts'

/** to_timestamp() goes through seconds as a double; this is exact in milliseconds. */
const instant = (ms: string) => `'epoch'::timestamptz + ${ms} * interval '1 millisecond'`

const countHours = {
  name: 'count_warnings',
  text: `
    insert into event_warning as known (scope_id, code, hour, count, first_seen, last_seen)
    select $1::int, code, ${instant('hour')}, count, ${instant('first')}, ${instant('last')}
    from unnest($2::text[], $3::float8[], $4::bigint[], $5::float8[], $6::float8[])
      as item (code, hour, count, first, last)
    on conflict (scope_id, code, hour) do update
    set count = known.count + excluded.count,
      first_seen = least(known.first_seen, excluded.first_seen),
      last_seen = greatest(known.last_seen, excluded.last_seen)`,
}

const keepSamples = {
  name: 'keep_warning_samples',
  text: `
    with counted as (
      insert into event_warning_code as known (scope_id, code, samples)
      select $1::int, code, samples
      from unnest($2::text[], $3::bigint[]) as item (code, samples)
      on conflict (scope_id, code) do update
      set samples = known.samples + excluded.samples
      returning code, samples
    )
    insert into event_warning_sample (scope_id, code, slot, n, seen_at, uuid, event, distinct_id, detail)
    select $1::int, item.code, (counted.samples - back) % ${warningSamplesMax}, counted.samples - back, ${instant('at')},
      uuid, event, distinct_id, detail
    from unnest($4::text[], $5::int[], $6::float8[], $7::uuid[], $8::text[], $9::text[], $10::text[])
      as item (code, back, at, uuid, event, distinct_id, detail)
    join counted on counted.code = item.code
    on conflict (scope_id, code, slot) do update
    set n = excluded.n,
      seen_at = excluded.seen_at,
      uuid = excluded.uuid,
      event = excluded.event,
      distinct_id = excluded.distinct_id,
      detail = excluded.detail`,
}

/** Two statements whatever their number, and none when there are none. Only the lane's transaction writes these rows. */
export function insertWarnings(tx: Tx, { scopeId }: Scope, noted: readonly Noted[]): Promise<unknown>[] {
  if (noted.length === 0) return []
  const { hours, codes, samples } = countWarnings(noted)
  return [
    raw(tx.client, countHours, [
      scopeId,
      texts(hours.map(({ code }) => code)),
      float8s(hours.map(({ hour }) => hour)),
      int8s(hours.map(({ count }) => count)),
      float8s(hours.map(({ first }) => first)),
      float8s(hours.map(({ last }) => last)),
    ]),
    raw(tx.client, keepSamples, [
      scopeId,
      texts(codes.map(({ code }) => code)),
      int8s(codes.map(({ samples: count }) => count)),
      texts(samples.map(({ code }) => code)),
      int4s(samples.map(({ back }) => back)),
      float8s(samples.map(({ at }) => at)),
      uuids(samples.map(({ uuid }) => uuid)),
      texts(samples.map(({ event }) => event)),
      texts(samples.map(({ distinctId }) => distinctId)),
      texts(samples.map(({ detail }) => detail)),
    ]),
  ]
}

/** What happened in a range of hours under one code, with the newest events it happened to. */
export interface EventWarning {
  code: string
  count: number
  firstSeen: Date
  lastSeen: Date
  samples: { uuid: string; event: string; distinctId: string; detail: string | null; seenAt: Date }[]
}

export interface WarningQuery {
  code: string | null
  /** Hours that touch the range count; null: open. */
  start: Date | null
  end: Date | null
}

/** By code. At most 100 samples for each of the few codes there are. */
export async function listWarnings(
  sql: Sql,
  { scopeId }: Scope,
  { code, start, end }: WarningQuery,
): Promise<EventWarning[]> {
  const rows = await sql.query<{
    code: string
    count: number
    firstSeen: Date
    lastSeen: Date
    samples: string | null
  }>(
    `select code, sum(count)::float8 as count, min(first_seen) as "firstSeen", max(last_seen) as "lastSeen",
      (
        select json_agg(json_build_object('uuid', uuid, 'event', event, 'distinctId', distinct_id, 'detail', detail,
          'seenAt', date_part('epoch', seen_at) * 1000) order by n desc)::text
        from event_warning_sample sample
        where sample.scope_id = $1
          and sample.code = event_warning.code
          and ($3::timestamptz is null or seen_at >= $3)
          and ($4::timestamptz is null or seen_at < $4)
      ) as samples
    from event_warning
    where scope_id = $1
      and ($2::text is null or code = $2)
      and ($3::timestamptz is null or hour > $3 - interval '1 hour')
      and ($4::timestamptz is null or hour < $4)
    group by code
    order by code`,
    [scopeId, code, start, end],
  )
  return rows.map(({ samples, ...row }) => ({ ...row, samples: samplesOf(samples) }))
}

function samplesOf(json: string | null): EventWarning['samples'] {
  // Built by the statement above.
  const rows = JSON.parse(json ?? '[]') as (Omit<EventWarning['samples'][number], 'seenAt'> & { seenAt: number })[]
  return rows.map((row) => ({ ...row, seenAt: new Date(row.seenAt) }))
}
