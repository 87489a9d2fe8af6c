import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createProduct } from '../../src/entitlements/index.ts'
import { must } from '../../src/kernel/assert.ts'
import { type AttachServices, attach } from '../../src/purchases/attach.ts'
import { interpret } from '../../src/purchases/google/interpret.ts'
import { parsePurchase } from '../../src/purchases/google/parse.ts'
import { defaultSettings } from '../../src/purchases/settings.ts'
import type {
  MappedProduct,
  PeriodAccess,
  StoreApp,
  VerifiedPeriod,
  VerifiedPurchase,
} from '../../src/purchases/types.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { openLedger, totals } from '../ledger/world.ts'
import { cutEverywhere, through } from './cut-everywhere.ts'
import { chainOf, historyOf, shownAt } from './play-model.ts'

/** What happens to purchases later, with the connection lost on the way: told again, it ends as if nothing had happened. */
const ledger = await openLedger()
const spender = await ledger.spender()
after(async () => {
  await spender[Symbol.asyncDispose]()
  await ledger[Symbol.asyncDispose]()
})
const { pool, database } = ledger
const services: AttachServices = { tombstoneKey: Buffer.alloc(32, 7), sealingKey: Buffer.alloc(32, 9), baseUrls: [] }
const dayMs = 24 * 3600_000
const spent = 4

interface World {
  app: StoreApp
  scope: Scope
  name: string
  mapped: (key: string) => MappedProduct
}

let names = 0
const units = { pack: 10, monthly: 100, yearly: 500 }

async function openWorld(): Promise<World> {
  const scope = await ledger.scope()
  await ledger.feature(scope)
  const mapped = new Map<string, MappedProduct>()
  for (const [key, allowance] of Object.entries(units)) {
    const grants = [
      { feature: 'exports', allowance, unlimited: false, interval: null, entity_scoped: false, rollover: null },
    ]
    const type = key === 'pack' ? 'one_time' : 'subscription'
    const product = await pool.transaction((tx) =>
      createProduct(tx, scope, { key, name: key, type, grants, stores: [] }),
    )
    const sold = { productId: key, basePlanId: null, purchaseOptionId: null, offerId: null }
    const link = {
      store: 'playstore',
      ...sold,
      consumable: key === 'pack',
      duration: null,
      familySharing: false,
    } as const
    mapped.set(key, { product, link })
  }
  const app: StoreApp = {
    ...{ scope, appId: 'app_later', bundleId: 'b', packageName: 'com.example.app', credentials: {}, clockOffsetMs: 0 },
    accountTokenNamespace: '3f0a1c52-6d7e-4b8f-9a01-23456789abcd',
    settings: { ...defaultSettings, unboundPurchases: 'first_claim', transferPolicy: 'transfer' },
  }
  return { app, scope, name: `later-${++names}`, mapped: (key) => must(mapped.get(key), 'it is sold') }
}

interface Sold extends Partial<VerifiedPeriod> {
  product?: keyof typeof units
  store?: 'appstore' | 'playstore'
  /** Of several transactions of one purchase. */
  nth?: number
  version: number
}

const open: PeriodAccess = { kind: 'open', until: null }

/** Two packs, unless told otherwise, as a store shows them at a version. */
function sold(
  world: World,
  { product = 'pack', store = 'appstore', nth = 0, version, ...period }: Sold,
): VerifiedPurchase {
  const [rootKey, evidenceKey] = [world.name, nth === 0 ? world.name : `${world.name}-${nth}`]
  const isPack = product === 'pack'
  const mapped = world.mapped(product)
  return {
    ...{ store, storeEnvironment: 'sandbox', evidenceKey, rootKey, linkedKeys: [], purchasedAt: 1, version },
    ...{ readAt: null, unpolled: true, accountToken: null, renewalAccountToken: null, familyShared: false },
    ...{ status: 'active', autoRenews: null, pendingProduct: null, nextCheckAt: null, consumedElsewhere: false },
    ...{ outbox: [], extra: null, result: { transactionId: evidenceKey } },
    transactions: [
      {
        ...{ evidenceKey, version, token: null, supersededBy: null, claims: {} },
        periods: [
          {
            ...{ storeProductId: product, basePlanId: null, purchaseOptionId: null, offerId: null, mapped },
            ...{ line: '', key: evidenceKey, type: isPack ? 'one_time' : 'subscription', consumable: isPack },
            ...{
              quantity: isPack ? 2 : 1,
              orderId: null,
              startsAt: Date.now() - 60_000,
              paidUntil: null,
              access: open,
            },
            ...period,
          },
        ],
      },
    ],
  }
}

const refunded = (share: number): PeriodAccess => ({
  ...{ kind: 'closed', detail: 'revoked', claim: false },
  revocation: { at: 5, reason: 0, share, kind: 'refund' },
})

/** Applies what was told, one transaction each: by a store, unless somebody brings it. */
function tell(world: World, url: string, told: readonly VerifiedPurchase[], distinctId: string | null = null) {
  return through(url, async (own) => {
    for (const purchase of told) {
      await own.transaction((tx) => attach(tx, services, world.app, purchase, distinctId))
    }
  })
}

/** Bought by `ada`, who has spent some of it. */
async function bought(purchaseOf: (world: World) => VerifiedPurchase): Promise<World> {
  const world = await openWorld()
  await tell(world, database.url, [purchaseOf(world)], 'ada')
  await spender.consume({ scope: world.scope, distinctId: 'ada', quantity: spent, operationId: 'op' })
  return world
}

async function assertLeft({ scope }: World, left: number, rows: Record<string, number> = {}): Promise<void> {
  const drawn = BigInt(spent)
  assert.deepEqual(await totals(pool, scope), { drawn, left: BigInt(left), used: drawn })
  for (const [table, expected] of Object.entries({ store_lineage: 1, ...rows })) {
    const found = await pool.query(`select from ${table} where scope_id = $1`, [scope.scopeId])
    assert.equal(found.length, expected, table)
  }
}

test('refunds at the App Store: of all, taken back, and of a half', async () => {
  await cutEverywhere(database, {
    stride: 4,
    prepare: () => bought((world) => sold(world, { version: 1 })),
    act: (world, url) =>
      tell(world, url, [
        sold(world, { version: 10, access: refunded(1) }),
        sold(world, { version: 20 }),
        sold(world, { version: 30, access: refunded(0.5) }),
      ]),
    outcome: (world) => assertLeft(world, 2 * units.pack - units.pack - spent),
  })
})

test('refunds at Google Play: of one of two', async () => {
  const store = 'playstore'
  await cutEverywhere(database, {
    stride: 4,
    prepare: () => bought((world) => sold(world, { store, version: 1 })),
    act: (world, url) => tell(world, url, [sold(world, { store, version: 10, refundedQuantity: 1 })]),
    outcome: (world) => assertLeft(world, 2 * units.pack - units.pack - spent),
  })
})

test('a transfer to whoever claims it next', async () => {
  const pass = { product: 'monthly', version: 1 } as const
  await cutEverywhere(database, {
    stride: 4,
    prepare: () => bought((world) => sold(world, pass)),
    act: (world, url) => tell(world, url, [sold(world, pass)], 'grace'),
    async outcome(world) {
      await assertLeft(world, units.monthly, { purchase_transfer: 1 })
      const [row] = await pool.query<{ distinct_id: string }>(
        `select distinct_id
         from store_lineage l
         join customer_alias a on a.scope_id = l.scope_id and a.customer_id = l.owner_customer_id
         where l.scope_id = $1`,
        [world.scope.scopeId],
      )
      assert.equal(row?.distinct_id, 'grace')
    },
  })
})

test('an upgrade at the App Store: the new transaction gives its units, the old one none any more', async () => {
  const access: PeriodAccess = { kind: 'open', until: Date.now() + 30 * dayMs }
  const monthly = { product: 'monthly', access, startsAt: Date.now() - dayMs, version: 1 } as const
  await cutEverywhere(database, {
    stride: 4,
    prepare: () => bought((world) => sold(world, monthly)),
    act: (world, url) => tell(world, url, [sold(world, { product: 'yearly', access, nth: 1, version: 10 })]),
    outcome: (world) => assertLeft(world, units.yearly, { store_transaction: 2, store_period: 2 }),
  })
})

test('an upgrade at Google Play: the linked token takes the place of the one before, and is acknowledged too', async () => {
  const [begins, end] = [Date.now() - 10 * dayMs, Date.now()]
  const history = (world: World) => historyOf(world.name, [{ kind: 'change', days: 5 }], { begins, end })
  /** The nth token as it was read so many days after the first purchase. */
  const read = (world: World, nth: number, days: number): VerifiedPurchase => {
    const played = history(world)
    const token = must(played.tokens[nth], 'it was changed once')
    const at = begins + days * dayMs
    const purchase = must(
      parsePurchase('subscription', shownAt(played, token, at), at) ?? undefined,
      'as Google documents',
    )
    const reading = {
      ...{ packageName: 'com.example.app', token, purchase, voided: new Map(), isKnown: true, leaseMs: dayMs },
      ...{ chain: chainOf(played, token), readAt: at, now: at },
      mapped: purchase.items.map(({ productId }) => world.mapped(productId)),
    }
    const verdict = interpret(reading, { claims: {}, consume: false })
    assert.ok(verdict.kind === 'verified')
    return verdict.purchase
  }
  await cutEverywhere(database, {
    stride: 4,
    prepare: () => bought((world) => read(world, 0, 1)),
    // The old token still reads active for a day, and is told of late.
    act: (world, url) => tell(world, url, [read(world, 1, 6), read(world, 0, 6)]),
    outcome: (world) => assertLeft(world, units.yearly, { store_transaction: 2, store_period: 2, store_outbox: 2 }),
  })
})
