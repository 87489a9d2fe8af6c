import type { Tx } from '../../db/pool.ts'
import { enrolmentTimesMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'

export interface EnrolmentKey {
  experienceId: number
  customerId: string
}

/** Where enrolments of a customer in an Experience stand in line: made where missing, locked by key. By `experience customer`. */
export async function lockEnrolments(
  tx: Tx,
  { scopeId }: Scope,
  keys: readonly EnrolmentKey[],
): Promise<Map<string, { count: number; times: number[] }>> {
  if (keys.length === 0) return new Map()
  const sorted = sortedKeys(keys)
  const arrays = [sorted.map(({ experienceId }) => experienceId), sorted.map(({ customerId }) => customerId)]
  await tx.query(
    `insert into experience_enrolment (scope_id, experience_id, customer_id)
     select $1, experience_id, customer_id
     from unnest($2::int[], $3::uuid[]) with ordinality as u(experience_id, customer_id, ord)
     order by ord
     on conflict do nothing`,
    [scopeId, ...arrays],
  )
  const rows = await tx.query<{ experience_id: number; customer_id: string; count: number; times: bigint[] }>(
    `select e.experience_id, e.customer_id, e.count, e.times
     from unnest($2::int[], $3::uuid[]) as u(experience_id, customer_id)
     cross join lateral (
       select experience_id, customer_id, count, times
       from experience_enrolment
       where scope_id = $1
         and experience_id = u.experience_id
         and customer_id = u.customer_id
       limit 1
       for update
     ) e`,
    [scopeId, ...arrays],
  )
  return new Map(
    rows.map((row) => [`${row.experience_id} ${row.customer_id}`, { count: row.count, times: row.times.map(Number) }]),
  )
}

/** Under the lock. One customer may enter an Experience several times in a batch. */
export async function countEnrolments(
  tx: Tx,
  { scopeId }: Scope,
  counted: readonly (EnrolmentKey & { at: number })[],
): Promise<void> {
  if (counted.length === 0) return
  await tx.query(
    `update experience_enrolment e
     set count = e.count + u.n,
       last_enrolled_at_ms = greatest(e.last_enrolled_at_ms, u.last),
       times = array(select t from unnest(e.times || u.times) as t order by t desc limit ${enrolmentTimesMax})
     from (
       select experience_id, customer_id, count(*) as n, max(at) as last, array_agg(at) as times
       from unnest($2::int[], $3::uuid[], $4::bigint[]) as u(experience_id, customer_id, at)
       group by experience_id, customer_id
     ) u
     where e.scope_id = $1
       and e.experience_id = u.experience_id
       and e.customer_id = u.customer_id`,
    [
      scopeId,
      counted.map(({ experienceId }) => experienceId),
      counted.map(({ customerId }) => customerId),
      counted.map(({ at }) => at),
    ],
  )
}

function sortedKeys(keys: readonly EnrolmentKey[]): EnrolmentKey[] {
  const unique = new Map(keys.map((key) => [`${key.experienceId} ${key.customerId}`, key]))
  return [...unique.values()].toSorted(
    (a, b) => a.experienceId - b.experienceId || (a.customerId < b.customerId ? -1 : 1),
  )
}
