import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import { SegmentWorld } from '../../../test/harness/segment-world.ts'
import { withSegments } from './history.ts'

type Node = Record<string, unknown>
type Value = string | number | boolean

interface Past {
  name: string
  at: number
  properties: Record<string, Value>
}

/** A question, and what anybody would answer who looks at all that happened. */
interface Asked {
  expr: Node
  holds: (past: readonly Past[], now: number) => boolean
}

const [minute, hour, day] = [60_000, 3600_000, 86_400_000]
const duration = (ms: number): Node => ({ type: 'Duration', value: ms / 1000 })
const number = (value: number): Node => ({ type: 'Number', value })
const literal = (value: Value): Node => {
  if (typeof value === 'number') return number(value)
  return typeof value === 'string' ? { type: 'String', value } : { type: 'Bool', value }
}

/** Windows end with the bucket they begin in: minutes up to two hours, hours up to three days, then days. */
function isInside(at: number, windowMs: number, now: number): boolean {
  const bucket = windowMs <= 2 * hour ? minute : windowMs <= 3 * day ? hour : day
  return Math.floor(at / bucket) >= Math.floor((now - windowMs) / bucket)
}

const asNumber = (value: Value): number | undefined => {
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value === 'number') return value
  return /^[0-9.]+$/.test(value) ? Number(value) : undefined
}

function isSame(a: Value, b: Value): boolean {
  const [x, y] = [asNumber(a), asNumber(b)]
  return x !== undefined && y !== undefined ? x === y : String(a) === String(b)
}

type Where = { node: Node; passes: (properties: Past['properties']) => boolean }

const where: fc.Arbitrary<Where | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.constant<Where>({ node: { type: 'Pred', op: 'is_set', key: 'k' }, passes: ({ k }) => k !== undefined }),
  fc.constantFrom<Value>('a', 1, '1', true, 2.5).map(
    (value): Where => ({
      node: { type: 'Pred', op: 'eq', key: 'k', value: literal(value) },
      passes: ({ k }) => k !== undefined && isSame(k, value),
    }),
  ),
  fc.constantFrom(0.2, 1, 3).map(
    (bound): Where => ({
      node: { type: 'Pred', op: 'gte', key: 'n', value: number(bound) },
      passes: ({ n }) => typeof n === 'number' && n >= bound,
    }),
  ),
)

const compares: Record<string, (a: number, b: number) => boolean> = {
  '>=': (a, b) => a >= b,
  '>': (a, b) => a > b,
  '<=': (a, b) => a <= b,
  '<': (a, b) => a < b,
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
}
const op = fc.constantFrom(...Object.keys(compares))
const name = fc.constantFrom('a', 'b')
const within = fc.option(fc.constantFrom(5 * minute, 2 * hour, 5 * hour, 3 * day, 4 * day), { nil: undefined })

const source = fc.record({ name, where, within }).map((of) => ({
  node: {
    name: of.name,
    ...(of.where && { where: of.where.node }),
    ...(of.within && { within: duration(of.within) }),
  },
  all: (past: readonly Past[], now: number) =>
    past.filter(
      (event) =>
        event.name === of.name &&
        (of.where?.passes(event.properties) ?? true) &&
        (of.within === undefined || isInside(event.at, of.within, now)),
    ),
}))

const compare = (left: Node, how: string, right: Node): Node => ({ type: 'Compare', op: how, left, right })
const exists = source.map(
  ({ node, all }): Asked => ({
    expr: { type: 'Events.Exists', ...node },
    holds: (past, now) => all(past, now).length > 0,
  }),
)
const count = fc.tuple(source, op, fc.integer({ min: 1, max: 3 })).map(
  ([{ node, all }, how, bound]): Asked => ({
    expr: compare({ type: 'Events.Count', ...node }, how, number(bound)),
    holds: (past, now) => compares[how]?.(all(past, now).length, bound) ?? false,
  }),
)
const sum = fc.tuple(source, op, fc.constantFrom(0, 0.3, 2)).map(
  ([{ node, all }, how, bound]): Asked => ({
    expr: compare({ type: 'Events.Aggregate', agg: 'sum', prop: 'n', ...node }, how, number(bound)),
    holds(past, now) {
      // In millionths, as money is.
      const parts = all(past, now).map(({ properties: { n } }) => (typeof n === 'number' ? Math.round(n * 1e6) : 0))
      return (
        compares[how]?.(
          parts.reduce((a, b) => a + b, 0),
          bound * 1e6,
        ) ?? false
      )
    },
  }),
)
/** The age of the first or last is more or less than that; of nothing it is neither. */
const age = fc
  .record({
    source: fc.record({ name, where }),
    type: fc.constantFrom('FirstTime', 'LastTime', 'LastAge', 'Stopped'),
    isLess: fc.boolean(),
    ms: fc.constantFrom(5 * minute, 3 * hour, 2 * day),
  })
  .map(({ source: { name: of, where: filter }, type, isLess, ms }): Asked => {
    const node = { type: `Events.${type}`, name: of, ...(filter && { where: filter.node }) }
    const expr =
      type === 'Stopped'
        ? { ...node, inactiveFor: duration(ms) }
        : type === 'LastAge'
          ? compare(node, isLess ? '<=' : '>=', duration(ms))
          : compare(node, isLess ? '>=' : '<=', { type: 'Time.Ago', duration: duration(ms) })
    return {
      expr,
      holds(past, now) {
        const times = past
          .filter((event) => event.name === of && (filter?.passes(event.properties) ?? true))
          .map(({ at }) => at)
        if (times.length === 0) return false
        const at = type === 'FirstTime' ? Math.min(...times) : Math.max(...times)
        return isLess && type !== 'Stopped' ? now - at <= ms : now - at >= ms
      },
    }
  })

const leaf = fc.oneof(exists, count, sum, age)
const asked: fc.Arbitrary<Asked> = fc.letrec<{ node: Asked }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    tie('node').map(
      ({ expr, holds }): Asked => ({
        expr: { type: 'Not', arg: expr },
        holds: (past, now) => !holds(past, now),
      }),
    ),
    fc.tuple(fc.boolean(), fc.array(tie('node'), { minLength: 1, maxLength: 3 })).map(
      ([isAll, parts]): Asked => ({
        expr: { type: isAll ? 'And' : 'Or', args: parts.map(({ expr }) => expr) },
        holds: (past, now) =>
          isAll ? parts.every(({ holds }) => holds(past, now)) : parts.some(({ holds }) => holds(past, now)),
      }),
    ),
  ),
})).node

const act = fc.oneof(
  fc.record({
    event: name,
    ago: fc.constantFrom(0, 1, 30_000, minute, hour, 3 * hour, day, 3 * day),
    properties: fc.record(
      { k: fc.constantFrom<Value>('a', 'b', 1, 0, '1', true, 2.5), n: fc.constantFrom(0.1, 0.2, 1, 3) },
      { requiredKeys: [] },
    ),
  }),
  fc.constantFrom(1, minute, 10 * minute, hour, 5 * hour, day, 5 * day),
)

test('who is a member of a Segment kept for a condition is who fulfils it by all that happened, whenever looked at', () => {
  fc.assert(
    fc.property(asked, fc.array(act, { maxLength: 12 }), fc.nat(12), (question, acts, definedAt) => {
      const { segments, unkept } = withSegments(question.expr, 'exp_1')
      assert.deepEqual(unkept, [])
      const [segment] = segments
      assert.ok(segment && segments.length === 1)
      const world = new SegmentWorld()
      world.happen('1', [])
      const past: Past[] = []
      let isServing = false
      for (const [i, one] of [...acts, 0].entries()) {
        if (i === Math.min(definedAt, acts.length)) {
          world.define(1, segment.definition.where)
          for (let steps = 0; steps < 30; steps++) world.walk()
          isServing = true
        }
        if (typeof one === 'number') world.pass(one)
        else {
          const event = { name: one.event, at: world.now - one.ago, properties: one.properties as Past['properties'] }
          past.push(event)
          world.happen('1', [{ ...event, fact: false }])
        }
        if (isServing) assert.equal(world.isIn(1, '1'), question.holds(past, world.now))
      }
    }),
    { numRuns: 1000 },
  )
})
