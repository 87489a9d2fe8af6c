import assert from 'node:assert/strict'
import test from 'node:test'
import type { Json } from '../../events/index.ts'
import { irDepthMax } from '../../kernel/limits.ts'
import { compare } from './compare.ts'
import { evaluate, passes } from './evaluate.ts'
import { historyKey, type IrFacts, type Truth } from './facts.ts'

type Node = Record<string, unknown>
const nowMs = Date.UTC(2026, 10, 20, 12)
const bool = (value: boolean): Node => ({ type: 'Bool', value })
const text = (value: string): Node => ({ type: 'String', value })
const number = (value: number): Node => ({ type: 'Number', value })
const time = (iso: string): Node => ({ type: 'Timestamp', value: Date.parse(iso) / 1000 })
const list = (...value: Node[]): Node => ({ type: 'List', value })
const [yes, no, unserved] = [bool(true), bool(false), { type: 'Journey.Id' }]
const user = (op: string, key: string, value?: Node): Node => ({ type: 'User', op, key, ...(value && { value }) })

const facts: IrFacts = {
  nowMs,
  properties: {
    ...{ plan: 'Pro', age: 41, none: null, on: true, tags: ['Red', 'blue', 7], obj: { a: 1 }, empty: '', digits: '12' },
    ...{ day: '2026-11-20T23:59:59Z', seconds: nowMs / 1000, word: 'never' },
  },
  memberships: { seg_in: true, seg_out: false },
  memberSince: { seg_in: nowMs - 3600_000 },
  features: {
    pro: { unlimited: false, balance: null },
    credits: { unlimited: false, balance: 5 },
    endless: { unlimited: true, balance: null },
  },
  event: {
    name: 'paid',
    occurredAtMs: nowMs,
    distinctId: 'ada',
    properties: { price: 9.5, app_version: '2', name2: 'x', a: { b: { c: 'deep' } } },
  },
}

function table(title: string, rows: [Node, Truth][], given: IrFacts = facts): void {
  test(title, () => {
    for (const [expr, expected] of rows) assert.equal(evaluate(expr, given), expected, JSON.stringify(expr))
  })
}

table('what a value is worth as a truth', [
  [yes, true],
  [no, false],
  [number(0), false],
  [number(-1), true],
  [text(''), false],
  [text('0'), true],
  [{ type: 'Duration', value: 0 }, false],
  [{ type: 'Timestamp', value: 1 }, true],
  [list(), false],
  [list(no), true],
])

table('all, any and not stop where it is decided', [
  [{ type: 'And', args: [] }, true],
  [{ type: 'Or', args: [] }, false],
  [{ type: 'And', args: [yes, yes] }, true],
  [{ type: 'And', args: [yes, no] }, false],
  [{ type: 'Or', args: [no, yes] }, true],
  [{ type: 'Or', args: [no, no] }, false],
  [{ type: 'PredAnd', args: [yes, no] }, false],
  [{ type: 'PredOr', args: [no, yes] }, true],
  [{ type: 'Not', arg: yes }, false],
  [{ type: 'Not', arg: no }, true],
])

// A pattern that is one, but that takes no bounded time, is found unknown only when it is asked.
const late = user('regex', 'plan', text('(?=P)'))
table('what is unknown only when it is asked leaves unknown what it is asked for', [
  [late, 'unknown'],
  [{ type: 'Not', arg: late }, 'unknown'],
  [{ type: 'And', args: [no, late] }, false],
  [{ type: 'And', args: [late, no] }, 'unknown'],
  [{ type: 'And', args: [yes, late] }, 'unknown'],
  [{ type: 'Or', args: [yes, late] }, true],
  [{ type: 'Or', args: [late, yes] }, 'unknown'],
  [{ type: 'Compare', op: '==', left: late, right: yes }, 'unknown'],
  [list(late), 'unknown'],
])

table('what cannot be served makes all of it unknown, also beside what would decide', [
  [{ type: 'Or', args: [yes, unserved] }, 'unknown'],
  [{ type: 'And', args: [no, unserved] }, 'unknown'],
  [{ type: 'Not', arg: { type: 'Or', args: [yes, unserved] } }, 'unknown'],
  [{ type: 'Or', args: [yes, { type: 'Nothing' }] }, 'unknown'],
  [{ type: 'Or', args: [yes, user('like', 'plan', text('x'))] }, 'unknown'],
  [{ type: 'Or', args: [yes, user('eq', 'plan')] }, 'unknown'],
  [{ type: 'Or', args: [yes, { type: 'Compare', op: '=', left: yes, right: yes }] }, 'unknown'],
  [{ type: 'Or', args: [yes, { type: 'Events.Exists', name: 'paid' }] }, 'unknown'],
  [{ type: 'Or', args: [yes, { type: 'Segment', op: 'is_member', id: 'seg_other' }] }, 'unknown'],
  [{ type: 'Or', args: [yes, { type: 'Subscription', op: 'active' }] }, 'unknown'],
  [{ type: 'Or', args: [yes, { type: 'Response.Field', key: 'why' }] }, 'unknown'],
  [{ type: 'Or', args: [yes, { type: 'Feature', op: 'is_trialing', id: 'pro' }] }, 'unknown'],
  [{ type: 'Or', args: [yes, { type: 'Pred', op: 'has', key: 'price' }] }, 'unknown'],
])

const needing: Node[] = [
  user('is_set', 'plan'),
  { type: 'Event', op: 'has', key: 'price' },
  { type: 'Pred', op: 'is_set', key: 'price' },
  { type: 'PredAnd', args: [] },
  { type: 'PredOr', args: [] },
  { type: 'Segment', op: 'is_member', id: 'seg_in' },
  { type: 'Feature', op: 'has', id: 'pro' },
]
table(
  'without their facts nodes are unknown',
  needing.map((node) => [node, 'unknown']),
  { nowMs },
)

test('a property that was not delivered is unknown, a delivered one that is absent is null', () => {
  const device = { ...facts, propertyKeys: new Set(['plan', 'gone']) }
  assert.equal(evaluate(user('is_set', 'plan'), device), true)
  assert.equal(evaluate(user('is_not_set', 'gone'), device), true)
  assert.equal(evaluate(user('is_not_set', 'age'), device), 'unknown')
  assert.equal(evaluate(user('is_not_set', 'toString'), facts), true)
})

const compared: [Json, string, Json, boolean][] = [
  [1, '==', 1, true],
  [1, '==', '1.0', true],
  [true, '==', 1, true],
  [false, '==', '0', true],
  ['a', '==', 'a', true],
  ['10', '<', '9', false],
  ['10', '<', 'a', true],
  [10, '<', '9a', true],
  ['', '==', 0, false],
  [' 1', '==', 1, false],
  ['0x10', '==', 16, false],
  [1e21, '==', '1000000000000000000000', true],
  [null, '==', null, true],
  [null, '!=', null, true],
  [null, '==', 0, false],
  [null, '!=', 0, true],
  [null, '<', 1, false],
  [null, '>=', null, false],
  [['a'], '==', ['a'], false],
  [['a'], '!=', ['b'], false],
  [{ a: 1 }, '!=', null, true],
  [{ a: 1 }, '!=', 'x', false],
  // By code unit a surrogate stands before U+E000, by code point after it.
  ['\u{1F34B}', '<', '\uE000', true],
  [2, '>', 1, true],
  [2, '<=', 2, true],
  [2, '!=', 3, true],
]

test('two sides are compared as numbers, else as texts, else only by being null', () => {
  const words: Record<string, string> = { '==': 'eq', '!=': 'neq', '<': 'lt', '<=': 'lte', '>': 'gt', '>=': 'gte' }
  for (const [left, op, right, expected] of compared) {
    // Of JSON only scalars can be written into an expression: the others come from what is stored.
    const scalars = typeof left !== 'object' && typeof right !== 'object'
    const expr = { type: 'Compare', op, left: literal(left), right: literal(right) }
    if (scalars) assert.equal(evaluate(expr, facts), expected, JSON.stringify([left, op, right]))
    if (typeof right === 'object') assert.equal(compare(op, left, right), expected, JSON.stringify([left, op, right]))
    else {
      const asked = evaluate(user(words[op] ?? '', 'left', literal(right)), { nowMs, properties: { left } })
      assert.equal(asked, expected, JSON.stringify([left, op, right]))
    }
  }
})

function literal(value: Json): Node {
  if (typeof value === 'boolean') return bool(value)
  if (typeof value === 'number') return number(value)
  return text(typeof value === 'string' ? value : '')
}

const never = { type: 'Events.FirstTime', name: 'paid' }
table(
  'null is equal to null only',
  [
    [{ type: 'Compare', op: '==', left: never, right: never }, true],
    [{ type: 'Compare', op: '!=', left: never, right: never }, true],
    [{ type: 'Compare', op: '>', left: never, right: number(0) }, false],
    [user('eq', 'gone', never), true],
    [user('neq', 'gone', text('x')), true],
    [user('neq', 'plan', text('x')), true],
    [user('lt', 'gone', number(1)), false],
  ],
  { ...facts, history: new Map([[historyKey(never), null]]) },
)

table('membership of a list goes by text', [
  [{ type: 'Compare', op: 'in', left: number(1), right: list(text('1')) }, true],
  [{ type: 'Compare', op: 'in', left: yes, right: list(number(1)) }, true],
  [{ type: 'Compare', op: 'in', left: text('1.0'), right: list(number(1)) }, false],
  [{ type: 'Compare', op: 'not_in', left: text('a'), right: list(text('b')) }, true],
  [{ type: 'Compare', op: 'in', left: text('a'), right: text('a') }, false],
  [user('in', 'plan', list(text('Pro'), text('Max'))), true],
  [user('in', 'gone', list(text('Pro'))), false],
  [user('not_in', 'gone', list(text('Pro'))), true],
  [user('in', 'tags', list(text('Red'))), false],
  [user('not_in', 'obj', list(text('x'))), true],
])

table('properties of the customer', [
  [user('has', 'plan'), true],
  [user('has', 'none'), false],
  [user('has', 'gone'), false],
  [user('is_set', 'on'), true],
  [user('is_set', 'empty'), true],
  [user('is_not_set', 'none'), true],
  [user('is_not_set', 'plan'), false],
  [user('eq', 'plan', text('Pro')), true],
  [user('eq', 'plan', text('pro')), false],
  [user('gt', 'age', number(40)), true],
  [user('gte', 'digits', number(12)), true],
  [user('lt', 'age', number(41)), false],
  [user('lte', 'age', text('41')), true],
  [user('icontains', 'plan', text('PR')), true],
  [user('icontains', 'plan', text('max')), false],
  [user('icontains', 'tags', text('RE')), true],
  [user('icontains', 'tags', text('7')), true],
  [user('icontains', 'obj', text('a')), false],
  [user('icontains', 'gone', text('')), false],
  [user('regex', 'plan', text('r.$')), true],
  [user('regex', 'plan', text('^r')), false],
  [user('regex', 'plan', text('(')), false],
  [user('regex', 'age', text('^4\\d$')), true],
  [user('regex', 'gone', text('.*')), false],
])

table('dates are compared with what stands for an instant only', [
  [user('is_date_exact', 'day', time('2026-11-20T00:00:00Z')), true],
  [user('is_date_exact', 'day', time('2026-11-21T00:00:00Z')), false],
  [user('is_date_exact', 'seconds', { type: 'Time.Now' }), true],
  [user('is_date_before', 'day', time('2026-11-21T00:00:00Z')), true],
  [user('is_date_before', 'day', time('2026-11-20T23:59:59Z')), false],
  [user('is_date_after', 'day', time('2026-11-20T23:59:58Z')), true],
  [user('is_date_after', 'day', { type: 'Time.Ago', duration: { type: 'Duration', value: 86_400 } }), true],
  [user('is_date_after', 'word', time('1970-01-01T00:00:00Z')), false],
  [user('is_date_after', 'gone', time('1970-01-01T00:00:00Z')), false],
  [user('is_date_after', 'day', number(1)), 'unknown'],
  [user('is_date_after', 'day', text('2026-01-01')), 'unknown'],
])

const event = (key: string, value: Node, type = 'Event'): Node => ({ type, op: 'eq', key, value })
table('properties of the event and what else is known of it', [
  [event('price', number(9.5)), true],
  [event('$price', number(9.5)), true],
  [event('$app_version', text('2')), true],
  [event('name', text('paid')), true],
  [event('$event', text('paid')), true],
  [event('timestamp', number(nowMs / 1000)), true],
  [event('distinctId', text('ada')), true],
  [event('distinct_id', text('ada')), true],
  [event('properties.a.b.c', text('deep')), true],
  [event('properties.a.x.c', text('deep')), false],
  [event('properties.price', number(9.5)), true],
  [event('a.b.c', text('deep')), false],
  [event('price', number(9.5), 'Pred'), true],
  [{ type: 'Event', op: 'has', key: 'constructor' }, false],
  [{ type: 'Event', op: 'is_set', key: 'price' }, true],
])

const within = (value: number) => ({
  type: 'Segment',
  op: 'entered_within',
  id: 'seg_in',
  within: { type: 'Duration', value },
})
table('memberships', [
  [{ type: 'Segment', op: 'is_member', id: 'seg_in' }, true],
  [{ type: 'Segment', op: 'not_member', id: 'seg_in' }, false],
  [{ type: 'Segment', op: 'is_member', id: 'seg_out' }, false],
  [{ type: 'Segment', op: 'not_member', id: 'seg_out' }, true],
  [within(3600), true],
  [within(3599), false],
  [{ ...within(9), id: 'seg_out' }, false],
  [{ type: 'Segment', op: 'entered_within', id: 'seg_in' }, 'unknown'],
])

const feature = (op: string, id: string, value?: number): Node => ({
  ...{ type: 'Feature', op, id },
  ...(value !== undefined && { value: number(value) }),
})
table('Features', [
  [feature('has', 'pro'), true],
  [feature('has', 'gone'), false],
  [feature('not_has', 'gone'), true],
  [feature('not_has', 'credits'), false],
  [feature('is_unlimited', 'endless'), true],
  [feature('is_unlimited', 'credits'), false],
  [feature('is_unlimited', 'gone'), false],
  [feature('credits_eq', 'credits', 5), true],
  [feature('credits_neq', 'credits', 5), false],
  [feature('credits_gt', 'credits', 4), true],
  [feature('credits_gte', 'credits', 6), false],
  [feature('credits_lt', 'credits', 6), true],
  [feature('credits_lte', 'credits', 5), true],
  [feature('credits_eq', 'gone', 0), true],
  [feature('credits_gt', 'endless', 1e308), true],
  [feature('credits_lt', 'endless', 1e308), false],
  [feature('credits_eq', 'endless', 1e308), false],
  [feature('credits_neq', 'endless', 0), true],
  [feature('credits_gt', 'credits'), 'unknown'],
])

const standings: [string, Record<'none' | 'trialing' | 'active' | 'expired', boolean>][] = [
  ['active', { none: false, trialing: true, active: true, expired: false }],
  ['trialing', { none: false, trialing: true, active: false, expired: false }],
  ['expired', { none: false, trialing: false, active: false, expired: true }],
  ['will_renew', { none: false, trialing: true, active: true, expired: false }],
  ['will_not_renew', { none: false, trialing: false, active: false, expired: false }],
]
test('subscriptions as one, and those of a Feature', () => {
  for (const [op, expected] of standings) {
    for (const state of ['none', 'trialing', 'active', 'expired'] as const) {
      const standing = { state, willRenew: true }
      assert.equal(evaluate({ type: 'Subscription', op }, { nowMs, subscription: standing }), expected[state], op)
      const asked = op.startsWith('will') ? op : `is_${op}`
      assert.equal(evaluate(feature(asked, 'pro'), { nowMs, standings: { pro: standing } }), expected[state], asked)
    }
  }
  const ending = { nowMs, subscription: { state: 'active', willRenew: false } } as const
  assert.equal(evaluate({ type: 'Subscription', op: 'will_not_renew' }, ending), true)
  assert.equal(evaluate({ type: 'Subscription', op: 'not_active' }, ending), false)
  assert.equal(evaluate(feature('is_active', 'pro'), { nowMs, standings: {} }), false)
})

const at = (node: Node, seconds: number): Node => ({ type: 'Compare', op: '==', left: node, right: number(seconds) })
table('time is a parameter', [
  [at({ type: 'Time.Now' }, nowMs / 1000), true],
  [at({ type: 'Time.Ago', duration: { type: 'Duration', value: 60 } }, nowMs / 1000 - 60), true],
  [
    at({ type: 'Time.Ago', duration: { type: 'Time.Window', value: 2, interval: 'day' } }, nowMs / 1000 - 172_800),
    true,
  ],
  [at({ type: 'Time.Window', value: 1, interval: 'day' }, 86_400), true],
  [at({ type: 'Time.Window', value: 1, interval: 'week' }, 604_800), true],
  [at({ type: 'Time.Window', value: 1, interval: 'month' }, 2_592_000), true],
  [at({ type: 'Time.Window', value: 1, interval: 'year' }, 31_536_000), true],
  [{ type: 'Time.Ago', duration: text('long') }, 'unknown'],
  [{ type: 'Time.Window', value: 1, interval: 'hour' }, 'unknown'],
])

const answers = { type: 'Response.Field', key: 'why' }
const journey: IrFacts = { nowMs, responses: { why: 'price' }, forms: { survey: { why: 'other' } }, journeyId: 'j1' }
table(
  'answers, and the journey itself',
  [
    [{ type: 'Compare', op: '==', left: answers, right: text('price') }, true],
    [{ type: 'Compare', op: '==', left: { ...answers, form: 'survey' }, right: text('other') }, true],
    [{ type: 'Compare', op: '==', left: { ...answers, key: 'else' }, right: text('') }, false],
    [{ ...answers, form: 'another' }, false],
    [{ type: 'Compare', op: '==', left: { type: 'Journey.Id' }, right: text('j1') }, true],
  ],
  journey,
)

const often = { type: 'Events.Count', name: 'paid', within: { type: 'Duration', value: 60 } }
table(
  'past events answer as they were asked',
  [
    [{ type: 'Compare', op: '>=', left: often, right: number(3) }, true],
    // Equal nodes are one question, in whatever order their keys stand.
    [{ within: { value: 60, type: 'Duration' }, name: 'paid', type: 'Events.Count' }, true],
    [{ ...often, name: 'other' }, 'unknown'],
  ],
  { nowMs, history: new Map([[historyKey(often), 3]]) },
)

test('an expression may be as deep as clients read, and no deeper', () => {
  const nested = (depth: number): Node => (depth === 1 ? yes : { type: 'And', args: [nested(depth - 1)] })
  assert.equal(evaluate(nested(irDepthMax), facts), true)
  assert.equal(evaluate(nested(irDepthMax + 1), facts), 'unknown')
})

test('no condition passes, unknown does not', () => {
  assert.equal(passes(undefined, facts), true)
  assert.equal(passes({ expr: yes }, facts), true)
  assert.equal(passes({ expr: no }, facts), false)
  assert.equal(passes({ expr: unserved }, facts), false)
  assert.equal(passes({ expr: { type: 'Not', arg: unserved } }, facts), false)
})

test('whatever stands in its place, it is unknown and never throws', () => {
  for (const expr of [undefined, null, 1, 'x', [], {}, { type: 'And' }, { type: 'List', value: 1 }, { type: 'Bool' }]) {
    assert.equal(evaluate(expr, facts), 'unknown', JSON.stringify(expr))
  }
})

test('a pattern that would take for ever elsewhere takes no time', () => {
  const given = { nowMs, properties: { name: 'a'.repeat(50_000) } }
  assert.equal(evaluate(user('regex', 'name', text('^(a+)+$!')), given), false)
  assert.equal(evaluate(user('regex', 'name', text('(.*)*b')), given), false)
})
