import type { Json, LoggedEvent } from '../../src/events/index.ts'
import { loggedEvent } from './logged-event.ts'
import fc from './random.ts'

const ids = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'gone', 'null')
const keys = fc.constantFrom('k', 'n', '__proto__')
const values = fc.constantFrom<Json>(null, 0, 1, 'text', { x: [1] })
const object = <Value>(value: fc.Arbitrary<Value>) =>
  fc
    .array(fc.tuple(keys, value), { maxLength: 2 })
    .map((entries) => Object.fromEntries(entries) as { [key: string]: Value })

/** Few ids, keys, values and times, so that everything meets everything; `gone` is meant to be deleted. */
export const randomEvents: fc.Arbitrary<LoggedEvent[]> = fc.array(
  fc
    .record({
      distinctId: ids,
      anonymousId: fc.option(ids, { nil: undefined, freq: 1 }),
      name: fc.constantFrom('$identify', '$identify', 'opened'),
      $set: fc.option(object(values), { nil: undefined }),
      $set_once: fc.option(object(values), { nil: undefined }),
      $increment: fc.option(object(fc.constantFrom<Json>(1, -2, 0.5, 'one')), { nil: undefined }),
      $unset: fc.option(fc.array(keys, { maxLength: 2 }), { nil: undefined }),
      at: fc.integer({ min: 1, max: 5 }),
      live: fc.boolean(),
    })
    .map(({ distinctId, anonymousId, name, $set, $set_once, $increment, $unset, at, live }) =>
      loggedEvent(
        distinctId,
        {
          event: name,
          ...(anonymousId !== undefined && { $anon_distinct_id: anonymousId }),
          ...($set && { $set }),
          ...($set_once && { $set_once }),
          ...($increment && { $increment }),
          ...($unset && { properties: { $unset } }),
        },
        { at, live },
      ),
    ),
  { maxLength: 14 },
)
