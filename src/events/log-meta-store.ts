import type { Tx } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'

export interface LogMeta {
  gen: number
  /** Of the cluster that wrote last, and of the one we are in. */
  systemIdentifier: string
  currentSystem: string
  /** The highest transaction id noted, and the one of this transaction. */
  lastXid: bigint
  currentXid: bigint
}

/** Reads the row and keeps it locked; makes it on the first start. */
export async function lockLogMeta(tx: Tx): Promise<LogMeta> {
  await tx.query(
    `insert into log_meta (id, gen, system_identifier, last_xid)
    select 1, 1, system_identifier::text, pg_current_xact_id()
    from pg_control_system()
    on conflict do nothing`,
  )
  const [row] = await tx.query<{ gen: number; system: string; current: string; last: string; now: string }>(
    `select gen, log_meta.system_identifier as system, control.system_identifier::text as current,
      last_xid::text as last, pg_current_xact_id()::text as now
    from log_meta, pg_control_system() as control
    where id = 1
    for update of log_meta`,
  )
  const { gen, system, current, last, now } = must(row, 'log_meta has its row')
  return { gen, systemIdentifier: system, currentSystem: current, lastXid: BigInt(last), currentXid: BigInt(now) }
}

/** Ids of before the restore say nothing about the order of ids from now on. */
export function isOtherCluster({ systemIdentifier, currentSystem, lastXid, currentXid }: LogMeta): boolean {
  return systemIdentifier !== currentSystem || currentXid < lastXid
}

export async function raiseGeneration(tx: Tx, { gen, currentSystem }: LogMeta): Promise<number> {
  const raised = gen + 1
  await tx.query(
    `update log_meta
    set gen = $1,
      system_identifier = $2,
      last_xid = pg_current_xact_id()
    where id = 1`,
    [raised, currentSystem],
  )
  // Not a parameter: defaults are part of the definition.
  await tx.query(`alter table event_log alter column gen set default ${raised}`)
  return raised
}

export async function noteTransactionId(tx: Tx, { currentXid }: LogMeta): Promise<void> {
  await tx.query('update log_meta set last_xid = $1::xid8 where id = 1', [String(currentXid)])
}
