import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { dayMs, signApple } from '../harness/apple-pki.ts'
import fc from '../harness/random.ts'
import { startService } from '../harness/service.ts'
import { openStore } from './store-world.ts'

const service = await startService()
const world = await openStore(service, { api: false })
after(async () => {
  await world[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const at = fc.oneof(
  { weight: 30, arbitrary: fc.integer({ min: -500, max: 500 }).map((days) => Date.now() + days * dayMs) },
  { weight: 1, arbitrary: fc.constantFrom(0, -1, 0.5, 1e15, 1e300, 253_402_300_799_999) },
)
const words = fc.oneof(
  { weight: 20, arbitrary: fc.string() },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  fc.constantFrom('', '\0', '\ud800', 'x'.repeat(5000), '__proto__'),
)
const anything = fc.oneof(fc.jsonValue(), words, at)

const claims = fc.record(
  {
    productId: fc.oneof(
      {
        weight: 9,
        arbitrary: fc.constantFrom('com.example.pro', 'com.example.pack', 'com.example.monthly', 'com.example.pass'),
      },
      { weight: 1, arbitrary: words },
    ),
    type: fc.constantFrom(
      'Consumable',
      'Non-Consumable',
      'Auto-Renewable Subscription',
      'Non-Renewing Subscription',
      'Other',
    ),
    purchaseDate: at,
    expiresDate: at,
    signedDate: fc.integer({ min: 0, max: 390 }).map((days) => Date.now() - 1000 - days * dayMs),
    revocationDate: at,
    revocationPercentage: fc.double({ noNaN: true, noDefaultInfinity: true }),
    quantity: fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true })),
    isUpgraded: fc.boolean(),
    inAppOwnershipType: fc.constantFrom('PURCHASED', 'FAMILY_SHARED', 'OTHER'),
    originalTransactionId: fc.constantFrom('1', '2', '3'),
    webOrderLineItemId: words,
    appAccountToken: words,
    extra: anything,
  },
  { requiredKeys: [] },
)
const broken = fc.option(
  fc.tuple(
    fc.constantFrom('productId', 'type', 'purchaseDate', 'transactionId', 'environment', 'quantity', 'appAccountToken'),
    anything,
  ),
  { freq: 2 },
)

test('whatever a trusted root signs is answered, and never as our failure', { timeout: 240_000 }, async () => {
  await world.settings({ unbound_purchases: 'first_claim', transfer_policy: 'transfer' })
  const counts = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(claims, broken, fc.nat(30), async (given, wrong, who) => {
      const made = world.transaction(null, { ...given, ...(wrong ? { [wrong[0]]: wrong[1] } : {}) })
      const body = { type: 'appstore', distinct_id: `claims-${who}`, transaction_jwt: signApple(world.pki, made) }
      const { status, body: answer } = await world.app.post('/purchase', body)
      assert.ok([200, 400, 409, 503].includes(status), JSON.stringify(answer))
      counts.set(status, (counts.get(status) ?? 0) + 1)
    }),
    { numRuns: 200 },
  )
  // Most belong to somebody else, or to nobody: some must be taken, or nothing of it was tried.
  assert.ok((counts.get(200) ?? 0) > 0, JSON.stringify([...counts]))
  assert.deepEqual(service.errors, [])
})
