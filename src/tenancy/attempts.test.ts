import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { attempt, decideAllowance, networkOf } from './attempts.ts'

const database = await testDatabase()
after(() => database[Symbol.asyncDispose]())
const { pool } = database
const limit = { max: 3, windowMs: 60_000 }

test('as many as allowed get through, and one more does not, for an e-mail and for an address', async () => {
  const tries = async (address: () => string, email: () => string) => {
    const allowed: boolean[] = []
    for (let n = 0; n < 5; n++)
      allowed.push((await attempt(pool, 'a', { address: address(), email: email() }, limit)).allowed)
    return allowed
  }
  let n = 0
  const next = () => `${n++}`
  const expected = [true, true, true, false, false]
  assert.deepEqual(
    await tries(
      () => `10.0.0.${next()}`,
      () => 'Ada@example.com',
    ),
    expected,
  )
  assert.deepEqual(
    await tries(
      () => '10.1.1.1',
      () => `${next()}@example.com`,
    ),
    expected,
  )
  assert.equal((await attempt(pool, 'a', { address: '10.9.9.9', email: 'ADA@example.com' }, limit)).allowed, false)
  assert.equal((await attempt(pool, 'b', { address: '10.1.1.1', email: 'ada@example.com' }, limit)).allowed, true)
})

test('attempts at the same instant are counted one by one, and wait for no circle', async () => {
  const pairs = Array.from({ length: 40 }, (_, n) => ({ address: `10.2.0.${n % 4}`, email: `${n % 3}@example.com` }))
  const answers = await Promise.all(pairs.map((pair) => attempt(pool, 'same', pair, { max: 10, windowMs: 60_000 })))
  const perEmail = [0, 1, 2].map((email) => answers.filter(({ allowed }, n) => allowed && n % 3 === email).length)
  assert.ok(Math.max(...perEmail) <= 10)
})

test('when its time is over, an allowance is whole again', async () => {
  const who = { address: '10.3.0.1' }
  for (let n = 0; n < 4; n++) await attempt(pool, 'late', who, limit)
  await pool.query(`update attempt set resets_at = now() - interval '1 ms'`)
  assert.deepEqual(await attempt(pool, 'late', who, limit), { allowed: true, limit: 3, remaining: 2, resetsInS: 60 })
})

test('the one with least left speaks, for as long as the longest of those', () => {
  const counted = [
    { count: 2, resetsInMs: 9000 },
    { count: 3, resetsInMs: 1001 },
    { count: 3, resetsInMs: 500 },
  ]
  assert.deepEqual(decideAllowance(counted, limit), { allowed: true, limit: 3, remaining: 0, resetsInS: 2 })
})

test('an IPv6 caller is its /64, whatever the spelling', () => {
  const same = ['2001:db8::1', '2001:db8:0:0:ffff::', '2001:0DB8:0000:0000:1:2:3:4', '2001:db8::9%eth0']
  assert.deepEqual(new Set(same.map(networkOf)), new Set(['2001:db8:0:0']))
  assert.equal(networkOf('::ffff:10.0.0.1'), '10.0.0.1')
  assert.equal(networkOf('10.0.0.1'), '10.0.0.1')
  assert.equal(networkOf('::1'), '0:0:0:0')
})
