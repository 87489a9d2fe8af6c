import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../test/harness/random.ts'
import { eventBytesMax } from '../kernel/limits.ts'
import { type Normalised, normalise } from './normalise.ts'
import type { EventPayload, Json, NewEvent } from './types.ts'

const receivedAt = Date.parse('2026-11-20T12:00:00.000Z')
const uuid = '0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b'
const least = { event: 'offer_shown', distinct_id: 'u1', uuid }

/** Judges an item as it comes from JSON text, so that `__proto__` and 1e400 are what a client can send. */
function judge(fields: Record<string, unknown> | string): Normalised {
  const text = typeof fields === 'string' ? fields : JSON.stringify({ ...least, ...fields })
  return normalise(JSON.parse(text), { receivedAt, trust: 'device' })
}

function taken(fields: Record<string, unknown> | string): NewEvent {
  const judged = judge(fields)
  assert.equal(judged.kind, 'event', JSON.stringify(judged))
  return judged.event
}

function payload(fields: Record<string, unknown> | string): EventPayload {
  return JSON.parse(taken(fields).text)
}

function codes(judged: Normalised): string[] {
  return judged.kind === 'invalid' ? judged.issues.map((issue) => `${issue.code} ${issue.path}`.trim()) : [judged.kind]
}

const nested = (depth: number): Json => (depth === 0 ? 1 : { a: nested(depth - 1) })
const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]))

const refusals: [string, Record<string, unknown> | string, string][] = [
  ['a text', '"x"', 'item_invalid'],
  ['null', 'null', 'item_invalid'],
  ['an array', '[]', 'item_invalid'],
  ['no event', { event: undefined }, 'event_required event'],
  ['a null event', { event: null }, 'event_required event'],
  ['an empty event', { event: '' }, 'event_required event'],
  ['a blank event', { event: ' \t\u00a0\u3000\u0085' }, 'event_required event'],
  ['an event that is a number', { event: 7 }, 'event_invalid event'],
  ['an event with NUL', { event: 'a\0' }, 'event_invalid event'],
  ['an event with a lone surrogate', { event: 'a\ud800' }, 'event_invalid event'],
  ['an event of 201 characters', { event: '😀'.repeat(201) }, 'event_too_long event'],
  ['no distinct_id', { distinct_id: undefined }, 'distinct_id_required distinct_id'],
  ['a blank distinct_id', { distinct_id: '  ' }, 'distinct_id_required distinct_id'],
  ['a distinct_id that is a number', { distinct_id: 42 }, 'distinct_id_invalid distinct_id'],
  ['a distinct_id with NUL', { distinct_id: '\0u' }, 'distinct_id_invalid distinct_id'],
  ['a distinct_id with a lone surrogate', { distinct_id: '\udc00u' }, 'distinct_id_invalid distinct_id'],
  ['a distinct_id of 257 characters', { distinct_id: 'a'.repeat(257) }, 'distinct_id_too_long distinct_id'],
  ...['anonymous', 'guest', 'undefined', 'null', ' Guest\n', 'ANONYMOUS'].map(
    (id): [string, Record<string, unknown>, string] => [
      `the placeholder ${JSON.stringify(id)}`,
      { distinct_id: id },
      'distinct_id_reserved distinct_id',
    ],
  ),
  ['no uuid', { uuid: undefined }, 'uuid_required uuid'],
  ['null for both uuids', { uuid: null, idempotency_key: null }, 'uuid_required uuid'],
  ['a uuid of other text', { uuid: 'not-a-uuid' }, 'uuid_invalid uuid'],
  ['an empty uuid', { uuid: '' }, 'uuid_invalid uuid'],
  ['a uuid that is a number', { uuid: 1 }, 'uuid_invalid uuid'],
  ['the uuid of zeros', { uuid: '00000000-0000-0000-0000-000000000000' }, 'uuid_invalid uuid'],
  ['the uuid of F', { uuid: 'FFFFFFFF-ffff-FFFF-ffff-FFFFFFFFFFFF' }, 'uuid_invalid uuid'],
  ['a uuid in braces', { uuid: `{${uuid}}` }, 'uuid_invalid uuid'],
  ['a bad idempotency_key', { uuid: undefined, idempotency_key: 'x' }, 'idempotency_key_invalid idempotency_key'],
  ['a bad idempotency_key beside a uuid', { idempotency_key: 'x' }, 'idempotency_key_invalid idempotency_key'],
  ['two different uuids', { idempotency_key: uuid.replace('5b', '5c') }, 'uuid_mismatch idempotency_key'],
  ['an epoch timestamp', { timestamp: 1_700_000_000 }, 'timestamp_invalid timestamp'],
  ['an impossible day', { timestamp: '2026-02-30T00:00:00Z' }, 'timestamp_invalid timestamp'],
  ['properties that are an array', { properties: [] }, 'properties_invalid properties'],
  ['properties that are text', { properties: '{}' }, 'properties_invalid properties'],
  ['2,001 keys', { properties: { a: keys(2000) } }, 'properties_too_many_keys properties.a'],
  [
    'a number that is no double',
    `{"event":"e","distinct_id":"u","uuid":"${uuid}","properties":{"list":[{"n":1e400}]}}`,
    'number_out_of_range properties.list.0.n',
  ],
  ['$set that is an array', { properties: { $set: [] } }, 'directive_invalid properties.$set'],
  ['$increment that is a number', { properties: { $increment: 1 } }, 'directive_invalid properties.$increment'],
  ['$unset that is an object', { properties: { $unset: {} } }, 'directive_invalid properties.$unset'],
  ['$set_once at the top that is text', { $set_once: 'a' }, 'directive_invalid $set_once'],
  ['$unset at the top that is text', { $unset: 'a' }, 'directive_invalid $unset'],
  ['a value that is text', { value: '1' }, 'value_invalid value'],
  ['a value out of range', `{"event":"e","distinct_id":"u","uuid":"${uuid}","value":-1e999}`, 'value_invalid value'],
  ['an empty entityId', { entityId: '' }, 'entity_id_invalid entityId'],
  ['a blank entityId', { entityId: ' ' }, 'entity_id_invalid entityId'],
  ['an entityId with blanks around it', { entityId: 'a ' }, 'entity_id_invalid entityId'],
  ['an entityId of 257 characters', { entityId: 'é'.repeat(257) }, 'entity_id_invalid entityId'],
  ['an entityId with NUL', { entityId: 'a\0b' }, 'entity_id_invalid entityId'],
  ['an entityId that is a number', { entityId: 5 }, 'entity_id_invalid entityId'],
  ['$anon_distinct_id that is a number', { $anon_distinct_id: 5 }, 'anon_distinct_id_invalid $anon_distinct_id'],
  ['an event above 1 MiB', { properties: { a: 'x'.repeat(eventBytesMax) } }, 'event_too_large'],
]
for (const [what, fields, expected] of refusals) {
  test(`${what} is refused: ${expected}`, () => {
    assert.deepEqual(codes(judge(fields)), [expected])
  })
}

test('objects and arrays 32 deep are taken, 33 deep are not', () => {
  assert.equal(judge({ properties: nested(32) }).kind, 'event')
  const refused = judge({ properties: nested(33) })
  assert.deepEqual(codes(refused), [`properties_too_deep properties${'.a'.repeat(32)}`])
})

test('what is at a limit is taken', () => {
  taken({ event: '😀'.repeat(200), distinct_id: '😀'.repeat(256), entityId: '😀'.repeat(256) })
  taken({ properties: { a: keys(1999) } })
  const frame = Buffer.byteLength(taken({ properties: { a: '' } }).text)
  taken({ properties: { a: 'x'.repeat(eventBytesMax - frame) } })
  assert.deepEqual(codes(judge({ properties: { a: 'x'.repeat(eventBytesMax - frame + 1) } })), ['event_too_large'])
  assert.deepEqual(codes(judge({ properties: { a: '€'.repeat((eventBytesMax - frame) / 3 + 1) } })), [
    'event_too_large',
  ])
})

test('all that is wrong is named, in the order of the table', () => {
  const judged = judge({
    event: '',
    distinct_id: 'null',
    uuid: 'x',
    timestamp: 0,
    properties: 1,
    $set: 1,
    value: '',
    entityId: 1,
  })
  assert.deepEqual(codes(judged), [
    'event_required event',
    'distinct_id_reserved distinct_id',
    'uuid_invalid uuid',
    'timestamp_invalid timestamp',
    'properties_invalid properties',
    'directive_invalid $set',
    'value_invalid value',
    'entity_id_invalid entityId',
  ])
  assert.equal(judged.kind === 'invalid' && judged.code, 'event_required')
})

test('a reason is the code and one sentence', () => {
  const judged = judge({ distinct_id: 'guest' })
  assert.deepEqual(
    judged.kind === 'invalid' && judged.issues[0].message,
    'distinct_id_reserved: distinct_id must not be a placeholder',
  )
})

test('null is absent in every optional field', () => {
  const optional = ['idempotency_key', 'timestamp', 'properties', '$set', '$set_once', '$unset', '$increment', 'value']
  const absent = [...optional, 'entityId', '$anon_distinct_id', 'journeyOrigin']
  assert.deepEqual(payload(Object.fromEntries(absent.map((name) => [name, null]))), {
    ...least,
    timestamp: '2026-11-20T12:00:00.000Z',
    properties: {},
    trust: 'device',
  })
  taken({ properties: { $set: null, $unset: null } })
})

test('uuid and idempotency_key are one key space, stored lower-case', () => {
  const upper = uuid.toUpperCase()
  assert.equal(taken({ uuid: upper }).uuid, uuid)
  assert.equal(taken({ uuid: undefined, idempotency_key: upper }).uuid, uuid)
  assert.equal(taken({ uuid, idempotency_key: upper }).uuid, uuid)
  assert.equal(payload({ uuid: upper }).uuid, uuid)
})

test('a distinct_id is kept as it was sent', () => {
  for (const id of [' u1 ', 'U\u0308', 'Ü', 'İ', '"quoted\\"', 'anonymous2', '\ufeffx'])
    assert.equal(taken({ distinct_id: id }).distinctId, id)
})

test('a timestamp is written in UTC with milliseconds, and receipt time stands in for none', () => {
  assert.equal(payload({ timestamp: '2026-11-19T10:00:00+02' }).timestamp, '2026-11-19T08:00:00.000Z')
  assert.equal(payload({ timestamp: '2026-11-19T10:00:00.123Z' }).timestamp, '2026-11-19T10:00:00.123Z')
  assert.equal(payload({ timestamp: '2016-12-31T23:59:60.000Z' }).timestamp, '2016-12-31T23:59:59.999Z')
  assert.equal(payload({}).timestamp, '2026-11-20T12:00:00.000Z')
  assert.equal(taken({}).at, receivedAt)
})

test('a timestamp more than 23 hours ahead becomes receipt time with a warning', () => {
  const ahead = taken({ timestamp: '2026-11-21T11:00:00.000Z' })
  assert.equal(ahead.at, receivedAt + 23 * 3_600_000)
  const clamped = payload({ timestamp: '2026-11-21T11:00:00.001Z' })
  assert.equal(clamped.timestamp, '2026-11-20T12:00:00.000Z')
  assert.deepEqual(clamped.warnings, [{ code: 'timestamp_clamped', detail: '2026-11-21T11:00:00.001Z' }])
  assert.equal(payload({ timestamp: '9999-12-31T23:59:59-12:00' }).timestamp, '2026-11-20T12:00:00.000Z')
})

test('NUL and lone surrogates in properties become U+FFFD with one warning', () => {
  const stored = payload({ properties: { 'k\0': ['a\ud800b', { x: 'ok' }], plain: 1 }, $set: { s: '\0' } })
  assert.deepEqual(stored.properties, { 'k\ufffd': ['a\ufffdb', { x: 'ok' }], plain: 1 })
  assert.deepEqual(stored.$set, { s: '\ufffd' })
  assert.deepEqual(stored.warnings, [{ code: 'text_replaced' }])
  assert.equal(payload({ properties: { a: '😀\n"\\' } }).warnings, undefined)
})

test('what needs no replacing is not copied', () => {
  const properties = { a: { b: [1, 'x'] } }
  const judged = normalise({ ...least, properties }, { receivedAt, trust: 'device' })
  assert.equal(judged.kind === 'event' && judged.event.known.properties, properties)
})

test('__proto__, constructor and toString are plain keys', () => {
  const text =
    '{"__proto__":{"x":"\\u0000"},"constructor":{"prototype":{"y":1}},"toString":2,"hasOwnProperty":null,"toJSON":1}'
  const { properties } = payload(`{"event":"e","distinct_id":"u","uuid":"${uuid}","properties":${text}}`)
  assert.equal(JSON.stringify(properties), text.replace('\\u0000', '\ufffd'))
  assert.equal('y' in {}, false)
})

test('an item whose fields come through __proto__ has none', () => {
  assert.equal(judge(`{"__proto__":${JSON.stringify(least)}}`).kind, 'invalid')
})

test('the content of $anon_distinct_id never refuses the event', () => {
  for (const id of ['', ' ', 'anonymous', 'a'.repeat(5000)])
    assert.equal(payload({ $anon_distinct_id: id }).$anon_distinct_id, id)
})

test('an anonymous id that cannot be stored reaches the lane as sent, and is not shown so', () => {
  const top = taken({ event: '$identify', $anon_distinct_id: 'a\0' })
  assert.equal(top.known.$anon_distinct_id, 'a\ufffd')
  assert.equal(JSON.parse(top.text).$anon_distinct_id, 'a\0')
  const inside = taken({ event: '$identify', properties: { $anon_distinct_id: '\ud800' } })
  assert.equal(inside.known.properties.$anon_distinct_id, '\ufffd')
  assert.equal(inside.known.$anon_distinct_id, undefined)
  assert.equal(JSON.parse(inside.text).$anon_distinct_id, '\ud800')
})

test('directives at the top level are kept beside those in properties', () => {
  const stored = payload({
    $set: { a: 1 },
    $set_once: { b: 2 },
    $unset: ['c', 4],
    $increment: { d: 1 },
    properties: { $set: { a: 0 } },
  })
  assert.deepEqual(
    [stored.$set, stored.$set_once, stored.$unset, stored.$increment],
    [{ a: 1 }, { b: 2 }, ['c', 4], { d: 1 }],
  )
  assert.deepEqual(stored.properties, { $set: { a: 0 } })
})

test('journeyOrigin is kept as a claim up to 2 KiB, anything else is ignored with a warning', () => {
  const origin = { journeyId: 'j', generation: 1 }
  assert.deepEqual(payload({ journeyOrigin: origin }).journeyOrigin, origin)
  assert.deepEqual(payload({ journeyOrigin: { a: 'x\0' } }).journeyOrigin, { a: 'x\ufffd' })
  assert.ok(payload({ journeyOrigin: { a: 'x'.repeat(2040) } }).journeyOrigin)
  for (const bad of ['x', 1, [], { a: 'x'.repeat(2041) }, { a: 'é'.repeat(1030) }, nested(33)]) {
    const stored = payload({ journeyOrigin: bad })
    assert.equal(stored.journeyOrigin, undefined)
    assert.deepEqual(stored.warnings, [{ code: 'journey_origin_ignored' }])
  }
})

test('merge verbs belong to another endpoint, but only when nothing else is wrong', () => {
  for (const event of ['$create_alias', '$merge_dangerously']) {
    const judged = judge({ event })
    assert.equal(judged.kind, 'misdirected')
    assert.deepEqual([judged.lane, judged.endpoint], ['identity', 'POST /v1/customers/{id}/merge'])
    assert.match(judged.issue.message, /^endpoint_required: /)
    assert.deepEqual(codes(judge({ event, distinct_id: 'guest' })), ['distinct_id_reserved distinct_id'])
  }
})

test('the answer holds the known fields and nothing else', () => {
  const sent = {
    apiKey: 'pk_test_x',
    $lib: 'ios',
    value: 1.5,
    entityId: 'e1',
    $anon_distinct_id: 'a',
    $set: { b: 1 },
    offset: 3,
  }
  const event = taken({ ...sent, properties: { p: 1 } })
  const expected = {
    ...least,
    timestamp: '2026-11-20T12:00:00.000Z',
    properties: { p: 1 },
    value: 1.5,
    entityId: 'e1',
    $anon_distinct_id: 'a',
  }
  assert.deepEqual(event.known, expected)
  assert.deepEqual(JSON.parse(event.knownText), expected)
  assert.deepEqual(JSON.parse(event.text), { ...expected, $set: { b: 1 }, trust: 'device' })
})

test('trust is that of the caller', () => {
  const judged = normalise(least, { receivedAt, trust: 'server' })
  assert.equal(judged.kind === 'event' && JSON.parse(judged.event.text).trust, 'server')
})

test('any JSON properties come through unchanged when they can be stored', () => {
  const json = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ maxDepth: 5 }), { maxKeys: 20 })
  fc.assert(
    fc.property(json, (sent) => {
      const text = JSON.stringify(sent)
      fc.pre(!text.includes('\\u0000') && !/\\ud[89a-f]/.test(text))
      const stored = payload(`{"event":"e","distinct_id":"u","uuid":"${uuid}","properties":${text}}`)
      assert.equal(JSON.stringify(stored.properties), text)
    }),
    { numRuns: 200 },
  )
})

test('no text at all can make an event that PostgreSQL would refuse', () => {
  const wild = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) })
  fc.assert(
    fc.property(fc.dictionary(wild, wild), wild, (properties, origin) => {
      const { text } = taken(JSON.stringify({ ...least, properties, journeyOrigin: { origin } }))
      assert.ok(!/\\u0000|\\ud[89a-f]/.test(text))
    }),
    { numRuns: 200 },
  )
})
