import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../test/harness/random.ts'
import type { Json, JsonObject, Warning } from '../events/index.ts'
import { customerPropertiesBytesMax, customerPropertiesKeysMax, propertyKeyCharsMax } from '../kernel/limits.ts'
import { directivesOfEdit, type PropertyEdit } from './directives.ts'
import { applyDirectives, joinPropertySets } from './properties.ts'
import { bytesOf, emptyPropertySet, jsonText, type PropertySet, parsePropertySet, toObject } from './property-set.ts'

const unsafe = Number.MAX_SAFE_INTEGER + 1

function setOf(values: JsonObject, at = 0): PropertySet {
  const times = Object.fromEntries(Object.keys(values).map((key) => [key, at]))
  return parsePropertySet(JSON.stringify(values), JSON.stringify(times))
}

function apply(set: PropertySet, edit: PropertyEdit, { at = 1000, live = true } = {}) {
  const warnings: Warning[] = []
  const changed = applyDirectives(set, directivesOfEdit(edit, warnings), { at, live }, warnings)
  return { values: JSON.parse(jsonText(set.values)) as Json, changed, codes: warnings.map(({ code }) => code) }
}

const rules: [string, JsonObject, PropertyEdit, JsonObject, string[]?][] = [
  ['set replaces the value of a named key and leaves the others', { a: 1, b: 2 }, { set: { a: 3 } }, { a: 3, b: 2 }],
  ['set replaces objects whole', { a: { x: 1 } }, { set: { a: { y: 2 } } }, { a: { y: 2 } }],
  ['set writes null, which is a value', { a: 1 }, { set: { a: null } }, { a: null }],
  ['set_once writes an absent key', {}, { set_once: { a: 1 } }, { a: 1 }],
  ['set_once leaves a present key', { a: 1 }, { set_once: { a: 2 } }, { a: 1 }],
  ['set_once leaves null, which is present', { a: null }, { set_once: { a: 2 } }, { a: null }],
  ['unset removes', { a: 1, b: 2 }, { unset: ['a'] }, { b: 2 }],
  ['unset of an unknown name does nothing', { a: 1 }, { unset: ['x'] }, { a: 1 }],
  [
    'unset ignores entries that are no text',
    { a: 1 },
    { unset: [1, 'a', null] },
    {},
    ['unset_entry_ignored', 'unset_entry_ignored'],
  ],
  ['increment adds', { a: 1 }, { increment: { a: 2 } }, { a: 3 }],
  ['increment of an absent key starts at 0', {}, { increment: { a: -2 } }, { a: -2 }],
  ['increment by 0 of an absent key writes 0', {}, { increment: { a: 0 } }, { a: 0 }],
  ['increment of fractions is a double sum', { a: 0.1 }, { increment: { a: 0.2 } }, { a: 0.1 + 0.2 }],
  [
    'increment refuses an amount that is no number, the rest applies',
    { a: 1 },
    { increment: { a: '2', b: 1 } },
    { a: 1, b: 1 },
    ['increment_invalid'],
  ],
  ['increment refuses null as amount', { a: 1 }, { increment: { a: null } }, { a: 1 }, ['increment_invalid']],
  ['increment refuses a stored null', { a: null }, { increment: { a: 1 } }, { a: null }, ['increment_not_number']],
  ['increment refuses stored numeric text', { a: '1' }, { increment: { a: 1 } }, { a: '1' }, ['increment_not_number']],
  ['increment reaches the largest whole number', { a: unsafe - 2 }, { increment: { a: 1 } }, { a: unsafe - 1 }],
  [
    'increment refuses a whole sum beyond it',
    { a: unsafe - 1 },
    { increment: { a: 1 } },
    { a: unsafe - 1 },
    ['increment_out_of_range'],
  ],
  [
    'increment refuses a whole sum below its negative',
    { a: 1 - unsafe },
    { increment: { a: -1 } },
    { a: 1 - unsafe },
    ['increment_out_of_range'],
  ],
  [
    'increment refuses a sum that is no number any more',
    { a: 1e308 },
    { increment: { a: 1e308 } },
    { a: 1e308 },
    ['increment_out_of_range'],
  ],
  ['increment comes back from beyond', { a: unsafe + 2 }, { increment: { a: -3 } }, { a: unsafe - 1 }],
  ['set beats set_once', {}, { set_once: { a: 1 }, set: { a: 2 } }, { a: 2 }],
  ['increment adds to what set wrote', { a: 9 }, { set: { a: 2 }, increment: { a: 3 } }, { a: 5 }],
  ['unset beats all', { a: 1 }, { set: { a: 2 }, set_once: { a: 3 }, increment: { a: 4 }, unset: ['a'] }, {}],
]

for (const [title, before, edit, after, codes = []] of rules) {
  test(`directives: ${title}`, () => {
    const result = apply(setOf(before), edit)
    assert.deepEqual({ ...result, changed: null }, { values: after, changed: null, codes })
    assert.equal(result.changed, JSON.stringify(before) !== JSON.stringify(after))
  })
}

test('values that stay what they were write nothing', () => {
  const before = { a: 1, b: { x: [1, { y: null }], z: 'z' }, c: null }
  const same: PropertyEdit[] = [
    { set: { b: { z: 'z', x: [1, { y: null }] } } },
    { set: { a: 1, c: null }, set_once: { a: 2 }, unset: ['x'] },
    { set: { a: 0 }, increment: { a: 1 } },
    { set_once: { x: 1 }, unset: ['x'] },
    { increment: { a: 0 } },
  ]
  for (const edit of same) {
    const set = setOf(before)
    assert.equal(apply(set, edit).changed, false, JSON.stringify(edit))
    assert.deepEqual(set.times, setOf(before).times)
  }
})

test('names of Object.prototype are keys like any other', () => {
  const edit = JSON.parse(
    '{"set":{"__proto__":{"admin":true},"constructor":1},"increment":{"toString":2}}',
  ) as PropertyEdit
  const set = emptyPropertySet()
  assert.deepEqual(apply(set, edit).codes, [])
  assert.equal(jsonText(set.values), '{"__proto__":{"admin":true},"constructor":1,"toString":2}')
  assert.equal(jsonText(parsePropertySet(jsonText(set.values), '{}').values), jsonText(set.values))
  assert.equal((toObject(set.values) as { admin?: unknown }).admin, undefined)
  assert.deepEqual(apply(set, { set_once: edit.set ?? {}, unset: ['hasOwnProperty', 'constructor'] }).values, {
    ['__proto__']: { admin: true },
    toString: 2,
  })
})

test('a key may have 200 characters; only longer ones are refused', () => {
  const longest = '🙂'.repeat(propertyKeyCharsMax)
  const set = emptyPropertySet()
  const edit = {
    set: { [longest]: 1, [`${longest}x`]: 2, b: 3 },
    increment: { [`${longest}y`]: 1 },
    unset: [`${longest}z`],
  }
  assert.deepEqual(apply(set, edit).codes, ['property_key_too_long', 'property_key_too_long'])
  assert.deepEqual([...set.values.keys()], [longest, 'b'])
})

test('a customer has room for 1,000 keys; then only new keys are refused', () => {
  const set = setOf(Object.fromEntries(Array.from({ length: customerPropertiesKeysMax - 1 }, (_, i) => [`k${i}`, i])))
  assert.deepEqual(apply(set, { set: { last: 1, more: 2, k0: 'changed' } }).codes, ['customer_properties_full'])
  assert.deepEqual([set.values.size, set.values.get('last'), set.values.get('k0')], [1000, 1, 'changed'])
  apply(set, { unset: ['k1'] })
  assert.deepEqual(apply(set, { set: { more: 2 } }).codes, [])
})

test('a customer has room for 512 KiB; then only what grows is refused', () => {
  const set = emptyPropertySet()
  const room = customerPropertiesBytesMax - '{"a":"","b":"é"}'.length - 1
  assert.deepEqual(apply(set, { set: { a: 'x'.repeat(room), b: 'é' } }).codes, [])
  assert.equal(bytesOf(set.values), customerPropertiesBytesMax)
  const reloaded = parsePropertySet(jsonText(set.values), jsonText(set.times))
  for (const full of [set, reloaded]) {
    assert.deepEqual(apply(full, { set: { c: 1, b: 'éé' } }).codes, [
      'customer_properties_full',
      'customer_properties_full',
    ])
    assert.deepEqual(apply(full, { set: { b: 'e' } }).codes, [])
    assert.deepEqual(apply(full, { set: { b: 'é' } }).codes, [])
  }
})

test('an import replaces and removes only what is older than it is', () => {
  const set = setOf({ a: 'live', b: 'live' }, 100)
  const older = apply(set, { set: { a: 'import' }, unset: ['b'] }, { at: 99, live: false })
  assert.deepEqual(older, {
    values: { a: 'live', b: 'live' },
    changed: false,
    codes: ['historical_value_older', 'historical_value_older'],
  })
  const newer = apply(set, { set: { a: 'import' }, unset: ['b'] }, { at: 101, live: false })
  assert.deepEqual(newer, { values: { a: 'import' }, changed: true, codes: [] })
})

test('at equal times live data stays, and of two imported events the later one wins', () => {
  const live = setOf({ a: 'live' }, 100)
  assert.equal(apply(live, { set: { a: 'import' } }, { at: 100, live: false }).changed, false)
  const imported = emptyPropertySet()
  apply(imported, { set: { a: 'first' } }, { at: 100, live: false })
  assert.deepEqual(apply(imported, { set: { a: 'second' } }, { at: 100, live: false }).values, { a: 'second' })
  assert.equal(apply(imported, { set: { a: 'third' } }, { at: 99, live: false }).changed, false)
})

test('a live event follows the order of arrival, whatever its time', () => {
  assert.deepEqual(apply(setOf({ a: 'before' }, 100), { set: { a: 'late' } }, { at: 1 }).values, { a: 'late' })
})

test('an imported $set_once needs the key absent and not removed since', () => {
  const set = setOf({ a: 1 }, 50)
  apply(set, { unset: ['a'] }, { at: 100 })
  const older = apply(set, { set_once: { a: 2, b: 2 } }, { at: 99, live: false })
  assert.deepEqual(older, { values: { b: 2 }, changed: true, codes: ['historical_value_older'] })
  assert.deepEqual(apply(set, { set_once: { a: 3, b: 3 } }, { at: 101, live: false }).values, { b: 2, a: 3 })
})

test('an imported increment always counts and makes no value look older', () => {
  const set = setOf({ a: 5 }, 100)
  assert.deepEqual(apply(set, { increment: { a: 1 } }, { at: 1, live: false }).values, { a: 6 })
  assert.equal(apply(set, { set: { a: 0 } }, { at: 50, live: false }).changed, false)
})

test('an import that says what is there already changes nothing, however old', () => {
  const result = apply(setOf({ a: 1 }, 100), { set: { a: 1 }, set_once: { a: 1 } }, { at: 1, live: false })
  assert.deepEqual(result, { values: { a: 1 }, changed: false, codes: [] })
})

test('times of removed keys are remembered, within bounds', () => {
  const set = emptyPropertySet()
  for (let i = 0; i < 3 * customerPropertiesKeysMax; i++) {
    apply(set, { set: { [`k${i}`]: 1 } }, { at: i })
    apply(set, { unset: [`k${i}`] }, { at: i })
  }
  assert.equal(set.values.size, 0)
  assert.ok(set.times.size <= 2 * customerPropertiesKeysMax)
  assert.ok(set.times.has('k2999') && !set.times.has('k0'))
})

test('a merge keeps the properties of both, and the target wins per key', () => {
  const warnings: Warning[] = []
  const joined = joinPropertySets(setOf({ a: 's', n: 3, s: null }, 10), setOf({ a: 't', n: 4, t: 1 }, 20), warnings)
  assert.deepEqual(JSON.parse(jsonText(joined.values)), { a: 't', n: 4, t: 1, s: null })
  assert.deepEqual(JSON.parse(jsonText(joined.times)), { a: 20, n: 20, t: 20, s: 10 })
  assert.deepEqual(warnings, [])
})

test('a merge refuses what finds no room, the same keys in whatever order they were written', () => {
  const keys = Array.from({ length: customerPropertiesKeysMax }, (_, i) => `s${i}`)
  const sourceOf = (names: string[]) => setOf(Object.fromEntries(names.map((name) => [name, 1])))
  const outcomes = [keys, keys.toReversed()].map((names) => {
    const warnings: Warning[] = []
    const joined = joinPropertySets(sourceOf(names), setOf({ t1: 1, t2: 2 }), warnings)
    assert.equal(joined.values.size, customerPropertiesKeysMax)
    return warnings
  })
  assert.equal(outcomes[0]?.length, 2)
  assert.deepEqual(outcomes[0], outcomes[1])
})

test('any key and value survives a round trip through the two columns', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: false }), (values) => {
      const set = emptyPropertySet()
      apply(set, { set: values as JsonObject })
      const again = parsePropertySet(jsonText(set.values), jsonText(set.times))
      // Parsed once more, because minus zero is the one number that JSON does not tell apart.
      const plain = JSON.parse(jsonText(set.values)) as JsonObject
      assert.deepEqual(toObject(again.values), toObject(new Map(Object.entries(plain))))
      assert.equal(apply(again, { set: values as JsonObject }).changed, false)
      assert.ok(again.bytes >= bytesOf(again.values))
    }),
    { numRuns: 200 },
  )
})
