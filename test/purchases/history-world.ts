import assert from 'node:assert/strict'
import type { Tx } from '../../src/db/pool.ts'
import { createProduct, ensureEntryPartitions, verifyLedger } from '../../src/entitlements/index.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { type AttachServices, attach } from '../../src/purchases/attach.ts'
import { registerBinding } from '../../src/purchases/bindings.ts'
import { selectLineagesOf } from '../../src/purchases/lineage-store.ts'
import { purchaseParticipant } from '../../src/purchases/participant.ts'
import { type Period, selectPeriods } from '../../src/purchases/period-store.ts'
import { pollDue } from '../../src/purchases/polls/poll.ts'
import { defaultSettings } from '../../src/purchases/settings.ts'
import { isOpen } from '../../src/purchases/sync-grants.ts'
import type { DeviceStore, MappedProduct, StoreApp, VerifiedPurchase } from '../../src/purchases/types.ts'
import type { App } from '../../src/tenancy/index.ts'
import { silent } from '../harness/server.ts'
import { somebodyWaits } from '../harness/waits.ts'
import { openLedger } from '../ledger/world.ts'

export const dayMs = 24 * 3600_000
/** Time goes on while the last reading is applied. */
export const minuteMs = 60_000
/** Of the Products that histories are about. */
export const units = 100n

/** A project of its own that sells `monthly` and `yearly`, each for a hundred `exports`. */
export interface HistoryWorld {
  app: StoreApp
  mapped: Map<string, MappedProduct>
}

export interface Standing {
  /** Further lineages than the first. */
  lineages: number
  owner: string | null
  access: boolean
  /** Those that give something at the end. */
  grants: { amount: bigint; expires: bigint | null }[]
  periods: Period[]
}

export interface When {
  now: number
  asked: boolean
  tx?: Tx
}

export interface Histories extends AsyncDisposable {
  prepare: (store: DeviceStore) => Promise<HistoryWorld>
  /** What was verified, at the instant `now`, as a call of the owner or as a notification; in a transaction of its own unless told. */
  apply: (world: HistoryWorld, purchase: VerifiedPurchase, when: When) => Promise<void>
  /** Holds the purchases of the world while `work` runs, until `work` has committed what it wrote in the transaction. */
  holding: (world: HistoryWorld, work: (tx: Tx) => Promise<void>) => Promise<void>
  /** Merges ada into eve, both made here, once `work` is done in the middle of it. Gives the ids of both. */
  merging: (world: HistoryWorld, work: () => Promise<void>) => Promise<{ ada: string; eve: string }>
  /** Says that the account token is eve's, who is made here, and does something else before that is committed. Gives her id. */
  binding: (world: HistoryWorld, value: string, meanwhile: () => Promise<void>) => Promise<string>
  /** Polls the purchase, which the store says it does not know, and does something else meanwhile. Gives when it is looked at next. */
  poll: (world: HistoryWorld, meanwhile: () => Promise<void>) => Promise<bigint | null>
  /** Until somebody waits for a lock. */
  somebodyWaits: () => Promise<void>
  standing: (world: HistoryWorld, end: number) => Promise<Standing>
  /** The ledger agrees with its entries. */
  assertLedger: () => Promise<void>
}

/** Histories begin now and go on for months, by the clock of their test environment. */
export async function openHistories(begins: number): Promise<Histories> {
  const ledger = await openLedger()
  const { pool } = ledger
  const services: AttachServices = { tombstoneKey: Buffer.alloc(32, 7), sealingKey: Buffer.alloc(32, 9), baseUrls: [] }
  const setClock = (scopeId: number, offsetMs: number) =>
    pool.query(
      `insert into test_clock as c (scope_id, offset_ms) values ($1, $2)
       on conflict (scope_id) do update set offset_ms = greatest(c.offset_ms, excluded.offset_ms)`,
      [scopeId, offsetMs],
    )
  // Months of the ledger are made for every clock that is set.
  for (let month = 1; month <= 6; month++) await setClock(1_000_000 + month, begins - Date.now() + month * 30 * dayMs)
  await ensureEntryPartitions(pool)

  return {
    async prepare(store) {
      const scope = await ledger.scope()
      await ledger.feature(scope)
      const terms = { allowance: Number(units), unlimited: false, interval: null, entity_scoped: false, rollover: null }
      const mapped = new Map<string, MappedProduct>()
      for (const key of ['monthly', 'yearly']) {
        const grants = [{ feature: 'exports', ...terms }]
        const product = await pool.transaction((tx) =>
          createProduct(tx, scope, { key, name: key, type: 'subscription', grants, stores: [] }),
        )
        const link = { store, productId: key, basePlanId: null, purchaseOptionId: null, offerId: null }
        mapped.set(key, { product, link: { ...link, consumable: false, duration: null, familySharing: false } })
      }
      const app: StoreApp = {
        ...{ scope, appId: 'app_model', bundleId: 'com.example.app', packageName: 'com.example.app' },
        ...{ accountTokenNamespace: '3f0a1c52-6d7e-4b8f-9a01-23456789abcd', settings: defaultSettings },
        ...{ credentials: {}, clockOffsetMs: 0 },
      }
      return { app, mapped }
    },

    async apply({ app }, purchase, { now, asked, tx: given }) {
      await setClock(app.scope.scopeId, Math.max(0, now - Date.now()))
      const work = (tx: Tx) => attach(tx, services, app, purchase, asked ? 'ada' : null)
      await (given ? work(given) : pool.transaction(work))
    },

    holding: ({ app }, work) =>
      pool.transaction(async (tx) => {
        await tx.query('select from store_lineage where scope_id = $1 for update', [app.scope.scopeId])
        await work(tx)
      }),

    async merging({ app: { scope } }, work) {
      const [ada, eve] = [await ledger.customer(scope, 'ada'), await ledger.customer(scope, 'eve')]
      await pool.transaction(async (tx) => {
        await tx.query('select from customer where scope_id = $1 for update', [scope.scopeId])
        await work()
        await ledger.merge(scope, ada, eve, { transaction: (merge) => merge(tx) })
        const merge = { ...{ sourceCustomerId: ada, targetCustomerId: eve }, position: 1n }
        await purchaseParticipant.merge(tx, scope, [merge])
      })
      return { ada, eve }
    },

    async binding({ app }, value, meanwhile) {
      const eve = await ledger.customer(app.scope, 'eve')
      await pool.transaction(async (tx) => {
        const of = { app: { id: app.appId, platform: 'android' } as App, customerId: eve, value } // nothing else of it is asked for
        await registerBinding(tx, app.scope, { ...of, loadStoreApp: async () => app })
        await meanwhile()
      })
      return eve
    },

    async poll({ app }, meanwhile) {
      const { scopeId } = app.scope
      await pool.query('update store_lineage set next_check_at_ms = 0 where scope_id = $1', [scopeId])
      const loadStoreApp = async () => app
      const reread = async () => {
        await meanwhile()
        return { kind: 'refused', suffix: 'invalid', detail: 'gone' } as const
      }
      await pollDue({
        services: { ...services, pool, clock: systemClock, loadStoreApp, wake() {} },
        ...{ rereads: { playstore: reread }, appOf: loadStoreApp, log: silent },
      })
      const [lineage] = await pool.query<{ next: bigint | null }>(
        'select next_check_at_ms as next from store_lineage where scope_id = $1',
        [scopeId],
      )
      return lineage?.next ?? null
    },

    somebodyWaits: () => somebodyWaits(pool),

    async standing({ app }, end) {
      const { scope } = app
      const [owner] = await pool.query<{ owner: string | null }>(
        'select owner_customer_id as owner from store_lineage where scope_id = $1',
        [scope.scopeId],
      )
      const grants = await pool.query<{ amount: bigint; expires: bigint | null }>(
        `select amount, expires_at_ms as expires
         from ledger_grant
         where scope_id = $1
           and revoked_at_ms is null
           and (expires_at_ms is null or expires_at_ms > $2)
         order by expires_at_ms`,
        [scope.scopeId, end],
      )
      const [lineage, ...others] = owner?.owner
        ? await selectLineagesOf(pool, scope, owner.owner, { limit: 10, after: null })
        : []
      const periods = lineage ? await selectPeriods(pool, lineage, 1000) : []
      const access = periods.some((period) => isOpen(period, end))
      return { lineages: others.length, owner: owner?.owner ?? null, access, grants, periods }
    },

    async assertLedger() {
      const found: unknown[] = []
      await verifyLedger(pool, { onFinding: (finding) => found.push(finding) })
      assert.deepEqual(found, [])
    },

    [Symbol.asyncDispose]: () => ledger[Symbol.asyncDispose](),
  }
}

/** Nothing paid is granted twice, none gives access that was not paid, and one subscription has one current period at any time. */
export function assertSound(
  { periods }: Standing,
  paid: ReadonlyMap<string, { until: number }>,
  { keyOf, end, graceMs }: { keyOf: (period: Period) => string; end: number; graceMs: number },
): void {
  const granted = periods.filter(({ grantRef }) => grantRef !== null).map(keyOf)
  assert.equal(new Set(granted).size, granted.length, 'each paid period once')
  for (const period of periods) assert.ok(paid.has(keyOf(period)), 'of what was paid')
  const current = periods.filter((period) => isOpen(period, end) && period.startsAt <= end)
  assert.ok(current.length <= 1, `${current.length} at once`)
  for (const period of current) {
    const until = paid.get(keyOf(period))?.until ?? 0
    assert.ok(period.accessUntil !== null && period.accessUntil <= until + graceMs, 'not beyond what is paid and grace')
  }
}
