import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import { costText, parseCost } from './credit-costs.ts'
import { decimalText, parseDecimal } from './decimals.ts'

test('a decimal is read exactly, without trailing zeros', () => {
  const table: [string, bigint, number][] = [
    ['0', 0n, 0],
    ['12', 12n, 0],
    ['007', 7n, 0],
    ['0.250', 25n, 2],
    ['10.00', 10n, 0],
    ['0.000001', 1n, 6],
    ['999999999999.999999', 999_999_999_999_999_999n, 6],
  ]
  for (const [text, digits, decimals] of table) assert.deepEqual(parseDecimal(text), { digits, decimals }, text)
})

test('anything but plain decimal notation is no decimal', () => {
  for (const text of ['', ' 1', '1 ', '+1', '-1', '.5', '5.', '1e3', '0x1', '1,5', '１', 'NaN', '1.2.3']) {
    assert.equal(parseDecimal(text), null, text)
  }
})

test('stored units print as the number they are, negative ones too', () => {
  const table: [bigint, number, string][] = [
    [0n, 6, '0'],
    [5n, 0, '5'],
    [-5n, 0, '-5'],
    [5n, 2, '0.05'],
    [-5n, 2, '-0.05'],
    [-90n, 2, '-0.9'],
    [1_234_500n, 6, '1.2345'],
    [-(2n ** 63n), 6, '-9223372036854.775808'],
  ]
  for (const [stored, scale, text] of table) assert.equal(decimalText(stored, scale), text)
})

test('reading what was printed gives the same number', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), fc.integer({ min: 0, max: 6 }), (stored, scale) => {
      const read = parseDecimal(decimalText(stored, scale))
      assert.ok(read && read.decimals <= scale)
      assert.equal(read.digits * 10n ** BigInt(scale - read.decimals), stored)
    }),
  )
})

test('a cost is an exact rational that prints as it was written', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: 10n ** 18n - 1n }), (millionths) => {
      const text = decimalText(millionths, 6)
      const { credits, per, decimals } = parseCost(text, 'cost')
      assert.equal(credits * 1_000_000n, millionths * per)
      assert.equal(per, 10n ** BigInt(decimals))
      assert.equal(costText({ credits, per }), text)
    }),
  )
})
