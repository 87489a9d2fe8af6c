import { int8s, uuids } from '../db/binary-array.ts'
import type { Sql } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'
import { survivors } from './queries/source-store.ts'

/** Somebody, from an instant on; Unix milliseconds. */
export interface Since {
  customerId: string
  fromMs: number
}

const instant = (ms: string) => `'epoch'::timestamptz + ${ms} * interval '1 millisecond'`

/**
 * The places in the list of those who did it within the window, both ends included, with what still stands under records that
 * were merged into them: one descent of the index event_customer_time in each month, which stops at the first hit. The
 * name is looked at outside, so that this index is the one that is read.
 */
export async function selectPerformers(
  sql: Sql,
  { scopeId }: Scope,
  { event, windowMs }: { event: string; windowMs: number },
  whom: readonly Since[],
): Promise<Set<number>> {
  const rows = await sql.query<{ n: bigint }>(
    `with recursive ${survivors('$1::int')}, asked as (
       select n, customer_id, from_ms
       from unnest($2::uuid[], $3::bigint[]) with ordinality as u(customer_id, from_ms, n)
     ), record as (
       select n, customer_id, from_ms
       from asked
       union all
       select a.n, s.id, a.from_ms
       from survivor s
       join asked a on a.customer_id = s.survivor
     )
     select distinct r.n
     from record r
     cross join lateral (
       select
       from (
         select e.event
         from event e
         where e.scope_id = $1
           and e.customer_id = r.customer_id
           and e.ts >= ${instant('r.from_ms')}
           and e.ts <= ${instant('(r.from_ms + $5::bigint)')}
         order by e.ts, e.pos
         offset 0
       ) own
       where own.event = $4
       limit 1
     ) one`,
    [
      scopeId,
      uuids(whom.map(({ customerId }) => customerId)),
      int8s(whom.map(({ fromMs }) => fromMs)),
      event,
      windowMs,
    ],
    'events_performers',
  )
  return new Set(rows.map(({ n }) => Number(n) - 1))
}
