import assert from 'node:assert/strict'
import test from 'node:test'
import { aTransaction, dayMs } from '../../../test/harness/apple-pki.ts'
import type { StoreLink } from '../../entitlements/index.ts'
import type { TransactionClaims } from './claims.ts'
import { judge, quantityOf, type Renewal, revocationOf } from './judge.ts'

const now = Date.UTC(2026, 10, 20)
const link: StoreLink = {
  store: 'appstore',
  productId: 'p',
  basePlanId: null,
  purchaseOptionId: null,
  offerId: null,
  consumable: false,
  duration: null,
  familySharing: false,
}
const subscription = {
  type: 'Auto-Renewable Subscription',
  purchaseDate: now - 10 * dayMs,
  expiresDate: now + 20 * dayMs,
}

function judged(claims: object, renewal: Renewal | null = null, terms: Partial<StoreLink> = {}) {
  const transaction = { ...aTransaction(), ...claims } as unknown as TransactionClaims
  const { access, status } = judge(transaction, { link: { ...link, ...terms }, renewal, now })
  return access.kind === 'open'
    ? [status, access.until]
    : access.kind === 'closed'
      ? [access.detail, access.claim]
      : ['superseded']
}

const status = (number: number | null, info: Renewal['info'] = null): Renewal => ({ status: number, info })
const over = { ...subscription, expiresDate: now - 1 }
const end = subscription.expiresDate

const table: [string, object, Renewal | null, Partial<StoreLink>, unknown[]][] = [
  ['active', subscription, status(1), {}, ['active', end]],
  ['active, nobody asked', subscription, null, {}, ['active', end]],
  ['grace', over, status(4, { gracePeriodExpiresDate: now + dayMs }), {}, ['grace', now + dayMs]],
  ['grace that is over', over, status(4, { gracePeriodExpiresDate: now }), {}, ['billing_retry', true]],
  ['grace without an end', over, status(4), {}, ['billing_retry', true]],
  ['billing retry', over, status(3), {}, ['billing_retry', true]],
  ['expired', subscription, status(2), {}, ['expired', false]],
  ['its end has passed, nobody asked', over, null, {}, ['expired', false]],
  ['its end is now', { ...subscription, expiresDate: now }, null, {}, ['expired', false]],
  ['revoked by status', subscription, status(5), {}, ['revoked', false]],
  ['refunded', { ...subscription, revocationDate: now - 1 }, status(1), {}, ['revoked', false]],
  ['upgraded', { ...subscription, isUpgraded: true, revocationDate: now - 5 }, null, {}, ['superseded']],
  ['non-consumable', {}, null, {}, ['active', null]],
  ['non-consumable, refunded', { revocationDate: now - 1 }, null, {}, ['revoked', false]],
  ['consumable', { type: 'Consumable' }, null, {}, ['active', null]],
  ['consumable, refunded', { type: 'Consumable', revocationDate: now - 1 }, null, {}, ['revoked', false]],
  [
    'non-renewing',
    { type: 'Non-Renewing Subscription', purchaseDate: Date.UTC(2026, 9, 31) },
    null,
    { duration: 'P1M' },
    ['active', Date.UTC(2026, 10, 30)],
  ],
  [
    'non-renewing, over',
    { type: 'Non-Renewing Subscription', purchaseDate: Date.UTC(2026, 8, 30) },
    null,
    { duration: 'P1M' },
    ['expired', false],
  ],
  ['non-renewing without duration', { type: 'Non-Renewing Subscription' }, null, {}, ['duration_not_configured', true]],
  ['family', { inAppOwnershipType: 'FAMILY_SHARED' }, null, {}, ['family_shared', false]],
  ['family where allowed', { inAppOwnershipType: 'FAMILY_SHARED' }, null, { familySharing: true }, ['active', null]],
  ['another type', { type: 'Something New' }, null, {}, ['product_type', false]],
]

for (const [name, claims, renewal, terms, expected] of table) {
  test(`decision table: ${name}`, () => assert.deepEqual(judged(claims, renewal, terms), expected))
}

test('a quantity that is none counts as one', () => {
  const quantity = (value: unknown) =>
    quantityOf({ ...aTransaction(), quantity: value } as unknown as TransactionClaims)
  assert.deepEqual([1, 10, 0, -1, 1.5, undefined].map(quantity), [1, 10, 1, 1, 1, 1])
})

test('a share refunded is in thousandths of a per cent; without one it is all', () => {
  const share = (more: object) =>
    revocationOf({ ...aTransaction(more as Record<string, unknown>) } as unknown as TransactionClaims)?.share
  assert.equal(share({ revocationDate: 1 }), 1)
  assert.equal(share({ revocationDate: 1, revocationPercentage: 50_000 }), 0.5)
  assert.equal(share({ revocationPercentage: 50_000 }), undefined)
})
