import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import { SegmentWorld } from '../../../test/harness/segment-world.ts'

const [minute, hour, day] = [60_000, 3600_000, 86_400_000]

const names = fc.constantFrom('a', 'b')
const filters = fc.constantFrom(
  undefined,
  [{ property: 'n', op: 'gt', value: 1 }],
  [{ property: 'n', op: 'not_exists' }],
)
const within = fc.constantFrom(
  undefined,
  { value: 1, unit: 'minute' },
  { value: 2, unit: 'hour' },
  { value: 3, unit: 'hour' },
  { value: 72, unit: 'hour' },
  { value: 4, unit: 'day' },
)
const spans = fc.constantFrom({ value: 5, unit: 'minute' }, { value: 3, unit: 'hour' }, { value: 2, unit: 'day' })
const defined = <T extends object>(object: T) =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))

const performed = fc
  .record({
    event: names,
    filters,
    within,
    count: fc.option(fc.record({ op: fc.constantFrom('eq', 'gte', 'lte'), value: fc.nat(3) }), { nil: undefined }),
  })
  .map((leaf) => ({ performed: defined(leaf) }))
const sum = fc
  .record({
    event: names,
    filters,
    within,
    property: fc.constant('n'),
    op: fc.constantFrom('eq', 'gt', 'gte', 'lt', 'lte'),
    value: fc.constantFrom(0, 0.3, 2),
  })
  .map((leaf) => ({ sum: defined(leaf) }))
const once = fc
  .tuple(fc.constantFrom('first_performed', 'last_performed'), names, filters, fc.constantFrom('gte', 'lte'), spans)
  .map(([kind, event, filter, op, span]) => ({ [kind]: defined({ event, filters: filter, ago: { op, ...span } }) }))
const property = fc.constantFrom(
  { property: { key: 'p', op: 'eq', value: 1 } },
  { property: { key: 'p', op: 'not_exists' } },
  { property: { key: 'q', op: 'in', value: ['x'] } },
)
const feature = fc.constantFrom('active', 'inactive').map((is) => ({ feature: { id: 'pro', is } }))
const leaf = fc.oneof(performed, performed, sum, once, property, feature)
const asking = (segments: number[]) =>
  segments.length === 0
    ? leaf
    : fc.oneof(
        { weight: 5, arbitrary: leaf },
        fc
          .record({ id: fc.constantFrom(...segments.map((id) => `seg_${id}`)), is: fc.boolean() })
          .map((segment) => ({ segment })),
      )
const definition = (segments: number[]) =>
  fc.oneof(
    asking(segments),
    asking(segments).map((not) => ({ not })),
    fc.array(asking(segments), { minLength: 1, maxLength: 3 }).map((all) => ({ all })),
    fc.array(asking(segments), { minLength: 1, maxLength: 3 }).map((any) => ({ any })),
  )

const event = fc.oneof(
  fc.record({
    name: names,
    ago: fc.constantFrom(0, 1, 30_000, minute, hour, 3 * hour, day, 3 * day, 6 * day),
    properties: fc.constantFrom({}, { n: 0.1 }, { n: 0.2 }, { n: 1.5 }, { n: 3 }, { n: '3' }),
    fact: fc.constant(false),
  }),
  fc.record({
    name: fc.constant('$feature_access_changed'),
    ago: fc.constant(0),
    fact: fc.boolean(),
    properties: fc
      .record({ version: fc.integer({ min: 1, max: 12 }), from: fc.nat(3), hours: fc.option(fc.nat(5)) })
      .map(({ version, from, hours }) => ({
        feature: 'pro',
        version: `${version}`,
        intervals: [[start + from * hour, hours === null ? null : start + (from + hours) * hour]],
      })),
  }),
)
const start = Date.UTC(2026, 2, 1)
const people = fc.constantFrom('1', '2', '3', '4')

type Act = (world: SegmentWorld) => void
const acts: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .record({
        who: people,
        events: fc.array(event, { maxLength: 3 }),
        set: fc.constantFrom({}, {}, { p: 1 }, { p: 2 }, { q: 'x' }),
      })
      .map(
        ({ who, events, set }): Act =>
          (world) => {
            world.happen(
              who,
              events.map(({ ago, ...rest }) => ({ ...rest, at: world.now - ago })),
              set,
            )
          },
      ),
  },
  {
    weight: 4,
    arbitrary: fc.constantFrom(1, minute, 10 * minute, hour, 5 * hour, day, 5 * day, -hour, -2 * day).map(
      (ms): Act =>
        (world) =>
          world.pass(ms),
    ),
  },
  { weight: 3, arbitrary: fc.constant<Act>((world) => world.walk()) },
  {
    weight: 1,
    arbitrary: fc.tuple(people, people).map(
      ([source, target]): Act =>
        (world) => {
          if (source !== target && world.people.has(source) && world.people.has(target)) world.merge(source, target)
        },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 1, max: 3 }).chain((id) =>
      definition([1, 2].filter((other) => other < id)).map(
        (where): Act =>
          (world) =>
            world.define(id, where),
      ),
    ),
  },
)

test('kept step by step or counted from nothing, memberships are the same, and entered and left alternate', () => {
  fc.assert(
    fc.property(
      fc.tuple(definition([]), definition([1]), definition([1, 2])),
      fc.array(acts, { maxLength: 40 }),
      fc.infiniteStream(fc.nat()),
      ([one, two, three], steps, random) => {
        const world = new SegmentWorld()
        world.define(1, one)
        world.define(2, two)
        world.define(3, three)
        for (const act of steps) act(world)
        for (let i = 0; i < 200; i++) world.walk()
        world.pass(0)
        world.check((items) =>
          items
            .map((item) => ({ item, key: random.next().value }))
            .toSorted((a, b) => a.key - b.key)
            .map(({ item }) => item),
        )
      },
    ),
    { numRuns: 300 },
  )
})
