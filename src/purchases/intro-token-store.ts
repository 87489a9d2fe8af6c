import type { Sql } from '../db/pool.ts'
import { introTokensPerMinute } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import type { IntroQuestion } from './intro-token.ts'

export interface NamedTransaction {
  scope: Scope
  appId: string
  /** Of a transaction, its original, or the app transaction. */
  transactionId: string
}

/** Whose the purchases are that carry this id; a deleted owner is null. */
export async function ownersOfTransaction(
  sql: Sql,
  { scope, appId, transactionId }: NamedTransaction,
): Promise<(string | null)[]> {
  const rows = await sql.query<{ owner: string | null }>(
    `select l.owner_customer_id as owner
     from (
       select lineage_id
       from store_transaction
       where scope_id = $1
         and app_id = $2
         and store = 'appstore'
         and store_environment in ('production', 'sandbox', 'xcode')
         and evidence_key = $3
       union all
       select lineage_id
       from store_transaction
       where claims ? 'appTransactionId'
         and claims ->> 'appTransactionId' = $3
         and scope_id = $1
         and app_id = $2
     ) t
     join store_lineage l on l.id = t.lineage_id
     where l.owner_customer_id is not null
       or l.owner_deleted`,
    [scope.scopeId, appId, transactionId],
  )
  return rows.map(({ owner }) => owner)
}

/** False: the customer had as many as there may be in a minute. */
export async function insertIntroToken(
  sql: Sql,
  { scope, appId, nonce, ...token }: IntroQuestion & { appId: string; nonce: string },
): Promise<boolean> {
  const rows = await sql.query(
    `insert into intro_token (scope_id, nonce, app_id, customer_id, journey_id, leg_id, placement_id, store_product_id, allowed,
       transaction_id)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
     where (
       select count(*)
       from intro_token
       where customer_id = $4
         and issued_at > now() - interval '1 minute'
     ) < ${introTokensPerMinute}
     returning nonce`,
    [
      ...[scope.scopeId, nonce, appId, token.customerId, token.journeyId, token.legId, token.placementId],
      ...[token.storeProductId, token.allow, token.transactionId],
    ],
  )
  return rows.length > 0
}
