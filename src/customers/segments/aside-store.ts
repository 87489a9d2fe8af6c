import { float8s, texts, uuids } from '../../db/binary-array.ts'
import type { Sql, Tx } from '../../db/pool.ts'
import { raw, type Statement } from '../../db/raw.ts'
import { segmentAsideErrorChars, segmentAsideMsMax, segmentAsideMsMin } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'

/** A customer that could not be looked at, and why. */
export interface Aside {
  customerId: string
  error: unknown
}

const writeAside: Statement = {
  name: 'segments_set_aside',
  text: `
    with item as (
      select id, error, 'epoch'::timestamptz + now_ms * interval '1 millisecond' as now
      from unnest($2::uuid[], $3::text[], $4::float8[]) as i(id, error, now_ms)
    ), aside as (
      insert into segment_aside (scope_id, customer_id, error, tries, since, retry_at)
      select $1, id, error, 1, now, now + ${segmentAsideMsMin} * interval '1 millisecond'
      from item
      on conflict (scope_id, customer_id) do update
      set error = excluded.error,
        tries = segment_aside.tries + case when segment_aside.retry_at <= excluded.since then 1 else 0 end,
        retry_at = case
          when segment_aside.retry_at <= excluded.since then excluded.since
            + least(${segmentAsideMsMin} * 2 ^ least(segment_aside.tries, 30), ${segmentAsideMsMax}) * interval '1 millisecond'
          else segment_aside.retry_at
        end
      returning customer_id, retry_at
    )
    insert into segment_timer (scope_id, customer_id, due_at, cause)
    select $1, customer_id, retry_at, 'recount'
    from aside
    on conflict (scope_id, customer_id) do update
    set due_at = excluded.due_at,
      cause = excluded.cause`,
}

/** They are counted again later: after a second, then after twice as long, up to an hour. */
export async function setAside(tx: Tx, scope: Scope, aside: readonly Aside[], now: number): Promise<void> {
  const ids = uuids(aside.map(({ customerId }) => customerId))
  const errors = texts(aside.map(({ error }) => wordsOf(error)))
  await raw(tx.client, writeAside, [scope.scopeId, ids, errors, float8s(aside.map(() => now))])
}

function wordsOf(error: unknown): string {
  const words = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return words.toWellFormed().replaceAll('\0', '').slice(0, segmentAsideErrorChars).toWellFormed()
}

const takeBack: Statement = {
  name: 'segments_take_back',
  text: `
    delete from segment_aside a
    using unnest($2::uuid[]) as i(id)
    where a.scope_id = $1
      and a.customer_id = i.id`,
}

export async function forgetAside(tx: Tx, scope: Scope, customerIds: string[]): Promise<void> {
  if (customerIds.length > 0) await raw(tx.client, takeBack, [scope.scopeId, uuids(customerIds)])
}

/** Customers that could not be looked at, of all lanes. */
export async function countAside(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ n: bigint }>('select count(*) as n from segment_aside')
  return Number(row?.n ?? 0)
}
