import assert from 'node:assert/strict'
import test from 'node:test'
import { acknowledgeBy, afterEndOf, nextCheckAt } from './due.ts'
import type { PlayItem, PlayPurchase } from './purchase.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const end = Date.UTC(2026, 10, 20)

test('a renewal is looked for 5 minutes, 1 hour, 6 hours and each day after the end', () => {
  const table: [now: number, next: number][] = [
    [end - 3 * hour, 5 * minute],
    [end, 5 * minute],
    [end + 5 * minute - 1, 5 * minute],
    [end + 5 * minute, hour],
    [end + hour, 6 * hour],
    [end + 6 * hour, day],
    [end + day, 2 * day],
    [end + 5 * day + hour, 6 * day],
  ]
  for (const [now, next] of table) assert.equal(afterEndOf(end, now), end + next, `${now - end}`)
})

const purchase = (status: string, expiresAt: number | null) =>
  ({ status, items: [{ expiresAt }] }) as Pick<PlayPurchase, 'status'> & { items: PlayItem[] }

test('everything that can change is read within a week, and nothing else', () => {
  assert.equal(nextCheckAt(purchase('active', end), end - hour), end + 5 * minute)
  assert.equal(nextCheckAt(purchase('active', end + 30 * day), end), end + 7 * day)
  assert.equal(nextCheckAt(purchase('pending', null), end), end + hour)
  assert.equal(nextCheckAt(purchase('purchased', null), end), end + 7 * day)
  assert.equal(nextCheckAt(purchase('hold', end - day), end), end + day)
  for (const over of ['expired', 'pending_canceled', 'cancelled'])
    assert.equal(nextCheckAt(purchase(over, end), end), null)
})

test('the earliest end of several items counts', () => {
  const two = { status: 'active', items: [{ expiresAt: end + day }, { expiresAt: end }] as PlayItem[] }
  assert.equal(nextCheckAt(two, end - hour), end + 5 * minute)
})

test('buyers are acknowledged within 3 days, testers within 3 minutes, short prepaid plans within half their time', () => {
  const by = (isTest: boolean, isPrepaid: boolean, expiresAt: number | null) =>
    acknowledgeBy({ startsAt: end, isTest } as PlayPurchase, { isPrepaid, expiresAt } as PlayItem)
  assert.equal(by(false, false, end + 30 * day), end + 3 * day)
  assert.equal(by(true, false, end + 30 * day), end + 3 * minute)
  assert.equal(by(false, true, end + 7 * day), end + 3 * day)
  assert.equal(by(false, true, end + 7 * day - 2), end + 3.5 * day - 1)
  assert.equal(by(false, true, end + day), end + day / 2)
  assert.equal(by(false, false, null), end + 3 * day)
  assert.equal(acknowledgeBy({ startsAt: null } as PlayPurchase, {} as PlayItem), null)
})
