import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dayMs, historyAwayMs, historyEveryMs, historyOverlapMs } from '../../kernel/limits.ts'
import { spanOf } from './history-span.ts'

const now = 1_800_000_000_000
const production = { storeEnvironment: 'production', now } as const

test('what arrived is not asked for while we are here, and everything once we were away', () => {
  const usual = spanOf({ readUntil: now - historyEveryMs, underWay: null }, production)
  const from = now - historyEveryMs - historyOverlapMs
  assert.deepEqual(usual, { from, until: now, whole: false, nextPage: null })
  for (const [awayMs, whole] of [
    [historyAwayMs, false],
    [historyAwayMs + 1, true],
  ] as const) {
    assert.equal(spanOf({ readUntil: now - awayMs, underWay: null }, production).whole, whole)
  }
})

test('a span under way goes on as it began: its token is good for no other', () => {
  const underWay = { from: now - dayMs, until: now - 1000, whole: true, nextPage: 'two' }
  assert.deepEqual(spanOf({ readUntil: now - dayMs, underWay }, production), underWay)
})

test('nothing is asked for that Apple has forgotten', () => {
  for (const [storeEnvironment, days] of [
    ['production', 180],
    ['sandbox', 30],
  ] as const) {
    const readUntil = now - 400 * dayMs
    const underWay = { from: now - days * dayMs, until: now, whole: true, nextPage: 'two' }
    for (const each of [null, underWay]) {
      const { from, nextPage } = spanOf({ readUntil, underWay: each }, { storeEnvironment, now })
      assert.ok(from > now - days * dayMs && from <= now - (days - 1) * dayMs)
      assert.equal(nextPage, null)
    }
  }
})
