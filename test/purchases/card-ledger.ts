import { byDistinctId } from '../../src/customers/index.ts'
import type { Pool } from '../../src/db/pool.ts'
import { createProduct } from '../../src/entitlements/index.ts'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import { createCardApi } from '../../src/purchases/card/api.ts'
import { createCheckout } from '../../src/purchases/card/checkout.ts'
import { createReadCard } from '../../src/purchases/card/read.ts'
import { createCardReread } from '../../src/purchases/card/verify.ts'
import { createGuard } from '../../src/purchases/guard.ts'
import { processDue } from '../../src/purchases/notifications/process.ts'
import { followCard } from '../../src/purchases/notifications/process-card.ts'
import { receiveCard } from '../../src/purchases/notifications/receive-card.ts'
import { defaultSettings } from '../../src/purchases/settings.ts'
import { createStoreCalls } from '../../src/purchases/store-calls.ts'
import type { StoreApp } from '../../src/purchases/types.ts'
import type { AppScope } from '../../src/tenancy/index.ts'
import { testScope } from '../harness/lane.ts'
import { silent } from '../harness/server.ts'
import { type CardStore, startCardStore } from '../harness/stripe.ts'
import { type Ledger, openLedger } from '../ledger/world.ts'
import { through } from './cut-everywhere.ts'

/** An app that sells by card. */
export interface CardApp {
  app: StoreApp
  scope: AppScope
}

/** Card payments without HTTP in front: each call may come by way of another address of the database. */
export interface CardLedger extends AsyncDisposable {
  ledger: Ledger
  store: CardStore
  /** It sells `units` of `exports`: by the month, by the month for more, and once. */
  openApp: () => Promise<CardApp>
  /** Asks for a page as a client does; gives its id. */
  open: (seller: CardApp, products: string[], url?: string) => Promise<string>
  /** An event comes, and all that has come is worked off: whoever had begun it holds it no more. */
  deliver: (seller: CardApp, event: { id: string; type: string; object: string }, url?: string) => Promise<void>
}

export const units = { monthly: 100, yearly: 500, pack: 10 }
const secrets = { tombstoneKey: Buffer.alloc(32, 7), sealingKey: Buffer.alloc(32, 9), baseUrls: [] }
const cardApi = createCardApi(createStoreCalls(clock))
const reread = createCardReread(createReadCard(cardApi))

export async function openCardLedger(): Promise<CardLedger> {
  const ledger = await openLedger()
  const store = await startCardStore()
  store.sellOnce('price_pack')
  const { pool, database } = ledger
  let apps = 0

  async function openApp(): Promise<CardApp> {
    const scope = await testScope(pool, 'test')
    await ledger.feature(scope)
    for (const [key, allowance] of Object.entries(units)) {
      const grants = [
        { feature: 'exports', allowance, unlimited: false, interval: null, entity_scoped: false, rollover: null },
      ]
      const type = key === 'pack' ? 'one_time' : 'subscription'
      const sold = { productId: `price_${key}`, basePlanId: null, purchaseOptionId: null, offerId: null }
      const stores = [{ store: 'stripe', ...sold, consumable: false, duration: null, familySharing: false } as const]
      await pool.transaction((tx) => createProduct(tx, scope, { key, name: key, type, grants, stores }))
    }
    const appId = `app_cards_${++apps}`
    const app: StoreApp = {
      ...{ scope, appId, bundleId: null, packageName: null, clockOffsetMs: 0 },
      accountTokenNamespace: '3f0a1c52-6d7e-4b8f-9a01-23456789abcd',
      settings: { ...defaultSettings, checkoutReturnUrls: ['https://shop.example.com/paid'] },
      credentials: {
        stripe: { secretKey: store.secretKey, webhookSecret: store.webhookSecret },
        endpoints: { appstoreApi: null, playApi: null, playJwks: null, stripeApi: store.url },
      },
    }
    return { app, scope: { ...scope, keyId: 'key_test', appId, appName: 'Test', platform: 'web' } }
  }

  return {
    ...{ ledger, store, openApp },
    open: (seller, productIds, url = database.url) =>
      through(url, async (own) => {
        const command = { scope: seller.scope, distinctId: 'ada', productIds }
        return (await createCheckout(servicesOf(seller, own))(command)).checkout.id
      }),
    deliver: (seller, event, url = database.url) =>
      through(url, async (own) => {
        const { app } = seller
        const { raw, signature } = store.sign(event)
        await receiveCard(
          { ...secrets, pool: own, appsOf: async () => [app], log: silent, now: () => clock.now() },
          { appId: app.appId, signature, raw: Buffer.from(raw), body: JSON.parse(raw) },
        )
        await pool.query('update store_inbox set due_at_ms = 0 where due_at_ms is not null and app_id = $1', [
          app.appId,
        ])
        await processDue({
          ...{ sql: own, log: silent },
          process: ({ kind, payload }) =>
            followCard({ services: servicesOf(seller, own), reread }, app, { kind, objectId: payload.object }),
        })
      }),
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await ledger[Symbol.asyncDispose]()
    },
  }
}

function servicesOf({ app }: CardApp, own: Pool) {
  return {
    ...{ ...secrets, pool: own, clock, cardApi, guard: createGuard(() => clock.now()), wake() {} },
    loadStoreApp: async () => app,
    whois: async ({ distinctId }: { distinctId: string }) => ({
      customerId: (await byDistinctId(own, app.scope, distinctId))?.id,
    }),
  }
}
