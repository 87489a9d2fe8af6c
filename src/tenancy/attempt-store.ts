import type { Sql } from '../db/pool.ts'

export interface Counted {
  count: number
  resetsInMs: number
}

/** Counts one attempt for each subject. Sorted, so that two requests never wait for each other's second row. */
export async function countAttempts(
  sql: Sql,
  subjects: Buffer[],
  { max, windowMs }: { max: number; windowMs: number },
): Promise<Counted[]> {
  return sql.query<Counted>(
    `insert into attempt as a (subject, count, resets_at)
     select subject, 1, now() + $2 * interval '1 millisecond'
     from unnest($1::bytea[]) as subject
     order by subject
     on conflict (subject) do update
     set count = case when a.resets_at <= now() then 1 else least(a.count + 1, $3 + 1) end,
       resets_at = case when a.resets_at <= now() then excluded.resets_at else a.resets_at end
     returning count, (extract(epoch from resets_at - now()) * 1000)::int as "resetsInMs"`,
    [subjects.toSorted((a, b) => a.compare(b)), windowMs, max],
  )
}
