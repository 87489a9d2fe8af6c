import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Arm, Profile } from '../conformance/profile.ts'
import { emptyProfile, type Sample } from '../conformance/samples/publish.ts'
import { type Occasion, starts } from './entry.ts'

const profile: Profile = {
  ...emptyProfile(),
  features: [{ id: 'exports', type: 'metered', balance: 3, unlimited: false, nextResetAt: null, interval: null }],
  facts: {
    properties: {
      plan: { present: true, value: 'pro' },
      seats: { present: true, value: 10 },
      nothing: { present: true, value: null },
      absent: { present: false },
      tags: { present: true, value: ['Beta', 'x'] },
    },
    memberships: { in: true, out: false },
    assignments: {},
  },
}
const foreground: Occasion = { kind: 'foreground' }
const opened: Occasion = { kind: 'event', name: 'opened', properties: { way: 'push', count: 2 } }

const doesStart = (entryCondition: Sample, occasion: Occasion): boolean => {
  const arm = { entryCondition } as Arm // the only part that is read
  return starts(arm, profile, occasion, Date.parse('2026-11-20T10:00:00.000Z'))
}
const string = (value: string) => ({ type: 'String', value })
const number = (value: number) => ({ type: 'Number', value })
const user = (key: string, op: string, value?: Sample) => ({ type: 'User', op, key, ...(value && { value }) })

describe('an arm starts', () => {
  test('on the occasion that it names', () => {
    const starting: [Sample, Occasion][] = [
      [{ type: 'app_foregrounded' }, foreground],
      [{ type: 'event', eventName: 'opened' }, opened],
      [{ type: 'segment', segmentId: 'in', member: true }, { kind: 'profile' }],
      [{ type: 'segment', segmentId: 'out', member: false }, { kind: 'profile' }],
      [{ type: 'always' }, { kind: 'profile' }],
    ]
    for (const [entry, occasion] of starting) {
      assert.ok(doesStart(entry, occasion))
      const others: Occasion[] = [foreground, opened, { kind: 'profile' }]
      for (const other of others) if (other.kind !== occasion.kind) assert.ok(!doesStart(entry, other))
    }
    assert.ok(!doesStart({ type: 'event', eventName: 'closed' }, opened))
    assert.ok(!doesStart({ type: 'segment', segmentId: 'out', member: true }, { kind: 'profile' }))
  })

  test('when its condition is true, and neither when it is false nor unknown', () => {
    const yes = { type: 'Bool', value: true }
    const unknowable = { type: 'Subscription', op: 'active' }
    const cases: [Sample, Occasion, boolean][] = [
      [user('plan', 'eq', string('pro')), foreground, true],
      [user('seats', 'gt', string('9')), foreground, true],
      [user('nothing', 'is_set'), foreground, false],
      [user('absent', 'is_not_set'), foreground, true],
      [user('absent', 'neq', string('a')), foreground, true],
      [user('tags', 'icontains', string('beta')), foreground, true],
      [user('plan', 'in', { type: 'List', value: [string('free'), string('pro')] }), foreground, true],
      [user('undelivered', 'is_not_set'), foreground, false],
      [{ type: 'Not', arg: user('undelivered', 'is_set') }, foreground, false],
      [{ type: 'Or', args: [yes, unknowable] }, foreground, false],
      [{ type: 'Or', args: [yes, { type: 'Bool', value: false }] }, foreground, true],
      [{ type: 'And', args: [yes, yes] }, foreground, true],
      [{ type: 'And', args: [] }, foreground, true],
      [{ type: 'Segment', op: 'not_member', id: 'out' }, foreground, true],
      [{ type: 'Feature', op: 'credits_gte', id: 'exports', value: number(3) }, foreground, true],
      [{ type: 'Feature', op: 'not_has', id: 'other' }, foreground, true],
      [{ type: 'Event', op: 'eq', key: 'way', value: string('push') }, opened, true],
      [{ type: 'Event', op: 'eq', key: 'way', value: string('push') }, foreground, false],
      [{ type: 'PredAnd', args: [{ type: 'Pred', op: 'lte', key: '$count', value: number(2) }] }, opened, true],
      [
        { type: 'Compare', op: '<', left: { type: 'Time.Ago', duration: number(5) }, right: { type: 'Time.Now' } },
        foreground,
        true,
      ],
    ]
    for (const [expr, occasion, expected] of cases) {
      const entry = { type: occasion.kind === 'event' ? 'event' : 'app_foregrounded', eventName: 'opened' }
      const condition = { ir_version: 1, expr }
      assert.equal(doesStart({ ...entry, condition }, occasion), expected, JSON.stringify(expr))
    }
  })
})
