import assert from 'node:assert/strict'
import test from 'node:test'
import { addCalendarPeriod, isCalendarPeriod } from './calendar-period.ts'

test('periods are ISO 8601, and not nothing', () => {
  for (const text of ['P1D', 'P1W', 'P1M', 'P3M', 'P1Y', 'P1Y6M', 'PT1H', 'P1DT12H'])
    assert.ok(isCalendarPeriod(text), text)
  for (const text of ['', 'P', 'PT', 'P0D', '1M', 'P1.5M', 'P-1M', 'P1H', 'P1M ', 'p1m'])
    assert.ok(!isCalendarPeriod(text), text)
})

test('months end at the last day of a shorter one', () => {
  const from = Date.UTC(2027, 0, 31, 12)
  assert.equal(addCalendarPeriod(from, 'P1M'), Date.UTC(2027, 1, 28, 12))
  assert.equal(addCalendarPeriod(from, 'P1Y1M'), Date.UTC(2028, 1, 29, 12))
  assert.equal(addCalendarPeriod(from, 'P1W'), Date.UTC(2027, 1, 7, 12))
  assert.equal(addCalendarPeriod(from, 'P1DT1H1M1S'), Date.UTC(2027, 1, 1, 13, 1, 1))
})
