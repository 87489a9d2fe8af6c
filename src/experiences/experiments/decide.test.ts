import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import { decide } from './decide.ts'
import type { Assignment, Experiment, ExperimentStatus } from './types.ts'

const base: Experiment = {
  ...{ scopeId: 1, id: 1, publicId: 'xp_1', key: 'x', name: 'X', kind: 'ab', status: 'running', phase: 1 },
  seed: 'xp_1:1',
  variants: [
    { id: 'a', weight: 0.5, isHoldout: false },
    { id: 'h', weight: 0.5, isHoldout: true },
  ],
  ...{ coverage: 1, audienceSegmentId: null, namespace: null, metrics: [], winnerVariantId: null },
  ...{ weightPeriods: [[0.5, 0.5]], startedAtMs: 0, createdAt: new Date(0) },
}
const unit = { customerId: '8baa728c-348e-5d6c-af13-1250401ef5de', stored: undefined, inAudience: true }
const stored: Assignment = { variantId: 'h', isHoldout: true }

/** By state: with a row, and without one. */
const table: Record<ExperimentStatus, [withRow: string | null, without: boolean]> = {
  draft: [null, false],
  running: ['h', true],
  paused: ['h', false],
  concluded: ['a', true],
  archived: [null, false],
}

test('what each state says to who has a variant, and to who has none', () => {
  for (const [status, [withRow, without]] of Object.entries(table)) {
    const experiment = { ...base, status: status as ExperimentStatus, winnerVariantId: 'a' } // a key of the table
    const sticky = decide(experiment, { ...unit, stored })
    assert.equal(sticky?.assignment.variantId ?? null, withRow, status)
    assert.notEqual(sticky?.fresh, true, status)
    const fresh = decide(experiment, unit)
    assert.equal(fresh !== null, without, status)
    assert.equal(fresh?.fresh ?? false, status === 'running', status)
  }
})

test('who is not in the audience, or not in the namespace, gets none, but keeps what is stored', () => {
  const outside = { ...base, namespace: { id: 'n', start: 0, end: 0.0001 } }
  const away = { ...unit, inAudience: false }
  assert.equal(decide(base, away), null)
  assert.deepEqual(decide(base, { ...away, stored }), { assignment: stored, fresh: false })
  assert.equal(decide(outside, unit), null)
  assert.deepEqual(decide(outside, { ...unit, stored }), { assignment: stored, fresh: false })
})

test('a winner is given with its flag', () => {
  const concluded = { ...base, status: 'concluded' as const, winnerVariantId: 'h' }
  assert.deepEqual(decide(concluded, unit), { assignment: stored, fresh: false })
})

const customer = fc
  .integer({ min: 0, max: 2 ** 32 - 1 })
  .map((n) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`)
const parts = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 2, maxLength: 6 }).map((sizes) => {
  const sum = sizes.reduce((all, size) => all + size, 0)
  return sizes.map((size, i) => ({ id: `v${i}`, weight: size / sum, isHoldout: false }))
})

test('raising the coverage moves nobody', () => {
  fc.assert(
    fc.property(
      customer,
      parts,
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (customerId, variants, a, b) => {
        const at = (coverage: number) => decide({ ...base, variants, coverage }, { ...unit, customerId })
        const before = at(Math.min(a, b))
        if (before !== null) assert.deepEqual(at(Math.max(a, b)), before)
      },
    ),
    { numRuns: 1000 },
  )
})

test('a stored assignment stays whatever is changed of what runs', () => {
  fc.assert(
    fc.property(
      customer,
      parts,
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.boolean(),
      (customerId, variants, coverage, inAudience) => {
        const changed = { ...base, variants, coverage }
        assert.deepEqual(decide(changed, { customerId, inAudience, stored })?.assignment, stored)
        assert.deepEqual(
          decide({ ...changed, status: 'paused' }, { customerId, inAudience, stored })?.assignment,
          stored,
        )
      },
    ),
  )
})

test('variants get the shares that their weights say', () => {
  const variants = [0.2, 0.3, 0.5].map((weight, i) => ({ id: `v${i}`, weight, isHoldout: false }))
  const counts = new Map<string, number>()
  const units = 20_000
  for (let i = 0; i < units; i++) {
    const given = decide({ ...base, variants }, { ...unit, customerId: randomUUID() })?.assignment.variantId ?? 'none'
    counts.set(given, (counts.get(given) ?? 0) + 1)
  }
  assert.equal(counts.get('none'), undefined)
  // Five standard deviations: it fails once in two million runs.
  for (const { id, weight } of variants) {
    const spread = 5 * Math.sqrt(units * weight * (1 - weight))
    assert.ok(Math.abs((counts.get(id) ?? 0) - units * weight) < spread, id)
  }
})
