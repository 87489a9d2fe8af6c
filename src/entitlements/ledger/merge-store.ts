import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

export interface MergingAccount {
  id: bigint
  customer_id: string
  feature_id: number
  used_total: bigint
  last_at_ms: bigint
  version: bigint
}

/** Both customers' accounts, locked in id order as every verb locks them. */
export function lockBoth(tx: Tx, scope: Scope, customerIds: [string, string]): Promise<MergingAccount[]> {
  return tx.query<MergingAccount>(
    `select id, customer_id, feature_id, used_total, last_at_ms, version
     from account
     where scope_id = $1
       and customer_id = any($2::uuid[])
     order by id
     for update`,
    [scope.scopeId, customerIds],
  )
}

export function selectAllEntities(
  tx: Tx,
  accountId: bigint,
): Promise<{ entity_id: string; used_total: bigint; registered: boolean }[]> {
  return tx.query(`select entity_id, used_total, registered from account_entity where account_id = $1`, [accountId])
}

/** The target customer has no such account: the source's becomes theirs. */
export async function repointAccount(tx: Tx, accountId: bigint, customerId: string): Promise<void> {
  await tx.query(`update account set customer_id = $2, version = version + 1 where id = $1`, [accountId, customerId])
}

/** What attached Products give the entities of the account that are registered later. */
export async function moveEntityTerms(tx: Tx, source: bigint, target: bigint): Promise<void> {
  await tx.query(`update entity_terms set account_id = $2 where account_id = $1`, [source, target])
}

/** Twice, because each half has an index of its own. */
export async function moveGrants(tx: Tx, source: bigint, target: bigint): Promise<void> {
  await tx.query(`update ledger_grant set account_id = $2 where account_id = $1 and not settled`, [source, target])
  await tx.query(`update ledger_grant set account_id = $2 where account_id = $1 and settled`, [source, target])
}

export async function writeMerged(
  tx: Tx,
  target: bigint,
  { used, lastAt }: { used: bigint; lastAt: number },
): Promise<void> {
  await tx.query(`update account set used_total = $2, last_at_ms = $3, version = version + 1 where id = $1`, [
    target,
    used,
    lastAt,
  ])
}

/** An entity that both had registered keeps the registration it has here. */
export async function writeMergedEntities(
  tx: Tx,
  { source, target }: { source: bigint; target: bigint },
  entities: { entityId: string; used: bigint; registered: boolean }[],
): Promise<void> {
  await tx.query(
    `insert into account_entity (account_id, entity_id, used_total, registered, registration, registered_at_ms)
     select $2, q.entity_id, q.used_total, q.registered, s.registration, s.registered_at_ms
     from unnest($3::text[], $4::bigint[], $5::boolean[]) as q(entity_id, used_total, registered)
     join account_entity s on s.account_id = $1 and s.entity_id = q.entity_id
     on conflict (account_id, entity_id) do update
     set used_total = excluded.used_total,
       registered = excluded.registered,
       registration = coalesce(account_entity.registration, excluded.registration),
       registered_at_ms = coalesce(account_entity.registered_at_ms, excluded.registered_at_ms)`,
    [
      source,
      target,
      entities.map((entity) => entity.entityId),
      entities.map((entity) => entity.used),
      entities.map((entity) => entity.registered),
    ],
  )
}

/** The source stays as a name for what was written about it, and so does everything that had been merged into it. */
export async function closeMerged(tx: Tx, source: bigint, target: bigint): Promise<void> {
  await tx.query(`update account set merged_into = $2, version = version + 1 where id = $1`, [source, target])
  await tx.query(`update account set merged_into = $2, version = version + 1 where merged_into = $1`, [source, target])
}
