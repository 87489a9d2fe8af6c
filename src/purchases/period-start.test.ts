import assert from 'node:assert/strict'
import test from 'node:test'
import { type Lasting, startOf } from './period-start.ts'

const day = 24 * 3600_000
const began = Date.UTC(2026, 0, 31)
const period = (key: string, paidUntil: number, startsAt = began): Lasting => ({ key, startsAt, paidUntil })
const first = period('GPA.1', began + 30 * day)

test('the first period that is seen begins with the purchase, however old it is', () => {
  assert.equal(startOf(period('GPA.1..11', began + 365 * day), [], began + 340 * day), began)
})

test('a period that follows another begins where that one ended, seen before or after', () => {
  const next = period('GPA.1..0', began + 61 * day)
  assert.equal(startOf(next, [first], began + 29 * day), began + 30 * day)
  assert.equal(startOf(next, [first], began + 45 * day), began + 30 * day)
})

test('a period that is known keeps its start', () => {
  const moved = { ...first, startsAt: began + 5 }
  assert.equal(startOf(period('GPA.1', began + 40 * day), [moved], began + 35 * day), began + 5)
})

test('after a gap it begins when somebody noticed', () => {
  const next = period('GPA.1..0', began + 90 * day)
  assert.equal(startOf(next, [first], began + 60 * day), began + 60 * day)
  // A short trial before a month looks the same, and is noticed at its end.
  const trial = period('GPA.2', began + 7 * day)
  assert.equal(startOf(period('GPA.2..0', began + 37 * day), [trial], began + 6 * day), began + 7 * day)
})

test('a purchase that began after the one before ended keeps its own beginning', () => {
  assert.equal(
    startOf(period('GPA.3', began + 80 * day, began + 50 * day), [first], began + 60 * day),
    began + 50 * day,
  )
})

test('no period begins at its end or after', () => {
  const shorter = period('GPA.1..0', began + 20 * day)
  assert.equal(startOf(shorter, [first], began + 25 * day), began + 20 * day - 1)
  const late = period('GPA.1..0', began + 90 * day)
  assert.equal(startOf(late, [first], began + 95 * day), began + 90 * day - 1)
})
