import assert from 'node:assert/strict'
import test from 'node:test'
import { asksHistory, withSegments } from './history.ts'

type Node = Record<string, unknown>
const number = (value: number): Node => ({ type: 'Number', value })
const text = (value: string): Node => ({ type: 'String', value })
const duration = (value: number): Node => ({ type: 'Duration', value })
const ago = (seconds: number): Node => ({ type: 'Time.Ago', duration: duration(seconds) })
const moment = { type: 'Timestamp', value: Date.UTC(2026, 0, 1) / 1000 }
const paid = (type: string, more: Node = {}): Node => ({ type: `Events.${type}`, name: 'paid', ...more })
const compare = (left: Node, op: string, right: Node): Node => ({ type: 'Compare', op, left, right })
const pred = (op: string, value?: Node): Node => ({ type: 'Pred', op, key: 'k', ...(value && { value }) })
const user: Node = { type: 'User', op: 'eq', key: 'plan', value: text('pro') }
const hour = { value: 60, unit: 'minute' }
const once = { op: 'gte', value: 1 }

const kept: [Node, object][] = [
  [paid('Exists'), { performed: { event: 'paid', count: once } }],
  [paid('Exists', { within: duration(3600) }), { performed: { event: 'paid', count: once, within: hour } }],
  [paid('Exists', { since: ago(3600) }), { performed: { event: 'paid', count: once, within: hour } }],
  [
    paid('Exists', { within: { type: 'Time.Window', value: 1, interval: 'day' } }),
    { performed: { event: 'paid', count: once, within: { value: 1440, unit: 'minute' } } },
  ],
  [paid('Exists', { since: moment }), { last_performed: { event: 'paid', after: '2025-12-31T23:59:59.999Z' } }],
  [paid('Count'), { performed: { event: 'paid', count: once } }],
  [compare(paid('Count'), '>=', number(3)), { performed: { event: 'paid', count: { op: 'gte', value: 3 } } }],
  [compare(paid('Count'), '>', number(3)), { performed: { event: 'paid', count: { op: 'gte', value: 4 } } }],
  [compare(paid('Count'), '>', number(2.5)), { performed: { event: 'paid', count: { op: 'gte', value: 3 } } }],
  [compare(paid('Count'), '<', number(3)), { performed: { event: 'paid', count: { op: 'lte', value: 2 } } }],
  [compare(paid('Count'), '<=', number(3)), { performed: { event: 'paid', count: { op: 'lte', value: 3 } } }],
  [compare(number(3), '<=', paid('Count')), { performed: { event: 'paid', count: { op: 'gte', value: 3 } } }],
  [compare(paid('Count'), '==', number(3)), { performed: { event: 'paid', count: { op: 'eq', value: 3 } } }],
  [compare(paid('Count'), '!=', number(3)), { not: { performed: { event: 'paid', count: { op: 'eq', value: 3 } } } }],
  [
    compare(paid('Aggregate', { agg: 'sum', prop: 'price' }), '>', number(9.5)),
    { sum: { event: 'paid', property: 'price', op: 'gt', value: 9.5 } },
  ],
  [compare(paid('LastTime'), '>', moment), { last_performed: { event: 'paid', after: '2026-01-01T00:00:00.000Z' } }],
  [
    compare(paid('FirstTime'), '<=', moment),
    { first_performed: { event: 'paid', before: '2026-01-01T00:00:00.001Z' } },
  ],
  [compare(paid('LastTime'), '>=', ago(3600)), { last_performed: { event: 'paid', ago: { op: 'lte', ...hour } } }],
  [compare(paid('LastTime'), '<', ago(3600)), { last_performed: { event: 'paid', ago: { op: 'gte', ...hour } } }],
  [compare(paid('LastAge'), '>=', duration(3600)), { last_performed: { event: 'paid', ago: { op: 'gte', ...hour } } }],
  [
    paid('Stopped', { inactiveFor: duration(3600) }),
    { last_performed: { event: 'paid', ago: { op: 'gte', ...hour } } },
  ],
  [
    { type: 'And', args: [paid('Exists'), { type: 'Not', arg: paid('Exists', { name: 'left' }) }] },
    { all: [{ performed: { event: 'paid', count: once } }, { not: { performed: { event: 'left', count: once } } }] },
  ],
]

test('what Segments can keep becomes one', () => {
  for (const [expr, where] of kept) {
    const got = withSegments(expr, 'exp_1')
    assert.deepEqual(got.unkept, [], JSON.stringify(expr))
    assert.deepEqual(
      got.segments.map(({ definition }) => definition),
      [{ version: 1, where }],
      JSON.stringify(expr),
    )
    assert.deepEqual(got.expr, { type: 'Segment', op: 'is_member', id: got.segments[0]?.id })
  }
})

const filters: [Node, object[]][] = [
  [pred('eq', text('a')), [{ property: 'k', op: 'in', value: ['a'] }]],
  // What expressions take for equal, where Segments convert nothing.
  [pred('eq', number(5)), [{ property: 'k', op: 'in', value: [5, '5'] }]],
  [pred('eq', text('5.0')), [{ property: 'k', op: 'in', value: [5, '5', '5.0'] }]],
  [pred('eq', { type: 'Bool', value: true }), [{ property: 'k', op: 'in', value: [1, '1', true] }]],
  [pred('in', { type: 'List', value: [text('a'), number(2)] }), [{ property: 'k', op: 'in', value: ['a', '2', 2] }]],
  [pred('gt', number(5)), [{ property: 'k', op: 'gt', value: 5 }]],
  [pred('lte', text('7')), [{ property: 'k', op: 'lte', value: 7 }]],
  [pred('is_set'), [{ property: 'k', op: 'neq', value: null }]],
  [
    { type: 'PredAnd', args: [pred('is_set'), pred('gt', number(1))] },
    [
      { property: 'k', op: 'neq', value: null },
      { property: 'k', op: 'gt', value: 1 },
    ],
  ],
]

test('what is asked of their properties becomes filters', () => {
  for (const [where, expected] of filters) {
    const { segments, unkept } = withSegments(paid('Exists', { where }), 'exp_1')
    assert.deepEqual(unkept, [], JSON.stringify(where))
    const definition = { version: 1, where: { performed: { event: 'paid', filters: expected, count: once } } }
    assert.deepEqual(segments[0]?.definition, definition, JSON.stringify(where))
  }
})

const unkept: [Node, string][] = [
  [paid('InOrder', { steps: [] }), 'Events.InOrder'],
  [paid('ActivePeriods', { period: 'day', totalPeriods: 3, minPeriods: 1 }), 'Events.ActivePeriods'],
  [paid('Restarted', { inactiveFor: duration(60), within: duration(60) }), 'Events.Restarted'],
  [compare(paid('Aggregate', { agg: 'max', prop: 'price' }), '>', number(1)), 'Events.Aggregate'],
  [paid('Exists', { until: moment }), 'Events.Exists'],
  [paid('Count', { since: moment }), 'Events.Count'],
  [paid('Exists', { within: duration(90) }), 'Events.Exists'],
  [paid('Exists', { within: { type: 'User', op: 'has', key: 'k' } }), 'Events.Exists'],
  [compare(paid('Count'), '>=', user), 'Events.Count'],
  [compare(paid('Count'), '<', number(0)), 'Events.Count'],
  [compare(paid('Count'), '==', number(1.5)), 'Events.Count'],
  [compare(paid('Count'), 'in', { type: 'List', value: [number(1)] }), 'Events.Count'],
  [compare(paid('LastAge'), '==', duration(60)), 'Events.LastAge'],
  [compare(paid('Count'), '>', paid('Count')), 'Events.Count'],
  [paid('Exists', { where: { type: 'PredOr', args: [pred('is_set')] } }), 'PredOr'],
  [paid('Exists', { where: pred('regex', text('a')) }), 'Pred'],
  [paid('Exists', { where: pred('neq', text('a')) }), 'Pred'],
]

test('what can not be kept event by event is named, with the reason', () => {
  for (const [expr, type] of unkept) {
    const got = withSegments(expr, 'exp_1')
    assert.deepEqual(
      got.unkept.map((one) => one.type),
      [type],
      JSON.stringify(expr),
    )
    assert.ok(got.unkept[0]?.reason)
    assert.deepEqual(got.segments, [])
  }
})

test('what asks something else too stays, around the Segments', () => {
  const mixed = {
    type: 'And',
    args: [user, { type: 'Or', args: [paid('Exists'), user] }, { type: 'Not', arg: paid('Count') }],
  }
  const { expr, segments } = withSegments(mixed, 'exp_1')
  const member = (i: number) => ({ type: 'Segment', op: 'is_member', id: segments[i]?.id })
  assert.equal(segments.length, 2)
  assert.deepEqual(expr, { type: 'And', args: [user, { type: 'Or', args: [member(0), user] }, member(1)] })
  assert.equal(asksHistory(expr), false)
  assert.deepEqual(withSegments(user, 'exp_1'), { expr: user, segments: [], unkept: [] })
})

test('equal questions of one Experience are one Segment, of two they are two', () => {
  const twice = { type: 'Or', args: [paid('Exists'), { type: 'And', args: [user, paid('Exists')] }] }
  assert.equal(withSegments(twice, 'exp_1').segments.length, 1)
  const ids = ['exp_1', 'exp_1', 'exp_2'].map((owner) => withSegments(paid('Exists'), owner).segments[0]?.id)
  assert.equal(ids[0], ids[1])
  assert.notEqual(ids[0], ids[2])
  assert.match(ids[0] ?? '', /^seg_[0-9a-z]{1,48}$/)
})
