import assert from 'node:assert/strict'
import test from 'node:test'
import { aTransaction, signApple, testPki } from '../../../test/harness/apple-pki.ts'
import { systemClock } from '../../kernel/clock.ts'
import { defaultSettings } from '../settings.ts'
import { createStoreCalls } from '../store-calls.ts'
import type { MappedProduct, StoreApp, StoreSettings, VerifyContext } from '../types.ts'
import { createAppStoreApi } from './api.ts'
import { trustSet } from './chain.ts'
import { createAppStoreVerifier } from './verify.ts'

/** Live believes Apple's own root only, so that no test can sign for it: here another root stands in its place. */
const pki = await testPki()
const trust = trustSet([pki.root.certificate])
const verify = createAppStoreVerifier({
  clock: systemClock,
  api: createAppStoreApi(systemClock, createStoreCalls(systemClock)),
  trusts: { of: () => trust, forgetChains: () => {} },
  revocations: { revoked: () => new Set(), isGood: () => true, seen: () => {} },
})

const link = { store: 'appstore', productId: 'com.example.pro', basePlanId: null, purchaseOptionId: null } as const
const mapped: MappedProduct = {
  product: {
    ...{ scopeId: 1, publicId: 'prod_1', key: 'pro', name: 'Pro', type: 'one_time', grants: [], stores: [] },
    ...{ preview: null, status: 'active', createdAt: new Date(0), updatedAt: new Date(0) },
  },
  link: { ...link, offerId: null, consumable: false, duration: null, familySharing: false },
}

function context(customerId: string | null): VerifyContext {
  const nothing = async () => null
  return { now: Date.now(), customerId, productFor: async () => mapped, known: nothing, saved: nothing }
}

function app(settings: Partial<StoreSettings>, appAppleId: number | null): StoreApp {
  return {
    scope: { scopeId: 1, workspaceId: 'ws', projectId: 'proj', environment: 'live' },
    ...{ appId: 'app_1', bundleId: 'com.example.app', packageName: null, accountTokenNamespace: '', clockOffsetMs: 0 },
    settings: { ...defaultSettings, ...settings },
    credentials: { appstore: { appAppleId, api: null } },
  }
}

interface Row {
  row: string
  environment: string
  settings?: Partial<StoreSettings>
  appAppleId?: number | null
  expected: string
}

const reviewOpenUntil = Date.now() + 60_000
const rows: Row[] = [
  { row: 'Production', environment: 'Production', expected: 'verified' },
  { row: 'Production, no app_apple_id', environment: 'Production', appAppleId: null, expected: 'unavailable' },
  { row: 'Sandbox, no review', environment: 'Sandbox', expected: 'invalid' },
  { row: 'Sandbox, a review is open', environment: 'Sandbox', settings: { reviewOpenUntil }, expected: 'verified' },
  { row: 'Sandbox, a review is over', environment: 'Sandbox', settings: { reviewOpenUntil: 1 }, expected: 'invalid' },
  { row: 'Sandbox, a reviewer', environment: 'Sandbox', settings: { reviewCustomers: ['a'] }, expected: 'verified' },
  {
    row: 'Sandbox, another reviewer',
    environment: 'Sandbox',
    settings: { reviewCustomers: ['b'] },
    expected: 'invalid',
  },
  { row: 'Sandbox, anybody', environment: 'Sandbox', settings: { sandboxInLive: 'anybody' }, expected: 'verified' },
  {
    ...{ row: 'Sandbox, nobody', environment: 'Sandbox', expected: 'invalid' },
    settings: { sandboxInLive: 'nobody', reviewOpenUntil },
  },
  { row: 'Xcode', environment: 'Xcode', settings: { sandboxInLive: 'anybody' }, expected: 'invalid' },
]

for (const { row, environment, settings = {}, appAppleId = 1234, expected } of rows) {
  test(`in live: ${row}`, async () => {
    const text = signApple(pki, aTransaction({ environment }))
    const evidence = { store: 'appstore', text, claims: {}, consume: false } as const
    const verdict = await verify(app(settings, appAppleId), evidence, context('a'))
    assert.equal(verdict.kind === 'refused' ? verdict.suffix : verdict.kind, expected, JSON.stringify(verdict))
  })
}
