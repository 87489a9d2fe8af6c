import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { createProduct, ensureEntryPartitions, verifyLedger } from '../../src/entitlements/index.ts'
import { must } from '../../src/kernel/assert.ts'
import { type AttachServices, attach } from '../../src/purchases/attach.ts'
import { interpret } from '../../src/purchases/google/interpret.ts'
import { parsePurchase } from '../../src/purchases/google/parse.ts'
import { selectLineagesOf } from '../../src/purchases/lineage-store.ts'
import { selectPeriods } from '../../src/purchases/period-store.ts'
import { defaultSettings } from '../../src/purchases/settings.ts'
import { isOpen } from '../../src/purchases/sync-grants.ts'
import type { MappedProduct, StoreApp } from '../../src/purchases/types.ts'
import { openLedger } from '../ledger/world.ts'
import { chainOf, type History, historyOf, type Step, shownAt } from './play-model.ts'

const ledger = await openLedger()
after(() => ledger[Symbol.asyncDispose]())
const { pool } = ledger
const services: AttachServices = { tombstoneKey: Buffer.alloc(32, 7), sealingKey: Buffer.alloc(32, 9), baseUrls: [] }
const dayMs = 24 * 3600_000
/** Time goes on while the last reading is applied. */
const minuteMs = 60_000
/** Histories begin now and go on for months, by the clock of their test environment. */
const begins = Date.now()
for (let month = 1; month <= 6; month++) {
  await pool.query('insert into test_clock (scope_id, offset_ms) values ($1, $2)', [
    1_000_000 + month,
    month * 30 * dayMs,
  ])
}
await ensureEntryPartitions(pool)

interface Reading {
  token: string
  at: number
}

interface World {
  app: StoreApp
  mapped: Map<string, MappedProduct>
}

async function prepare(): Promise<World> {
  const scope = await ledger.scope()
  await ledger.feature(scope)
  const grants = [
    { feature: 'exports', allowance: 100, unlimited: false, interval: null, entity_scoped: false, rollover: null },
  ]
  const mapped = new Map<string, MappedProduct>()
  for (const key of ['monthly', 'yearly']) {
    const product = await pool.transaction((tx) =>
      createProduct(tx, scope, { key, name: key, type: 'subscription', grants, stores: [] }),
    )
    const link = {
      store: 'playstore',
      productId: key,
      basePlanId: null,
      purchaseOptionId: null,
      offerId: null,
    } as const
    mapped.set(key, { product, link: { ...link, consumable: false, duration: null, familySharing: false } })
  }
  const app: StoreApp = {
    ...{ scope, appId: 'app_model', bundleId: null, packageName: 'com.example.app' },
    ...{ accountTokenNamespace: '3f0a1c52-6d7e-4b8f-9a01-23456789abcd', settings: defaultSettings },
    ...{ credentials: {}, clockOffsetMs: 0 },
  }
  return { app, mapped }
}

/** Applies what a read at `reading.at` shows, at the instant `now`, as a call of the owner or as a notification. */
async function apply(world: World, history: History, reading: Reading, now: number, asked: boolean): Promise<void> {
  const body = shownAt(history, reading.token, reading.at)
  if (body === null) return
  const purchase = must(parsePurchase('subscription', body, reading.at) ?? undefined, 'as Google documents')
  const voided = new Map(history.voided.filter(({ at }) => at <= reading.at).map(({ orderId, at }) => [orderId, at]))
  const verdict = interpret(
    {
      ...{ packageName: 'com.example.app', token: reading.token, purchase, voided, isKnown: true, leaseMs: dayMs },
      ...{ chain: chainOf(history, reading.token), readAt: reading.at, now: reading.at },
      mapped: purchase.items.map(({ productId }) => world.mapped.get(productId) ?? null),
    },
    { claims: {}, consume: false },
  )
  if (verdict.kind !== 'verified') return
  await pool.query(
    `insert into test_clock as c (scope_id, offset_ms) values ($1, $2)
     on conflict (scope_id) do update set offset_ms = greatest(c.offset_ms, excluded.offset_ms)`,
    [world.app.scope.scopeId, Math.max(0, now - Date.now())],
  )
  await pool.transaction((tx) => attach(tx, services, world.app, verdict.purchase, asked ? 'ada' : null))
}

async function run(world: World, history: History, readings: readonly Reading[], end: number): Promise<void> {
  let now = history.begins
  for (const [n, reading] of readings.entries()) {
    now = Math.max(now, reading.at)
    await apply(world, history, reading, now, n % 2 === 0)
  }
  // Whatever was lost, late or twice: in the end the purchase that stands is read once more.
  await apply(world, history, { token: must(history.tokens.at(-1), 'one at least'), at: end }, end, true)
}

/** What a customer has now: whether there is access, and the grants that give it. */
async function standing({ app }: World, end: number) {
  const [owner] = await pool.query<{ owner: string | null }>(
    'select owner_customer_id as owner from store_lineage where scope_id = $1',
    [app.scope.scopeId],
  )
  const grants = await pool.query<{ source_ref: string; amount: bigint; expires: bigint | null }>(
    `select source_ref, amount, expires_at_ms as expires
     from ledger_grant
     where scope_id = $1
       and revoked_at_ms is null
       and (expires_at_ms is null or expires_at_ms > $2)
     order by expires_at_ms`,
    [app.scope.scopeId, end],
  )
  const [lineage, ...others] = owner?.owner
    ? await selectLineagesOf(pool, app.scope, owner.owner, { limit: 10, after: null })
    : []
  const periods = lineage ? await selectPeriods(pool, lineage, 1000) : []
  return {
    lineages: others.length,
    access: periods.some((period) => isOpen(period, end)),
    grants: grants.map(({ amount, expires }) => ({ amount, expires })),
    periods,
  }
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('renew', 'renew', 'grace', 'hold', 'cancel', 'change', 'change', 'void', 'defer'),
  days: fc.integer({ min: 1, max: 27 }),
})

let names = 0
const runs = Number(process.env.PLAY_RUNS ?? 20)

test('any order, repetition, loss and delay of readings ends in the access and the grants of the ordered history', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 10, max: 120 }),
      fc.array(step, { minLength: 1, maxLength: 6 }),
      fc.array(
        fc.record({ share: fc.double({ min: 0, max: 0.99, noNaN: true }), which: fc.nat(5), rank: fc.nat(1000) }),
        {
          maxLength: 25,
        },
      ),
      async (days, steps, samples) => {
        const end = begins + days * dayMs
        const history = historyOf(`h${++names}`, steps, { begins, end })
        const readings = samples.flatMap(({ share, which, rank }) => {
          const at = begins + Math.floor(share * (end - begins))
          const token = must(history.tokens[which % history.tokens.length], 'one of them')
          return shownAt(history, token, at) === null ? [] : [{ token, at, rank }]
        })
        const every = history.moments.map(({ token, at }) => ({ token, at }))
        const ordered = await prepare()
        const inOrder = [...every, ...readings].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)
        await run(ordered, history, inOrder, end)
        const jumbled = await prepare()
        await run(
          jumbled,
          history,
          readings.toSorted((a, b) => a.rank - b.rank),
          end,
        )
        const [first, second] = [await standing(ordered, end + minuteMs), await standing(jumbled, end + minuteMs)]
        assert.deepEqual(
          { access: second.access, grants: second.grants, lineages: second.lineages },
          { access: first.access, grants: first.grants, lineages: first.lineages },
        )
        assert.equal(first.access, history.paidAtEnd, 'access at the end is what is paid')
        assertSound(first, history, end + minuteMs)
        assertSound(second, history, end + minuteMs)
      },
    ),
    { numRuns: runs, examples: [[10, [{ kind: 'renew', days: 1 }], []]] },
  )
  const found: unknown[] = []
  await verifyLedger(pool, { onFinding: (finding) => found.push(finding) })
  assert.deepEqual(found, [])
})

/** No order is granted twice, none gives access that was not paid, and one subscription has one current period at any time. */
function assertSound({ periods }: Awaited<ReturnType<typeof standing>>, { orders }: History, end: number): void {
  const granted = periods.filter(({ grantRef }) => grantRef !== null)
  assert.equal(new Set(granted.map(({ orderId }) => orderId)).size, granted.length, 'each order once')
  for (const period of periods) assert.ok(orders.has(period.orderId ?? ''), 'of an order')
  const current = periods.filter((period) => isOpen(period, end) && period.startsAt <= end)
  assert.ok(current.length <= 1, `${current.length} at once`)
  for (const { orderId, accessUntil } of current) {
    const paid = must(orders.get(orderId ?? ''), 'of an order')
    assert.ok(accessUntil !== null && accessUntil <= paid.until + 3 * dayMs, 'not beyond what is paid and grace')
  }
}
