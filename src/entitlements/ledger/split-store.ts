import { int8s } from '../../db/binary-array.ts'
import type { Tx } from '../../db/pool.ts'

/** Two accounts of one Feature, whose customers were one for a time. */
export interface Parted {
  source: bigint
  target: bigint
}

export interface GrantOrigins {
  id: bigint
  rolled_from: bigint | null
  source_ref: string
}

/** Two halves, because each has an index of its own. */
export function selectGrantOrigins(tx: Tx, accountId: bigint): Promise<GrantOrigins[]> {
  const half = (which: string) =>
    `select id, rolled_from, source_ref from ledger_grant where account_id = $1 and ${which}`
  return tx.query(`${half('not settled')} union all ${half('settled')}`, [accountId])
}

/** Grants of the account that were made until then, in Unix milliseconds. */
export async function selectGrantsSince(tx: Tx, accountId: bigint, { until }: { until: number }): Promise<bigint[]> {
  const half = (which: string) =>
    `select id from ledger_grant where account_id = $1 and created_at_ms <= $2 and ${which}`
  const rows = await tx.query<{ id: bigint }>(`${half('not settled')} union all ${half('settled')}`, [
    accountId,
    Math.floor(until),
  ])
  return rows.map(({ id }) => id)
}

/** What grants made of these terms are known by. */
export async function selectTermRefs(tx: Tx, terms: bigint[]): Promise<string[]> {
  const rows = await tx.query<{ source_ref: string }>(
    'select source_ref from entity_terms where id = any($1::bigint[])',
    [int8s(terms)],
  )
  return rows.map(({ source_ref: ref }) => ref)
}

export async function moveBack(
  tx: Tx,
  { source, target }: Parted,
  { grants, terms }: { grants: bigint[]; terms: bigint[] },
): Promise<void> {
  await tx.query('update ledger_grant set account_id = $1 where account_id = $2 and id = any($3::bigint[])', [
    ...[source, target],
    int8s(grants),
  ])
  await tx.query('update entity_terms set account_id = $1 where account_id = $2 and id = any($3::bigint[])', [
    ...[source, target],
    int8s(terms),
  ])
}

/**
 * Each counts what it counted itself. A registration that the merge brought goes back, unless it was ended meanwhile; the
 * number of a registration tells whose it was.
 */
export async function splitEntities(tx: Tx, { source, target }: Parted): Promise<void> {
  await tx.query(
    `update account_entity s
     set registered = false, registration = null, registered_at_ms = null
     from account_entity t
     where s.account_id = $1
       and s.registered
       and t.account_id = $2
       and t.entity_id = s.entity_id
       and not t.registered`,
    [source, target],
  )
  await tx.query(
    `update account_entity t
     set used_total = t.used_total - s.used_total,
       registered = t.registered and t.registration is distinct from s.registration,
       registered_at_ms = case when t.registration is distinct from s.registration then t.registered_at_ms end,
       registration = case when t.registration is distinct from s.registration then t.registration end
     from account_entity s
     where s.account_id = $1
       and t.account_id = $2
       and t.entity_id = s.entity_id`,
    [source, target],
  )
  await tx.query(
    `delete from account_entity t
     using account_entity s
     where s.account_id = $1
       and t.account_id = $2
       and t.entity_id = s.entity_id
       and t.used_total = 0
       and not t.registered`,
    [source, target],
  )
}

export async function takeFromTarget(tx: Tx, target: bigint, used: bigint): Promise<void> {
  await tx.query('update account set used_total = used_total - $2, version = version + 1 where id = $1', [target, used])
}

/** The source is an account of its own again, and so much later as the target came meanwhile. */
export async function reopenAccount(tx: Tx, { source, target }: Parted, followers: bigint[]): Promise<void> {
  await tx.query(
    `update account s
     set merged_into = null,
       split_from = $2,
       last_at_ms = greatest(s.last_at_ms, t.last_at_ms),
       version = s.version + 1
     from account t
     where s.id = $1
       and t.id = $2`,
    [source, target],
  )
  await tx.query(
    'update account set merged_into = $1, version = version + 1 where merged_into = $2 and id = any($3::bigint[])',
    [...[source, target], int8s(followers)],
  )
}
