import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import { isSigned } from './signature.ts'

const secret = 'whsec_of_the_test'
const now = 1_790_000_000_000
const bytes = fc.uint8Array({ maxLength: 100 }).map((array) => Buffer.from(array))

function headerOf(raw: Buffer, time: number | string, by = secret): string {
  return `t=${time},v1=${createHmac('sha256', by).update(`${time}.`).update(raw).digest('hex')}`
}

test('whatever was signed within five minutes either way is vouched for, and not a second more', () => {
  fc.assert(
    fc.property(bytes, fc.integer({ min: -400, max: 400 }), (raw, seconds) => {
      const header = headerOf(raw, now / 1000 + seconds)
      assert.equal(isSigned(raw, header, { secret, now }), Math.abs(seconds) <= 300)
    }),
    { examples: [-301, -300, 300, 301].map((seconds): [Buffer, number] => [Buffer.from('{}'), seconds]) },
  )
})

test('another secret, other bytes and another time vouch for nothing', () => {
  fc.assert(
    fc.property(bytes, bytes, fc.string(), (raw, other, by) => {
      fc.pre(!raw.equals(other) && by !== secret)
      const good = headerOf(raw, now / 1000)
      assert.equal(isSigned(other, good, { secret, now }), false)
      assert.equal(isSigned(raw, headerOf(raw, now / 1000, by), { secret, now }), false)
      assert.equal(isSigned(raw, good.replace(/^t=\d+/, `t=${now / 1000 + 1}`), { secret, now }), false)
    }),
  )
})

test('one of several signatures is enough; two times are none', () => {
  const raw = Buffer.from('{}')
  const good = headerOf(raw, now / 1000)
  const old = `v1=${'0'.repeat(64)}`
  assert.equal(isSigned(raw, `${good},${old}`, { secret, now }), true)
  assert.equal(isSigned(raw, good.replace(',', `,${old}, `), { secret, now }), true)
  assert.equal(isSigned(raw, `${good},t=${now / 1000}`, { secret, now }), false)
  assert.equal(isSigned(raw, good.replace('v1=', 'v0='), { secret, now }), false)
})

test('no header makes it throw, or vouch', () => {
  const word = fc.constantFrom(
    't',
    'v1',
    'v0',
    '=',
    ',',
    ' ',
    '1',
    '00',
    'f'.repeat(64),
    'F'.repeat(64),
    '-',
    'e9',
    '\0',
  )
  fc.assert(
    fc.property(
      fc.oneof(
        fc.array(word).map((words) => words.join('')),
        fc.string({ unit: 'binary' }),
      ),
      (header) => {
        assert.equal(isSigned(Buffer.from('{}'), header, { secret, now }), false)
      },
    ),
  )
})
