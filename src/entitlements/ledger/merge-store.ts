import type { Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
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

/** A new account, of a customer whose record the caller holds. */
export async function openAccount(
  tx: Tx,
  scope: Scope,
  customerId: string,
  featureId: number,
): Promise<MergingAccount> {
  const [row] = await tx.query<MergingAccount>(
    `insert into account (scope_id, customer_id, feature_id)
     values ($1, $2, $3)
     on conflict (scope_id, customer_id, feature_id) do update
     set version = account.version
     returning id, customer_id, feature_id, used_total, last_at_ms, version`,
    [scope.scopeId, customerId, featureId],
  )
  return must(row, 'the account is there')
}

/** What attached Products give the entities of the account that are registered later. Gives the ids of the rows. */
export async function moveEntityTerms(tx: Tx, source: bigint, target: bigint): Promise<bigint[]> {
  return idsOf(
    await tx.query<Id>(`update entity_terms set account_id = $2 where account_id = $1 returning id`, [source, target]),
  )
}

/** Twice, because each half has an index of its own. Gives the ids of the grants. */
export async function moveGrants(tx: Tx, source: bigint, target: bigint): Promise<bigint[]> {
  const move = (half: string) =>
    tx.query<Id>(`update ledger_grant set account_id = $2 where account_id = $1 and ${half} returning id`, [
      source,
      target,
    ])
  return idsOf([...(await move('not settled')), ...(await move('settled'))])
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

/**
 * The source stays as a name for what was written about it, and so does everything that had been merged into it, whose ids it
 * gives.
 */
export async function closeMerged(tx: Tx, source: bigint, target: bigint): Promise<bigint[]> {
  await tx.query(`update account set merged_into = $2, version = version + 1 where id = $1`, [source, target])
  return idsOf(
    await tx.query<Id>(
      `update account set merged_into = $2, version = version + 1 where merged_into = $1 returning id`,
      [source, target],
    ),
  )
}

interface Id {
  id: bigint
}

function idsOf(rows: Id[]): bigint[] {
  return rows.map(({ id }) => id)
}
