import { int8s } from '../../db/binary-array.ts'
import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

/** What entity ids of a scope are hashed with. */
export interface EntityHash {
  key: Buffer
  scopeId: number
}

/** What a hashed id looks like: it is not hashed again. */
const hashed = `'^erased:[0-9a-f]{64}$'`

/** `$1` is the key, `$2` the scope. */
const hashOf = (id: string) =>
  `'erased:' || encode(sha256($1::bytea || int4send($2::int) || convert_to(${id}, 'UTF8')), 'hex')`

export async function selectErasedAccounts(tx: Tx, scope: Scope, customerIds: string[]): Promise<bigint[]> {
  const rows = await tx.query<{ id: bigint }>(
    'select id from account where scope_id = $1 and customer_id = any($2::uuid[])',
    [scope.scopeId, customerIds],
  )
  return rows.map(({ id }) => id)
}

/** At most so many as one account may count. */
export async function eraseRegistered(tx: Tx, { key, scopeId }: EntityHash, accounts: bigint[]): Promise<void> {
  await tx.query(
    `update account_entity
     set entity_id = ${hashOf('entity_id')}
     where account_id = any($3::bigint[])
       and entity_id !~ ${hashed}`,
    [key, scopeId, int8s(accounts)],
  )
}

/** Two halves, because each has an index of its own. */
export async function eraseGrants(tx: Tx, { key, scopeId }: EntityHash, accounts: bigint[]): Promise<void> {
  for (const half of ['not settled', 'settled']) {
    await tx.query(
      `update ledger_grant
       set entity_id = case when entity_id !~ ${hashed} then ${hashOf('entity_id')} else entity_id end,
         note = null
       where account_id = any($3::bigint[])
         and ${half}
         and (entity_id !~ ${hashed} or note is not null)`,
      [key, scopeId, int8s(accounts)],
    )
  }
}

export async function eraseNotes(tx: Tx, accounts: bigint[], limit: number): Promise<number> {
  const { rowCount } = await tx.client.query(
    `update entry e
     set detail = e.detail || '{"note": null}'
     from (
       select account_id, version, line, at_ms
       from entry
       where account_id = any($1::bigint[])
         and detail ->> 'note' is not null
       limit $2
     ) next
     where e.account_id = next.account_id
       and e.version = next.version
       and e.line = next.line
       and e.at_ms = next.at_ms`,
    [int8s(accounts), limit],
  )
  return rowCount ?? 0
}

export async function eraseOperations(
  tx: Tx,
  { key, scopeId }: EntityHash,
  { customerIds, limit }: { customerIds: string[]; limit: number },
): Promise<number> {
  const { rowCount } = await tx.client.query(
    `update operation o
     set entity_id = case when o.entity_id !~ ${hashed} then ${hashOf('o.entity_id')} else o.entity_id end,
       result = o.result || '{"note": null}'
     from (
       select scope_id, kind, operation_id
       from operation
       where customer_id = any($3::uuid[])
         and scope_id = $2
         and (entity_id !~ ${hashed} or result ->> 'note' is not null)
       limit $4
     ) next
     where o.scope_id = next.scope_id
       and o.kind = next.kind
       and o.operation_id = next.operation_id`,
    [key, scopeId, customerIds, limit],
  )
  return rowCount ?? 0
}
