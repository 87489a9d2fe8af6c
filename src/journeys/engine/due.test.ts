import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import { dueInWindow, dueUntil } from './due.ts'

const berlin = { startTime: '09:00', endTime: '17:00', timezone: 'Europe/Berlin', daysOfWeek: [] as number[] }
const at = (text: string) => Date.parse(text)

test('inside a window it is due at once, its start included, its end not', () => {
  for (const now of ['2026-11-20T08:00:00Z', '2026-11-20T15:59:59.999Z'])
    assert.equal(dueInWindow(berlin, at(now)), at(now))
  assert.equal(dueInWindow(berlin, at('2026-11-20T16:00:00Z')), at('2026-11-21T08:00:00Z'))
  assert.equal(dueInWindow(berlin, at('2026-11-20T07:59:59.999Z')), at('2026-11-20T08:00:00Z'))
})

test('a window that ends before it starts lasts over midnight, and belongs to the day it begins on', () => {
  const night = { ...berlin, startTime: '22:00', endTime: '02:00', daysOfWeek: [5] }
  const saturday = at('2026-11-21T00:30:00Z')
  assert.equal(dueInWindow(night, saturday), saturday, 'Friday’s')
  assert.equal(dueInWindow(night, at('2026-11-21T01:00:00Z')), at('2026-11-27T21:00:00Z'))
  assert.equal(dueInWindow(night, at('2026-11-20T00:30:00Z')), at('2026-11-20T21:00:00Z'), 'Thursday has none')
})

test('the clock of the zone counts, also where it is changed', () => {
  assert.equal(dueInWindow(berlin, at('2026-03-28T20:00:00Z')), at('2026-03-29T07:00:00Z'), 'summer begins')
  assert.equal(dueInWindow(berlin, at('2026-10-24T20:00:00Z')), at('2026-10-25T08:00:00Z'), 'summer ends')
  const skipped = { ...berlin, startTime: '02:30', endTime: '03:30' }
  assert.equal(
    dueInWindow(skipped, at('2026-03-28T23:30:00Z')),
    at('2026-03-29T01:30:00Z'),
    '02:30 is not there that day',
  )
  const tokyo = { ...berlin, timezone: 'Asia/Tokyo', daysOfWeek: [1] }
  assert.equal(dueInWindow(tokyo, at('2026-11-20T12:00:00Z')), at('2026-11-23T00:00:00Z'))
})

test('whatever the window, it is due within eight days and never before now', () => {
  const time = fc
    .record({ h: fc.nat(23), m: fc.nat(59) })
    .map(({ h, m }) => `${String(h).padStart(2, '0')}:${String(m).padStart(2, '0')}`)
  const zones = fc.constantFrom('UTC', 'America/New_York', 'Asia/Kolkata', 'Pacific/Apia', 'Australia/Lord_Howe')
  fc.assert(
    fc.property(
      time,
      time,
      zones,
      fc.uniqueArray(fc.nat(6)),
      fc.nat(10 * 365 * 86_400_000),
      (startTime, endTime, timezone, daysOfWeek, ms) => {
        const now = at('2020-01-01T00:00:00Z') + ms
        const due = dueInWindow({ startTime, endTime, timezone, daysOfWeek }, now)
        assert.ok(due >= now && due <= now + 8 * 86_400_000)
        assert.equal(dueInWindow({ startTime, endTime, timezone, daysOfWeek }, due), due, 'then it is open')
      },
    ),
  )
})

test('a time that a value holds is ISO 8601 or Unix milliseconds; nothing else is waited for', () => {
  const now = at('2026-11-20T00:00:00Z')
  assert.equal(dueUntil('2026-11-21T00:00:00Z', now), at('2026-11-21T00:00:00Z'))
  for (const value of [undefined, null, 'soon', true, {}, [], Number.NaN, -1]) assert.equal(dueUntil(value, now), now)
})
