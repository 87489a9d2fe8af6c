import assert from 'node:assert/strict'
import test from 'node:test'
import type { Json } from '../../src/events/index.ts'
import { evaluate } from '../../src/experiences/ir/evaluate.ts'
import type { Arm, Profile } from '../conformance/profile.ts'
import fc from '../harness/random.ts'
import { starts } from '../reference-client/entry.ts'

/**
 * The reference client judges entry conditions by code of its own. The two agree on all that it serves; what the client contract
 * leaves open, such as blanks around a numeric text, is not asked.
 */
type Node = Record<string, unknown>

const nowMs = Date.UTC(2026, 10, 20)
const scalar = fc.oneof(
  fc.boolean(),
  fc.integer({ min: -3, max: 12 }),
  fc.double({ min: -9, max: 9, noNaN: true }),
  fc.constantFrom('', 'a', 'A', 'ab', '1', '10', '9', '1.5', 'true', '\u{1F34B}', '\uE000'),
)
const stored = fc.oneof(scalar, fc.constant(null), fc.array(scalar, { maxLength: 3 }), fc.constant({ a: 1 }))
const key = fc.constantFrom('a', 'b', 'c')

function literal(value: Json): Node {
  if (typeof value === 'boolean') return { type: 'Bool', value }
  return typeof value === 'number' ? { type: 'Number', value } : { type: 'String', value }
}

const orders = fc.constantFrom('eq', 'neq', 'gt', 'gte', 'lt', 'lte')
const values = scalar.map(literal)
const lists = fc.array(values, { maxLength: 3 }).map((value): Node => ({ type: 'List', value }))
const asked = fc.oneof(
  fc.record({ op: orders, value: values }),
  fc.record({ op: fc.constantFrom('in', 'not_in'), value: lists }),
  fc.record({ op: fc.constant('icontains'), value: fc.constantFrom('', 'a', 'B', '1').map(literal) }),
  fc.record({ op: fc.constantFrom('is_set', 'is_not_set') }),
)
const leaf: fc.Arbitrary<Node> = fc.oneof(
  values,
  lists,
  fc.constantFrom<Node>({ type: 'Time.Now' }, { type: 'Time.Ago', duration: { type: 'Duration', value: 60 } }),
  fc.constantFrom<Node>(
    { type: 'Journey.Id' },
    { type: 'Events.Exists', name: 'x' },
    { type: 'Subscription', op: 'active' },
  ),
  fc
    .record({ type: fc.constantFrom('User', 'Event', 'Pred'), key, asked })
    .map(({ asked: more, ...node }) => ({ ...node, ...more })),
  fc.record({ type: fc.constant('Segment'), op: fc.constantFrom('is_member', 'not_member'), id: key }),
  fc.record({ type: fc.constant('Feature'), op: fc.constantFrom('has', 'not_has', 'is_unlimited'), id: key }),
  fc.record({
    type: fc.constant('Feature'),
    op: orders.map((op) => `credits_${op}`),
    id: key,
    value: fc.integer({ min: 0, max: 9 }).map(literal),
  }),
)
const { node: expression } = fc.letrec<{ node: Node }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    { weight: 4, arbitrary: leaf },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('Not'), arg: tie('node') }) },
    {
      weight: 3,
      arbitrary: fc.record({
        type: fc.constantFrom('And', 'Or', 'PredAnd', 'PredOr'),
        args: fc.array(tie('node'), { maxLength: 3 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        type: fc.constant('Compare'),
        op: fc.constantFrom('==', '!=', '<', '<=', '>', '>='),
        left: tie('node'),
        right: tie('node'),
      }),
    },
  ),
}))
const object = fc.dictionary(key, stored, { maxKeys: 3 })
const known = fc.record({
  properties: object,
  delivered: fc.subarray(['a', 'b', 'c']),
  memberships: fc.dictionary(key, fc.boolean(), { maxKeys: 3 }),
  event: fc.option(object),
  features: fc.uniqueArray(fc.record({ id: key, unlimited: fc.boolean(), balance: fc.integer({ min: 0, max: 9 }) }), {
    selector: ({ id }) => id,
  }),
})

test('server and device judge alike what a device can judge', () => {
  fc.assert(
    fc.property(expression, known, (expr, { properties, delivered, memberships, event, features }) => {
      const truth = evaluate(expr, {
        nowMs,
        properties: properties as Record<string, Json>, // made of JSON
        propertyKeys: new Set(delivered),
        memberships,
        features: Object.fromEntries(
          features.map(({ id, unlimited, balance }) => [id, { unlimited, balance: unlimited ? null : balance }]),
        ),
        ...(event && {
          event: { name: 'opened', occurredAtMs: nowMs, distinctId: 'ada', properties: event as Record<string, Json> },
        }),
      })
      const shown = (each: string) =>
        Object.hasOwn(properties, each) ? { present: true, value: properties[each] } : { present: false }
      const profile = {
        facts: { properties: Object.fromEntries(delivered.map((each) => [each, shown(each)])), memberships },
        features: features.map((entry) => ({ ...entry, balance: entry.unlimited ? null : entry.balance })),
      }
      const device = (asking: Node) => {
        const condition = { ir_version: 1, expr: asking }
        const entryCondition = event
          ? { type: 'event', eventName: 'opened', condition }
          : { type: 'app_foregrounded', condition }
        const occasion = event
          ? ({ kind: 'event', name: 'opened', properties: event } as const)
          : ({ kind: 'foreground' } as const)
        // What `starts` looks at of an arm and a profile.
        return starts({ entryCondition } as unknown as Arm, profile as unknown as Profile, occasion, nowMs)
      }
      const theirs = device(expr) ? true : device({ type: 'Not', arg: expr }) ? false : 'unknown'
      assert.equal(truth, theirs)
    }),
    { numRuns: 2_000 },
  )
})
