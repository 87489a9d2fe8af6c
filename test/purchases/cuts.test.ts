import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pino from 'pino'
import { Catalogues, createPaidSpends, createProduct } from '../../src/entitlements/index.ts'
import { must } from '../../src/kernel/assert.ts'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import { type AttachServices, attach } from '../../src/purchases/attach.ts'
import { defaultSettings } from '../../src/purchases/settings.ts'
import { transferPurchase } from '../../src/purchases/transfer.ts'
import type { StoreApp, VerifiedPurchase } from '../../src/purchases/types.ts'
import { Directory, type Scope } from '../../src/tenancy/index.ts'
import { factsIn, openLedger, totals } from '../ledger/world.ts'
import { cutEverywhere, through } from './cut-everywhere.ts'

const ledger = await openLedger()
after(() => ledger[Symbol.asyncDispose]())
const { pool, database } = ledger
const directory = await Directory.open({ pool, url: database.url, clock, log: pino({ level: 'silent' }) })
after(() => directory[Symbol.asyncDispose]())
const spending = { directory, catalogues: new Catalogues(pool, directory), tombstoneKey: Buffer.alloc(32, 7) }
const services: AttachServices = { tombstoneKey: Buffer.alloc(32, 7), sealingKey: Buffer.alloc(32, 9), baseUrls: [] }

interface World {
  app: StoreApp
  scope: Scope
  purchase: (more?: Partial<VerifiedPurchase>, quantity?: number) => VerifiedPurchase
}

let transactions = 0

/** A scope with a Product of ten `exports`, and a consumable that is nobody's yet. */
async function prepare(): Promise<World> {
  const scope = await ledger.scope()
  await ledger.feature(scope)
  const grants = [
    { feature: 'exports', allowance: 10, unlimited: false, interval: null, entity_scoped: false, rollover: null },
  ]
  const product = await pool.transaction((tx) =>
    createProduct(tx, scope, { key: 'pack', name: 'Pack', type: 'one_time', grants, stores: [] }),
  )
  const app: StoreApp = {
    ...{
      scope,
      appId: 'app_cuts',
      bundleId: 'b',
      packageName: null,
      accountTokenNamespace: '3f0a1c52-6d7e-4b8f-9a01-23456789abcd',
    },
    settings: { ...defaultSettings, unboundPurchases: 'first_claim' },
    ...{ credentials: {}, clockOffsetMs: 0 },
  }
  const key = String(++transactions)
  const sold = { storeProductId: 'pack', basePlanId: null, purchaseOptionId: null, offerId: null }
  const link = {
    store: 'appstore',
    productId: 'pack',
    basePlanId: null,
    purchaseOptionId: null,
    offerId: null,
  } as const
  const mapped = { product, link: { ...link, consumable: false, duration: null, familySharing: false } }
  return {
    app,
    scope,
    purchase: (more = {}, quantity = 2) => ({
      ...{ store: 'appstore', storeEnvironment: 'sandbox', evidenceKey: key, rootKey: key, linkedKeys: [] },
      ...{ purchasedAt: 1, version: 1, readAt: null, unpolled: true, accountToken: null, renewalAccountToken: null },
      ...{ familyShared: false, status: 'active', autoRenews: null, pendingProduct: null, nextCheckAt: null },
      ...{ consumedElsewhere: false, outbox: [{ kind: 'ack', key, payload: {}, deadline: null }], extra: null },
      result: { transactionId: key },
      transactions: [
        {
          ...{ evidenceKey: key, version: 1, token: null, supersededBy: null, claims: {} },
          periods: [
            {
              ...{ ...sold, line: '', key, type: 'one_time', consumable: true, mapped, quantity, orderId: null },
              ...{ startsAt: Date.now() - 60_000, paidUntil: null, access: { kind: 'open', until: null } },
            },
          ],
        },
      ],
      ...more,
    }),
  }
}

const bring = (world: World, url: string) =>
  through(url, (own) => own.transaction((tx) => attach(tx, services, world.app, world.purchase(), 'ada')))

const count = async (table: string, scope: Scope) =>
  (await pool.query<{ n: number }>(`select count(*)::int as n from ${table} where scope_id = $1`, [scope.scopeId]))[0]
    ?.n

async function attachedOnce({ scope }: World, left = 20n): Promise<void> {
  assert.deepEqual(await totals(pool, scope), { drawn: 0n, left, used: 0n })
  const tables = ['store_lineage', 'store_transaction', 'store_period', 'purchase_result', 'store_outbox']
  for (const table of tables) assert.equal(await count(table, scope), 1, table)
  const told = await factsIn(pool, scope)
  assert.equal(new Set(told.map(({ uuid }) => uuid)).size, told.length, 'each once')
  assert.equal(told.filter(({ event }) => event === '$purchase_completed').length, 1)
}

test('attaching, with the connection lost before or after any statement, is done once by the time it is answered', async () => {
  await cutEverywhere(database, { prepare, act: bring, outcome: (world) => attachedOnce(world) })
})

test('the same for a spend that brings its purchase: attached, drawn and saved once', async () => {
  const command = (world: World) => ({
    scope: { ...world.scope, keyId: 'key_test', appId: world.app.appId, appName: 'Test', platform: 'ios' as const },
    ...{ distinctId: 'ada', featureKey: 'exports', operationId: 'op', quantity: 4n, mode: 'consume' as const },
    ...{ entityId: null, purchaseKey: 'appstore Sandbox 1' },
  })
  await cutEverywhere(database, {
    prepare,
    act: (world, url) =>
      through(url, async (own) => {
        const spends = createPaidSpends({ ...spending, pool: own })
        const known = await spends.answerWithoutPurchase(command(world))
        if (known) return
        await own.transaction(async (tx) => {
          await attach(tx, services, world.app, world.purchase(), 'ada')
          await spends.spend(tx, command(world))
        })
      }),
    async outcome({ scope }) {
      assert.deepEqual(await totals(pool, scope), { drawn: 4n, left: 16n, used: 4n })
      for (const table of ['store_lineage', 'store_outbox', 'operation']) {
        assert.equal(await count(table, scope), 1, table)
      }
    },
  })
})

test('the same for a transfer by an operator', async () => {
  const owners = new WeakMap<World, string>()
  await cutEverywhere(database, {
    async prepare() {
      const world = await prepare()
      await bring(world, database.url)
      owners.set(world, await ledger.customer(world.scope, 'grace'))
      return world
    },
    async act(world, url) {
      const [lineage] = await pool.query<{ public_id: string; owner_customer_id: string }>(
        'select public_id, owner_customer_id from store_lineage where scope_id = $1',
        [world.scope.scopeId],
      )
      const customerId = must(owners.get(world), 'it was prepared')
      if (lineage?.owner_customer_id === customerId) return
      const what = { purchaseId: lineage?.public_id ?? '', customerId, reason: 'why', actor: 'key_test' }
      await through(url, (own) =>
        own.transaction((tx) => transferPurchase(tx, async () => world.app, [world.scope], what)),
      )
    },
    async outcome(world) {
      assert.deepEqual(await totals(pool, world.scope), { drawn: 0n, left: 20n, used: 0n })
      assert.equal(await count('purchase_transfer', world.scope), 1)
    },
  })
})

test('an older state never overwrites a newer one, and a revocation goes only by a newer state', async () => {
  const world = await prepare()
  const revoked = (version: number): Partial<VerifiedPurchase> => {
    const purchase = world.purchase()
    const [transaction] = purchase.transactions
    assert.ok(transaction)
    const access = {
      kind: 'closed',
      detail: 'revoked',
      claim: false,
      revocation: { at: 5, reason: 0, share: 1, kind: 'refund' },
    } as const
    const periods = transaction.periods.map((period) => ({ ...period, access }))
    return { version, status: 'revoked', transactions: [{ ...transaction, version, periods }] }
  }
  const apply = (more: Partial<VerifiedPurchase>) =>
    pool.transaction((tx) => attach(tx, services, world.app, world.purchase(more), 'ada'))
  await apply({})
  await apply(revoked(10))
  assert.equal((await totals(pool, world.scope)).left, 0n)
  await apply({})
  assert.equal((await totals(pool, world.scope)).left, 0n)
  const [period] = await pool.query<{ revoked_at_ms: bigint }>(
    'select revoked_at_ms from store_period where scope_id = $1',
    [world.scope.scopeId],
  )
  assert.equal(period?.revoked_at_ms, 5n)
})
