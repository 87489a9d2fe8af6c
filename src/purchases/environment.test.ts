import assert from 'node:assert/strict'
import test from 'node:test'
import { isAccepted, storeEnvironmentOf } from './environment.ts'
import { defaultSettings } from './settings.ts'
import type { StoreSettings } from './types.ts'

const scope = { scopeId: 1, workspaceId: 'ws', projectId: 'proj' }
const accepts = (
  environment: 'test' | 'live',
  claim: string,
  settings: Partial<StoreSettings> = {},
  customerId = 'a',
) =>
  isAccepted(
    { scope: { ...scope, environment }, settings: { ...defaultSettings, ...settings } },
    storeEnvironmentOf(claim),
    { customerId, now: 1000 },
  )

test('each environment of the App Store is taken where the table says', () => {
  assert.deepEqual(
    ['Production', 'Sandbox', 'Xcode', 'LocalTesting'].map((claim) => [accepts('test', claim), accepts('live', claim)]),
    [
      [false, true],
      [true, false],
      [true, false],
      [true, false],
    ],
  )
})

test('live takes the sandbox from reviewers, from anybody or from nobody', () => {
  assert.equal(accepts('live', 'Sandbox', { reviewOpenUntil: 1001 }), true)
  assert.equal(accepts('live', 'Sandbox', { reviewOpenUntil: 1000 }), false)
  assert.equal(accepts('live', 'Sandbox', { reviewCustomers: ['a'] }), true)
  assert.equal(accepts('live', 'Sandbox', { reviewCustomers: ['b'] }), false)
  assert.equal(accepts('live', 'Sandbox', { sandboxInLive: 'anybody' }), true)
  assert.equal(
    accepts('live', 'Sandbox', { sandboxInLive: 'nobody', reviewOpenUntil: 1001, reviewCustomers: ['a'] }),
    false,
  )
  assert.equal(accepts('live', 'Xcode', { sandboxInLive: 'anybody' }), false)
})
