import type { Tx } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'
import type { ErasedNames } from './erase.ts'
import { uncount } from './queries/rollup-store.ts'

/** A place in one stream of the log; numbers as PostgreSQL writes them. */
export type LogPlace = {
  stream: 0 | 1
  gen: string
  xid: string
  seq: string
}

/** By the index event_customer_time of each month; then each row by its primary key. Gives how many there were. */
export async function repointEvents(
  tx: Tx,
  { scopeId }: Scope,
  { from, to, distinctIds, limit }: { from: string; to: string; distinctIds: string[] | null; limit: number },
): Promise<number> {
  const { rowCount } = await tx.client.query(
    `update event e
     set customer_id = $3
     from (
       select pos, received_at
       from event
       where scope_id = $1
         and customer_id = $2
         and ($4::text[] is null or distinct_id = any($4))
       limit $5
     ) next
     where e.scope_id = $1
       and e.pos = next.pos
       and e.received_at = next.received_at`,
    [scopeId, from, to, distinctIds, limit],
  )
  return rowCount ?? 0
}

export async function deleteEvents(tx: Tx, { scopeId }: Scope, customerIds: string[], limit: number): Promise<number> {
  const [deleted] = await tx.query<{ rows: number }>(
    `with gone as (
       delete from event e
       using (
         select pos, received_at
         from event
         where scope_id = $1
           and customer_id = any($2::uuid[])
         limit $3
       ) next
       where e.scope_id = $1
         and e.pos = next.pos
         and e.received_at = next.received_at
       returning e.scope_id, e.event, e.ts, e.app_id, e.value
     ), uncounted as (
       ${uncount('gone')}
     )
     select count(*)::int as rows
     from gone`,
    [scopeId, customerIds, limit],
  )
  return deleted?.rows ?? 0
}

/** Events that could not be applied, and samples of warnings. */
export async function deleteAside(tx: Tx, { scopeId }: Scope, distinctIds: string[]): Promise<void> {
  for (const table of ['dead_event', 'event_warning_sample']) {
    await tx.query(`delete from ${table} where scope_id = $1 and distinct_id = any($2::text[])`, [scopeId, distinctIds])
  }
}

/** The events of others stay, without the id. */
export async function eraseMentions(tx: Tx, { scopeId }: Scope, uuids: string[]): Promise<void> {
  await tx.query(
    `update event e
     set props = e.props - '$anon_distinct_id'
     from (
       select s.pos
       from unnest($2::uuid[]) as q(uuid)
       join event_seen s on s.scope_id = $1 and s.uuid = q.uuid
     ) seen
     where e.scope_id = $1
       and e.pos = seen.pos`,
    [scopeId, uuids],
  )
}

/** What a command did stays in the order of the lane; whom it named, and with what, goes. */
export async function eraseCommands(
  tx: Tx,
  { scopeId }: Scope,
  { customerIds, distinctIds }: ErasedNames,
): Promise<void> {
  await tx.query(
    `update command
     set body = '{}'
     where scope_id = $1
       and ((body ? 'customer_id' and body ->> 'customer_id' = any($2::text[]))
         or (body ? 'distinct_id' and body ->> 'distinct_id' = any($3::text[]))
         or (body ? 'source_distinct_id' and body ->> 'source_distinct_id' = any($3::text[])))`,
    [scopeId, customerIds, distinctIds],
  )
}

/** Looks at the next rows of a stream, by the index event_log_cursor; null when there are none. */
export async function deleteLogRows(
  tx: Tx,
  { scopeId }: Scope,
  { distinctIds, mentions }: ErasedNames,
  { from, limit }: { from: LogPlace; limit: number },
): Promise<LogPlace | null> {
  const [last] = await tx.query<{ gen: string; xid_text: string; seq: string }>(
    `with next as materialized (
       select gen, xid, seq, logged_at, distinct_id = any($6::text[]) or uuid = any($7::uuid[]) as goes
       from event_log
       where lane = $1
         and stream = $2
         and (gen, xid, seq) > ($3, $4::xid8, $5)
       order by gen, xid, seq
       limit $8
     ), gone as (
       delete from event_log e
       using next
       where next.goes
         and e.lane = $1
         and e.stream = $2
         and e.gen = next.gen
         and e.xid = next.xid
         and e.seq = next.seq
         and e.logged_at = next.logged_at
     )
     select gen::text, xid::text as xid_text, seq::text
     from next
     order by next.gen desc, next.xid desc, next.seq desc
     limit 1`,
    [scopeId, from.stream, from.gen, from.xid, from.seq, distinctIds, mentions, limit],
  )
  return last ? { stream: from.stream, gen: last.gen, xid: last.xid_text, seq: last.seq } : null
}
