import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import { Refusal } from '../../kernel/errors.ts'
import type { FeatureType } from '../types.ts'
import { type GrantTerms, storedTerms } from './grant-terms.ts'

const once: GrantTerms = { allowance: null, unlimited: false, interval: null, rollover: null }
const metered = { type: 'metered', scale: 0 } as const

function refusedParam(feature: { type: FeatureType; scale: number }, terms: GrantTerms, path?: string) {
  try {
    storedTerms(feature, terms, path)
    return null
  } catch (error) {
    assert.ok(error instanceof Refusal)
    assert.equal(error.code, 'invalid_request')
    return error.detail.param
  }
}

test('credits are stored times 10^scale, and refused when that could not be stored exactly', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n }), fc.integer({ min: 0, max: 6 }), (allowance, scale) => {
      const feature = { type: 'creditSystem', scale } as const
      const amount = allowance * 10n ** BigInt(scale)
      if (amount < 2n ** 63n) assert.equal(storedTerms(feature, { ...once, allowance }).amount, amount)
      else assert.equal(refusedParam(feature, { ...once, allowance }), 'allowance')
    }),
  )
})

test('a cap on rollover beyond what can be stored caps nothing', () => {
  const terms = { ...once, allowance: 1n, interval: 'month' } as const
  const rollover = (max: bigint | null) => ({ ...terms, rollover: { max, periods: 2 } })
  const feature = { type: 'creditSystem', scale: 2 } as const
  assert.deepEqual(storedTerms(feature, rollover(5n)).rollover, { max: 500n, periods: 2 })
  assert.deepEqual(storedTerms(feature, rollover(2n ** 63n)).rollover, { max: null, periods: 2 })
  assert.deepEqual(storedTerms(feature, rollover(null)).rollover, { max: null, periods: 2 })
})

test('a boolean Feature has no units, no interval and nothing to roll over', () => {
  const feature = { type: 'boolean', scale: 0 } as const
  const stored = { amount: 0n, unlimited: false, interval: null, rollover: null }
  assert.deepEqual(storedTerms(feature, once), stored)
  assert.deepEqual(storedTerms(feature, { ...once, unlimited: true }), stored)
  assert.equal(refusedParam(feature, { ...once, allowance: 0n }), 'allowance')
  assert.equal(refusedParam(feature, { ...once, interval: 'day' }), 'interval')
  assert.equal(refusedParam(feature, { ...once, rollover: { max: null, periods: null } }), 'rollover')
})

test('the refusal names the field as the caller wrote it', () => {
  assert.equal(refusedParam(metered, once, 'grants.3.'), 'grants.3.allowance')
  assert.equal(refusedParam(metered, { ...once, allowance: 1n, unlimited: true }), 'allowance')
  assert.equal(refusedParam(metered, { ...once, allowance: 1n, rollover: { max: null, periods: null } }), 'rollover')
})
