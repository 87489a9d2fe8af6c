import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { Cycle, CycleUnit } from '../types.ts'
import { periodAt, periodStart } from './cycle.ts'

const at = (iso: string): number => Date.parse(iso)
const iso = (ms: number): string => new Date(ms).toISOString()

test('a month from the 31st ends on the last day of short months and returns to the 31st', () => {
  const cycle: Cycle = { unit: 'month', count: 1, anchor: at('2024-01-31T18:30:00.250Z') }
  assert.deepEqual(
    [1n, 2n, 3n, 13n, 14n].map((no) => iso(periodStart(cycle, no))),
    [
      '2024-02-29T18:30:00.250Z',
      '2024-03-31T18:30:00.250Z',
      '2024-04-30T18:30:00.250Z',
      '2025-02-28T18:30:00.250Z',
      '2025-03-31T18:30:00.250Z',
    ],
  )
})

const table: [unit: CycleUnit, count: number, anchor: string, t: string, no: bigint, start: string, end: string][] = [
  ['minute', 5, '2026-01-01T00:00:30Z', '2026-01-01T00:05:29.999Z', 0n, '2026-01-01T00:00:30Z', '2026-01-01T00:05:30Z'],
  ['minute', 5, '2026-01-01T00:00:30Z', '2026-01-01T00:05:30.000Z', 1n, '2026-01-01T00:05:30Z', '2026-01-01T00:10:30Z'],
  ['hour', 1, '2026-03-29T00:30:00Z', '2026-03-29T03:00:00Z', 2n, '2026-03-29T02:30:00Z', '2026-03-29T03:30:00Z'],
  ['day', 1, '2026-03-28T23:00:00Z', '2026-03-30T22:59:59Z', 1n, '2026-03-29T23:00:00Z', '2026-03-30T23:00:00Z'],
  ['week', 2, '2026-01-05T00:00:00Z', '2026-02-01T00:00:00Z', 1n, '2026-01-19T00:00:00Z', '2026-02-02T00:00:00Z'],
  ['month', 1, '2023-01-30T00:00:00Z', '2023-02-28T00:00:00Z', 1n, '2023-02-28T00:00:00Z', '2023-03-30T00:00:00Z'],
  ['month', 1, '2023-01-30T00:00:00Z', '2023-02-27T23:59:59Z', 0n, '2023-01-30T00:00:00Z', '2023-02-28T00:00:00Z'],
  ['quarter', 1, '2023-11-30T08:00:00Z', '2024-03-01T00:00:00Z', 1n, '2024-02-29T08:00:00Z', '2024-05-30T08:00:00Z'],
  ['semiAnnual', 1, '2023-08-31T00:00:00Z', '2024-02-29T00:00:00Z', 1n, '2024-02-29T00:00:00Z', '2024-08-31T00:00:00Z'],
  ['year', 1, '2024-02-29T12:00:00Z', '2025-02-28T12:00:00Z', 1n, '2025-02-28T12:00:00Z', '2026-02-28T12:00:00Z'],
  ['year', 4, '2096-02-29T00:00:00Z', '2100-03-01T00:00:00Z', 1n, '2100-02-28T00:00:00Z', '2104-02-29T00:00:00Z'],
  ['month', 1, '1969-12-31T23:59:59Z', '1970-02-01T00:00:00Z', 1n, '1970-01-31T23:59:59Z', '1970-02-28T23:59:59Z'],
]
for (const [unit, count, anchor, t, no, start, end] of table) {
  test(`${t} lies in period ${no} of ${count} ${unit} from ${anchor}`, () => {
    assert.deepEqual(periodAt({ unit, count, anchor: at(anchor) }, at(t)), { no, start: at(start), end: at(end) })
  })
}

test('before the anchor it is period 0', () => {
  const cycle: Cycle = { unit: 'month', count: 1, anchor: at('2026-05-31T00:00:00Z') }
  const first = { no: 0n, start: cycle.anchor, end: at('2026-06-30T00:00:00Z') }
  assert.deepEqual(periodAt(cycle, cycle.anchor - 1), first)
  assert.deepEqual(periodAt(cycle, 0), first)
})

test('a period beyond the calendar ends with the calendar', () => {
  const cycle: Cycle = { unit: 'year', count: 1_000_000, anchor: at('2026-01-01T00:00:00Z') }
  assert.equal(periodAt(cycle, at('2027-01-01T00:00:00Z')).end, 8_640_000_000_000_000)
})

const units: CycleUnit[] = ['minute', 'hour', 'day', 'week', 'month', 'quarter', 'semiAnnual', 'year']
const cycles: fc.Arbitrary<Cycle> = fc.record({
  unit: fc.constantFrom(...units),
  count: fc.integer({ min: 1, max: 7 }),
  anchor: fc.integer({ min: at('1960-01-01T00:00:00Z'), max: at('2110-01-01T00:00:00Z') }),
})

/** Start of a period by reading and writing dates as text; shares nothing with the code it checks. */
function referenceStart({ unit, count, anchor }: Cycle, no: number): number {
  const seconds: Partial<Record<CycleUnit, number>> = { minute: 60, hour: 3_600, day: 86_400, week: 7 * 86_400 }
  const length = seconds[unit]
  if (length !== undefined) return anchor + no * count * length * 1000
  const [date = '', time = ''] = iso(anchor).split('T')
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number)
  const each = unit === 'month' ? 1 : unit === 'quarter' ? 3 : unit === 'semiAnnual' ? 6 : 12
  let [y, m] = [year, month]
  for (let left = no * count * each; left > 0; left--) [y, m] = m === 12 ? [y + 1, 1] : [y, m + 1]
  for (let d = day; ; d--) {
    const text = `${y}-${String(m).padStart(2, '0')}-${String(d).padStart(2, '0')}T${time}`
    if (iso(Date.parse(text)) === text) return Date.parse(text) // 31 April would be read as 1 May
  }
}

test('a period holds its instant, starts strictly increase, and both equal the calendar', () => {
  fc.assert(
    fc.property(cycles, fc.nat(60), fc.nat(1_000_000), (cycle, no, within) => {
      const [start, end] = [referenceStart(cycle, no), referenceStart(cycle, no + 1)]
      assert.ok(start < end)
      assert.equal(periodStart(cycle, BigInt(no)), start)
      const t = start + Math.floor(((end - start - 1) * within) / 1_000_000)
      for (const instant of [start, t, end - 1]) {
        assert.deepEqual(periodAt(cycle, instant), { no: BigInt(no), start, end })
      }
      assert.equal(periodAt(cycle, end).no, BigInt(no + 1))
    }),
    { numRuns: 300 },
  )
})

test('a later instant is never in an earlier period', () => {
  fc.assert(
    fc.property(cycles, fc.nat(4e12), fc.nat(4e12), (cycle, a, b) => {
      const [early, late] = [cycle.anchor + Math.min(a, b), cycle.anchor + Math.max(a, b)]
      const [before, after] = [periodAt(cycle, early), periodAt(cycle, late)]
      assert.ok(before.no <= after.no)
      assert.ok(before.start <= early && early < before.end)
      assert.ok(after.start <= late && late < after.end)
    }),
    { numRuns: 300 },
  )
})

test('every day of a leap year as anchor gives the calendar of the next five years', () => {
  for (let day = 0; day < 366; day++) {
    const anchor = at('2024-01-01T05:06:07.008Z') + day * 86_400_000
    for (const unit of ['month', 'quarter', 'semiAnnual', 'year'] as const) {
      const cycle: Cycle = { unit, count: 1, anchor }
      for (let no = 0; referenceStart(cycle, no) < at('2029-06-01T00:00:00Z'); no++) {
        const start = referenceStart(cycle, no)
        assert.equal(periodAt(cycle, start).no, BigInt(no))
        assert.equal(periodAt(cycle, start).start, start)
        assert.equal(periodAt(cycle, start - 1).no, BigInt(Math.max(0, no - 1)))
      }
    }
  }
})
