import assert from 'node:assert/strict'
import { must } from '../../src/kernel/assert.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import type { TransactionClaims } from '../../src/purchases/apple/claims.ts'
import { purchaseOf } from '../../src/purchases/apple/purchase.ts'
import { selectScope } from '../../src/purchases/notifications/scopes-store.ts'
import { attachOnce, contextFor } from '../../src/purchases/purchase.ts'
import { createLoadStoreApp } from '../../src/purchases/store-app.ts'
import { openInstance, sealingKeyOf } from '../../src/tenancy/index.ts'
import type { TestService } from '../harness/service.ts'
import type { StoreWorld } from './store-world.ts'

/** Gives a customer in live what a transaction would come to that Apple signed: nobody else can sign one. */
export async function attachInLive(
  { pool, tombstoneKey }: TestService,
  world: StoreWorld,
  who: string,
  transaction: Record<string, unknown>,
): Promise<void> {
  const secrets = await pool.transaction((tx) => openInstance(tx, Buffer.alloc(32, 7)))
  const sealingKey = sealingKeyOf(secrets)
  const scope = must(await selectScope(pool, await world.project.scopeId('live')), 'the project has its scopes')
  const app = await createLoadStoreApp(sealingKey)(pool, scope, world.app.id)
  const claims = transaction as TransactionClaims // made as Apple makes them
  const genuine = { transaction: claims, storeEnvironment: 'production', idPrefix: '', signer: null } as const
  const context = contextFor({ pool, clock: systemClock }, app, { store: 'appstore', customerId: null })
  const verdict = await purchaseOf(app, genuine, null, context)
  assert.equal(verdict.kind, 'verified')
  if (verdict.kind !== 'verified') return
  const services = { pool, tombstoneKey, sealingKey, baseUrls: [] }
  assert.equal((await attachOnce(services, app, verdict.purchase, who)).kind, 'attached')
}

/** Everything of a scope that purchases are, or give: a hash for each table. */
export async function purchaseRowsOf({ pool }: TestService, scopeId: number): Promise<Map<string, string>> {
  const tables = await pool.query<{ name: string }>(
    `select c.table_name as name
     from information_schema.columns c
     join information_schema.tables t using (table_schema, table_name)
     where c.table_schema = 'public'
       and c.column_name = 'scope_id'
       and t.table_type = 'BASE TABLE'
       and c.table_name ~ '^(store_|purchase_|pending_claim|account$|ledger_grant|entry|operation)'
     order by 1`,
  )
  const rows = new Map<string, string>()
  for (const { name } of tables) {
    const [row] = await pool.query<{ hash: string | null }>(
      `select md5(string_agg(t::text, '|' order by t::text)) as hash from ${name} t where scope_id = $1`,
      [scopeId],
    )
    rows.set(name, row?.hash ?? '')
  }
  return rows
}
