import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import { conversionAgeMsMax } from '../../kernel/limits.ts'
import { attribute, goalMoment, isInside } from './attribution.ts'

const at = (occurredAt: number, eventId = 'm') => ({ eventId, occurredAt })

describe('a goal', () => {
  test('lies inside from just after the basis to the end of the window, both by the millisecond', () => {
    const watch = { basis: at(1000), windowMs: 500 }
    assert.deepEqual(
      [999, 1001, 1500, 1501].map((ms) => isInside(watch, at(ms))),
      [false, true, true, false],
    )
    assert.ok(isInside(watch, at(1000, 'n')) && !isInside(watch, at(1000, 'm')) && !isInside(watch, at(1000, 'l')))
    assert.ok(!isInside({ basis: null, windowMs: 500 }, at(1000)))
  })

  test('is never later than it was received, and too old 30 days before', () => {
    assert.deepEqual(goalMoment({ at: 2000, receivedAt: 1000, uuid: 'u' }), at(1000, 'u'))
    const receivedAt = 10 * conversionAgeMsMax
    assert.ok(goalMoment({ at: receivedAt - conversionAgeMsMax, receivedAt, uuid: 'u' }))
    assert.equal(goalMoment({ at: receivedAt - conversionAgeMsMax - 1, receivedAt, uuid: 'u' }), null)
  })

  test('goes to the newest basis that it fits, of equal ones to the lowest journey, whatever their order', () => {
    const arbitrary = fc.record({
      journeyId: fc.constantFrom('a', 'b', 'c', 'd'),
      windowMs: fc.integer({ min: 1, max: 50 }),
      basis: fc.option(
        fc.record({ eventId: fc.constantFrom('l', 'm', 'n'), occurredAt: fc.integer({ min: 0, max: 60 }) }),
      ),
    })
    const watches = fc.uniqueArray(arbitrary, { selector: ({ journeyId }) => journeyId })
    fc.assert(
      fc.property(watches, fc.integer({ min: 0, max: 80 }), (all, ms) => {
        const winner = attribute(all, at(ms))
        assert.equal(attribute(all.toReversed(), at(ms)), winner)
        const fitting = all.filter((watch) => isInside(watch, at(ms)))
        assert.equal(winner === null, fitting.length === 0)
        const own = fitting.find(({ journeyId }) => journeyId === winner)
        for (const { journeyId, basis } of fitting) {
          const [ours, theirs] = [own?.basis?.occurredAt ?? 0, basis?.occurredAt ?? 0]
          assert.ok(ours > theirs || (ours === theirs && (winner ?? '') <= journeyId))
        }
      }),
    )
  })
})
