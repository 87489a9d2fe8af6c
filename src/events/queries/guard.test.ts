import assert from 'node:assert/strict'
import test from 'node:test'
import { queriesAtOnceMax, queriesPerMinuteMax } from '../../kernel/limits.ts'
import { type Allowance, createQueryGuard } from './guard.ts'

const limited = { code: 'rate_limited', status: 429 }

test('as many queries of a workspace run at once as there may, and one more when one has ended', () => {
  const guard = createQueryGuard({ now: () => 0 })
  const ends = Array.from({ length: queriesAtOnceMax }, () => guard.start('ws'))
  assert.throws(() => guard.start('ws'), limited)
  guard.start('other')
  ends[0]?.()
  guard.start('ws')
  assert.throws(() => guard.start('ws'), limited)
})

test('a query that fails makes room too', async () => {
  const guard = createQueryGuard({ now: () => 0 })
  const failing = () => guard.run('ws', async () => Promise.reject(new Error('no')))
  for (let i = 0; i <= queriesAtOnceMax; i++) await assert.rejects(failing, /no/)
})

test('a minute has its queries, and the next one as many', () => {
  let now = 30_000
  const guard = createQueryGuard({ now: () => now })
  let told: Allowance | undefined
  const take = (workspace = 'ws') => guard.take(workspace, (allowance) => (told = allowance))
  for (let i = 0; i < queriesPerMinuteMax; i++) take()
  assert.deepEqual(told, { limit: queriesPerMinuteMax, remaining: 0, resetS: 30 })
  assert.throws(() => take(), limited)
  take('other')
  now = 60_000
  take()
  assert.equal(told?.remaining, queriesPerMinuteMax - 1)
})
