import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { JsonObject } from '../../events/index.ts'
import { isJourneyId, parseReport } from './report.ts'

const id = '01930000-0000-7000-8000-000000000001'
const good: JsonObject = {
  ...{
    journey_id: id,
    experience_id: 'exp_1',
    experience_version_id: 'ver_1',
    leg_id: 'a'.repeat(64),
    leg_generation: 2,
  },
  ...{ started_at: '2026-11-20T09:00:00.123Z', completed_at: '2026-11-20T09:00:05Z', outcome: 'done' },
  outputs: { event: { a: 1 }, responses: { why: 'x' } },
}

describe('a report', () => {
  test('is read whole; the id of its journey in either case', () => {
    assert.deepEqual(parseReport('$journey_leg_completed', { ...good, journey_id: id.toUpperCase() }), {
      ...{
        kind: 'completed',
        journeyId: id,
        experienceId: 'exp_1',
        versionId: 'ver_1',
        legId: 'a'.repeat(64),
        generation: 2,
      },
      ...{
        startedAt: Date.UTC(2026, 10, 20, 9, 0, 0, 123),
        completedAt: Date.UTC(2026, 10, 20, 9, 0, 5),
        outcome: 'done',
      },
      outputs: { event: { a: 1 }, responses: { why: 'x' } },
    })
  })

  test('of a start has no end, whatever else is sent', () => {
    const report = parseReport('$journey_leg_started', good)
    assert.deepEqual(
      [report?.completedAt, report?.outcome, report?.outputs],
      [null, null, { event: {}, responses: {} }],
    )
  })

  test('whose outputs are no objects tells nothing', () => {
    for (const outputs of [null, 7, [], { event: [], responses: 'x' }, undefined]) {
      const report = parseReport('$journey_leg_completed', { ...good, outputs: outputs ?? null })
      assert.deepEqual(report?.outputs, { event: {}, responses: {} })
    }
  })

  test('is null when any part that it needs is missing or of another kind, and never throws', () => {
    const needed = Object.keys(good).filter((key) => key !== 'outputs')
    fc.assert(
      fc.property(fc.constantFrom(...needed), fc.jsonValue(), (key, value) => {
        const report = parseReport('$journey_leg_completed', { ...good, [key]: value as never })
        if (value === good[key]) assert.ok(report)
        else if (typeof value !== 'string' && typeof value !== 'number') assert.equal(report, null)
      }),
    )
    for (const key of needed) {
      const { [key]: _, ...rest } = good
      assert.equal(parseReport('$journey_leg_completed', rest), null, key)
    }
  })
})

test('journey ids are UUIDs of version 7 and its variant', () => {
  assert.ok(isJourneyId(id) && isJourneyId(id.toUpperCase()))
  for (const other of [id.replace('-7', '-4'), id.replace('-8', '-7'), `${id} `, '', id.slice(1)])
    assert.ok(!isJourneyId(other))
})
