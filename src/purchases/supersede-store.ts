import type { Tx } from '../db/pool.ts'
import type { Lineage } from './lineage-store.ts'
import { ms } from './lineage-store.ts'
import type { Lasting } from './period-start.ts'
import type { Ms } from './types.ts'

/** Whatever was read last: what took a place keeps it. */
export async function supersedeTransaction(tx: Tx, id: bigint, by: string): Promise<void> {
  await tx.query(`update store_transaction set superseded_by = $2 where id = $1 and superseded_by is null`, [id, by])
}

/** A deferred change of plan keeps the period that is paid, under another token: it is the same one. */
export async function carryPeriods(
  tx: Tx,
  lineage: Lineage,
  { from, to, orders }: { from: bigint[]; to: bigint; orders: string[] },
): Promise<void> {
  await tx.query(
    `update store_period p
     set transaction_id = $4
     where p.scope_id = $1
       and p.lineage_id = $2
       and p.transaction_id = any($3::bigint[])
       and p.order_id = any($5::text[])
       and p.superseded_at_ms is null
       and not exists (
         select
         from store_period other
         where other.scope_id = p.scope_id
           and other.transaction_id = $4
           and other.line = p.line
           and other.period_key = p.period_key
       )`,
    [lineage.scopeId, lineage.id, from, to, orders],
  )
}

export async function supersedePeriods(
  tx: Tx,
  lineage: Lineage,
  { transactionIds, except, at }: { transactionIds: bigint[]; except: string[]; at: Ms },
): Promise<void> {
  await tx.query(
    `update store_period
     set superseded_at_ms = $4
     where scope_id = $1
       and lineage_id = $2
       and transaction_id = any($3::bigint[])
       and superseded_at_ms is null
       and type = 'subscription'
       and line <> all($5::text[])
       and (access_until_ms is null or access_until_ms > $4)`,
    [lineage.scopeId, lineage.id, transactionIds, at, except],
  )
}

/** Grace and leases of the periods before end where the next one begins. */
export async function cutOthers(
  tx: Tx,
  lineage: Lineage,
  { line, key, at }: { line: string; key: string; at: Ms },
): Promise<void> {
  await tx.query(
    `update store_period
     set access_until_ms = $5
     where scope_id = $1
       and lineage_id = $2
       and line = $3
       and period_key <> $4
       and type = 'subscription'
       and starts_at_ms < $5
       and paid_until_ms <= $5
       and access_until_ms > $5`,
    [lineage.scopeId, lineage.id, line, key, at],
  )
}

/** The periods of one line, but for those whose place something else took. */
export async function selectLine(tx: Tx, lineage: Lineage, line: string): Promise<Lasting[]> {
  const rows = await tx.query<{ period_key: string; starts_at_ms: bigint; paid_until_ms: bigint | null }>(
    `select period_key, starts_at_ms, paid_until_ms
     from store_period
     where scope_id = $1
       and lineage_id = $2
       and line = $3
       and superseded_at_ms is null
     order by paid_until_ms desc nulls last
     limit 20`,
    [lineage.scopeId, lineage.id, line],
  )
  return rows.map((row) => ({
    ...{ key: row.period_key, startsAt: Number(row.starts_at_ms), paidUntil: ms(row.paid_until_ms) },
  }))
}

/** Subscribed periods that a whole state does not name end with what was paid for them, and now at the latest. */
export async function endUnlisted(
  tx: Tx,
  lineage: Lineage,
  { transactionId, periods, now }: { transactionId: bigint; periods: { line: string; key: string }[]; now: Ms },
): Promise<void> {
  await tx.query(
    `update store_period
     set access_until_ms = least(paid_until_ms, $5)
     where scope_id = $1
       and lineage_id = $2
       and transaction_id = $3
       and type = 'subscription'
       and line || ' ' || period_key <> all($4::text[])
       and access_until_ms > least(paid_until_ms, $5)`,
    [lineage.scopeId, lineage.id, transactionId, periods.map(({ line, key }) => `${line} ${key}`), now],
  )
}
