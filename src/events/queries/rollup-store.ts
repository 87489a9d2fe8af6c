import { float8s, int8s, texts } from '../../db/binary-array.ts'
import type { Sql, Tx } from '../../db/pool.ts'
import { raw } from '../../db/raw.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Slot } from './rollup.ts'
import type { Cell } from './trend-store.ts'

const instant = (ms: string) => `'epoch'::timestamptz + ${ms} * interval '1 millisecond'`

/**
 * Beyond this a sum of doubles can run over, which PostgreSQL answers with an error and which no event may do to a lane: such
 * a slot keeps no sum, for good.
 */
export const summableMax = 1e290

/** One upsert for each slot a slice touches: live slices touch a few dozen. */
const add = {
  name: 'add_to_rollup',
  text: `
    insert into event_rollup as r (scope_id, event, slot, app_id, count, valued, value_sum)
    select $1::int, event, ${instant('slot')}, app_id, count, valued, value_sum
    from unnest($2::text[], $3::text[], $4::float8[], $5::bigint[], $6::bigint[], $7::float8[])
      as item (event, app_id, slot, count, valued, value_sum)
    on conflict (scope_id, event, slot, app_id) do update
    set count = r.count + excluded.count,
      valued = r.valued + excluded.valued,
      value_sum = case when abs(r.value_sum) <= ${summableMax} then r.value_sum + excluded.value_sum end`,
}

export async function addToRollup(tx: Tx, { scopeId }: Scope, slots: readonly Slot[]): Promise<void> {
  await raw(tx.client, add, [
    scopeId,
    texts(slots.map(({ event }) => event)),
    texts(slots.map(({ appId }) => appId)),
    float8s(slots.map(({ at }) => at)),
    int8s(slots.map(({ count }) => count)),
    int8s(slots.map(({ valued }) => valued)),
    float8s(slots.map(({ sum }) => sum)),
  ])
}

/** Takes events out of the counts again, in the transaction that removes them. `rows`: what they are read from. */
export const uncount = (rows: string) => `
    update event_rollup r
    set count = r.count - gone.count,
      valued = r.valued - gone.valued,
      value_sum = case when r.valued = gone.valued then 0 else r.value_sum - gone.value_sum end
    from (
      select scope_id, event, date_bin('15 minutes', ts, 'epoch') as slot, coalesce(app_id, '') as app_id, count(*) as count,
        count(value) as valued, coalesce(sum(value) filter (where abs(value) <= ${summableMax}), 0) as value_sum
      from ${rows}
      group by 1, 2, 3, 4
    ) gone
    where r.scope_id = gone.scope_id
      and r.event = gone.event
      and r.slot = gone.slot
      and r.app_id = gone.app_id`

interface Asked {
  event: string
  appId: string | null
  edges: readonly number[]
  /** `[start, end)` of the range, at the beginning of slots. */
  start: number
  end: number
  value: 'count' | 'sum' | 'avg'
}

const values = {
  count: 'sum(count)::float8',
  sum: 'sum(value_sum)',
  avg: 'sum(value_sum) / nullif(sum(valued), 0)::float8',
}

/**
 * The cells of a trend, from slots; null when one of them has no sum. By the primary key: 30 days of one app are 2,880 rows.
 */
export async function selectRollup(sql: Sql, { scopeId }: Scope, asked: Asked): Promise<Cell[] | null> {
  const { event, appId, edges, start, end, value } = asked
  const rows = await sql.query<Cell & { unsummed: boolean }>(
    `select 0 as group, width_bucket(slot, $5::timestamptz[]) as bucket, sum(count)::float8 as count,
      sum(valued)::float8 as numbers, bool_or(valued > 0 and value_sum is null) as unsummed,
      case when not bool_or(value_sum is null) or $7::bool then ${values[value]} end as value
    from event_rollup
    where scope_id = $1
      and event = $2
      and slot >= $3::timestamptz
      and slot < $4::timestamptz
      and ($6::text is null or app_id = $6)
    group by 2
    order by 2`,
    [
      ...[scopeId, event, new Date(start).toISOString(), new Date(end).toISOString()],
      ...[edges.map((edge) => new Date(edge).toISOString()), appId, value === 'count'],
    ],
    `event_rollup_${value}`,
  )
  return value !== 'count' && rows.some(({ unsummed }) => unsummed) ? null : rows
}
