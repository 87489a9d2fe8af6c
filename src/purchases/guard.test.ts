import assert from 'node:assert/strict'
import test from 'node:test'
import { customerPurchasesPerMinute, evidenceBurst, evidenceEveryMs, evidenceRestMs } from '../kernel/limits.ts'
import { createGuard } from './guard.ts'

test('one piece of evidence may be tried in a burst, then once a minute', () => {
  let now = 0
  const guard = createGuard(() => now)
  for (let n = 0; n < evidenceBurst; n++) assert.equal(guard.enter('e', `c${n}`), 0)
  assert.equal(guard.enter('e', 'c'), 60)
  now += evidenceEveryMs - 1
  assert.equal(guard.enter('e', 'c'), 1)
  now += 1
  assert.equal(guard.enter('e', 'c'), 0)
  assert.ok(guard.enter('e', 'c') > 0)
  assert.equal(guard.enter('another', 'c'), 0)
})

test('evidence that was refused for good rests five minutes', () => {
  let now = 0
  const guard = createGuard(() => now)
  assert.equal(guard.enter('e', 'c'), 0)
  guard.rest('e')
  assert.equal(guard.enter('e', 'c'), evidenceRestMs / 1000)
  now += evidenceRestMs
  assert.equal(guard.enter('e', 'c'), 0)
})

test('a customer brings sixty a minute', () => {
  let now = 0
  const guard = createGuard(() => now)
  for (let n = 0; n < customerPurchasesPerMinute; n++) assert.equal(guard.enter(`e${n}`, 'c'), 0)
  assert.equal(guard.enter('more', 'c'), 1)
  assert.equal(guard.enter('more', 'another'), 0)
  now += 1000
  assert.equal(guard.enter('more', 'c'), 0)
})
