import type { Sql } from '../db/pool.ts'

export interface Take {
  /** Hash of the credential. */
  key: string
  perMinute: number
  /** What has to be left after it. */
  leave: number
  count: number
}

/**
 * Takes calls out of a bucket that all processes share; empty when it does not hold enough. The database's clock fills it,
 * so that no process gives itself more.
 */
export async function takeCalls(sql: Sql, { key, perMinute, leave, count }: Take): Promise<{ level: number }[]> {
  return sql.query<{ level: number }>(
    `insert into store_quota as quota (key, level, filled_at)
     values ($1, $2::float8 - $4::float8, clock_timestamp())
     on conflict (key) do update
     set level = least($2, quota.level + extract(epoch from clock_timestamp() - quota.filled_at) * $2 / 60) - $4,
         filled_at = clock_timestamp()
     where least($2, quota.level + extract(epoch from clock_timestamp() - quota.filled_at) * $2 / 60) - $4 >= $3
     returning level`,
    [key, perMinute, leave, count],
  )
}
