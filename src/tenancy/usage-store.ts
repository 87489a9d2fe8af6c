import type { Sql } from '../db/pool.ts'
import type { Page } from '../kernel/page.ts'

/** What one environment of a project was used for on one day (UTC). */
export interface UsageDay {
  /** `2026-11-20`. */
  day: string
  requests: bigint
  events: bigint
  decisions: bigint
}

export interface UsageIncrement extends UsageDay {
  scopeId: number
}

/** In the order of the key, so that two processes can't wait for each other. */
export async function addUsage(sql: Sql, increments: UsageIncrement[]): Promise<void> {
  const sorted = increments.toSorted((a, b) => a.scopeId - b.scopeId || a.day.localeCompare(b.day))
  await sql.query(
    `insert into usage_stat (scope_id, day, requests, events, decisions)
     select * from unnest($1::int[], $2::date[], $3::bigint[], $4::bigint[], $5::bigint[])
     on conflict (scope_id, day) do update
     set requests = usage_stat.requests + excluded.requests,
       events = usage_stat.events + excluded.events,
       decisions = usage_stat.decisions + excluded.decisions`,
    [
      sorted.map(({ scopeId }) => scopeId),
      sorted.map(({ day }) => day),
      sorted.map(({ requests }) => requests),
      sorted.map(({ events }) => events),
      sorted.map(({ decisions }) => decisions),
    ],
  )
}

/** Newest first, days without use left out; `after` is a day. */
export function selectUsage(
  sql: Sql,
  scopeId: number,
  { from, to }: { from: string | null; to: string | null },
  { limit, after }: Page,
): Promise<UsageDay[]> {
  return sql.query<UsageDay>(
    `select day::text, requests, events, decisions
     from usage_stat
     where scope_id = $1
       and ($2::date is null or day >= $2)
       and ($3::date is null or day <= $3)
       and ($4::date is null or day < $4)
     order by day desc
     limit $5`,
    [scopeId, from, to, after, limit],
  )
}
