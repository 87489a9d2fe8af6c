import type { Sql } from '../db/pool.ts'
import { countedMax, waiting } from './lag-store.ts'
import type { Stream } from './types.ts'

/** The log with its indexes, applied or not. */
export async function logBytes(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ bytes: number }>(
    `select coalesce(sum(pg_total_relation_size(inhrelid)), 0)::float8 as bytes
    from pg_inherits
    where inhparent = 'event_log'::regclass`,
  )
  return row?.bytes ?? 0
}

/** What a row takes beside its payload: header, columns, index entry. */
const rowBytes = 200

/**
 * About how much of the log waits for its lanes. Rows beyond those counted are taken to be as dense as these, and all as large
 * as the first thousand: 30 ms for each lane that is far behind.
 */
export async function selectUnprocessedBytes(sql: Sql): Promise<number> {
  const [live, historical] = await Promise.all([bytesOf(sql, 'live'), bytesOf(sql, 'historical')])
  return live + historical
}

async function bytesOf(sql: Sql, stream: Stream): Promise<number> {
  const [row] = await sql.query<{ bytes: number }>(
    `select coalesce(sum(sampled.bytes * counted.rows * case
        when counted.rows < ${countedMax} then 1
        else greatest((mark.last_value - counted.first)::float8 / nullif(counted.last - counted.first, 0), 1)
      end), 0)::float8 as bytes
    from scope s
    left join lane l on l.id = s.id
    cross join event_log_seq_seq mark
    cross join lateral (
      select count(*) as rows, min(seq) as first, max(seq) as last
      from (select e.seq ${waiting(stream)} order by e.gen, e.xid, e.seq limit ${countedMax}) ahead
    ) counted
    cross join lateral (
      select avg(pg_column_size(payload))::float8 + ${rowBytes} as bytes
      from (select e.payload ${waiting(stream)} order by e.gen, e.xid, e.seq limit 1000) ahead
    ) sampled
    where counted.rows > 0`,
  )
  return row?.bytes ?? 0
}
