import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { startService } from '../harness/service.ts'
import type { Body } from './answers.ts'
import { anEvent, assertRefused, openProject } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()

describe('POST /event, 400', () => {
  const cases: Record<string, [values: unknown[], code: string][]> = {
    event: [
      [[undefined, null, '', ' ', '\t\u00a0\u2003'], 'event_required'],
      [[7, 0, true, false, [], ['a'], {}, 'a\0b', '\ud800', 'a\udc00'], 'event_invalid'],
      [['x'.repeat(201), '😀'.repeat(201)], 'event_too_long'],
    ],
    distinct_id: [
      [[undefined, null, '', ' ', '\u0085\ufeff'], 'distinct_id_required'],
      [[7, 0, true, false, [], ['a'], {}, 'a\0b', '\ud800', 'a\udc00'], 'distinct_id_invalid'],
      [['x'.repeat(257), '😀'.repeat(257), ' '.repeat(256).concat('x')], 'distinct_id_too_long'],
      [['anonymous', 'ANONYMOUS', ' Guest ', 'undefined', 'Undefined\n', 'null', 'NULL'], 'distinct_id_reserved'],
      [[`null${' '.repeat(200)}`, `${'\t'.repeat(240)}Guest`], 'distinct_id_reserved'],
    ],
    uuid: [
      [[undefined, null], 'uuid_required'],
      [
        [7, true, [], {}, '', 'x', randomUUID().replaceAll('-', ''), `{${randomUUID()}}`, ` ${randomUUID()}`],
        'uuid_invalid',
      ],
      [[randomUUID().replace(/^./, 'g'), '00000000-0000-0000-0000-000000000000'], 'uuid_invalid'],
      [['ffffffff-ffff-ffff-ffff-ffffffffffff', 'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF'], 'uuid_invalid'],
    ],
    idempotency_key: [
      [[7, true, [], {}, '', 'x', '00000000-0000-0000-0000-000000000000'], 'idempotency_key_invalid'],
      [[randomUUID()], 'uuid_mismatch'],
    ],
    timestamp: [
      [
        [7, 0, 1700000000000, true, [], {}, '', 'now', '2026', '2026-02-30', '2026-13-01', '2025-02-29'],
        'timestamp_invalid',
      ],
      [
        ['2026-01-01T24:00:00Z', '2026-01-01T10:60Z', '0000-01-01', '1700000000', '2026-01-01 10:00:00'],
        'timestamp_invalid',
      ],
      [['2026-01-01T10:00:00+24:00', ' 2026-01-01', '2026-01-01T10:00:00z', '+012026-01-01'], 'timestamp_invalid'],
    ],
    properties: [
      [[7, 0, '', 'x', true, false, [], [{}]], 'properties_invalid'],
      [[nested(33)], 'properties_too_deep'],
      [[Object.fromEntries(Array.from({ length: 2001 }, (_, n) => [n, n]))], 'properties_too_many_keys'],
    ],
    value: [[['1', '', true, false, [], {}], 'value_invalid']],
    entityId: [
      [['', ' ', ' a', 'a\n', '\u0085a', 7, true, [], {}, 'x'.repeat(257), 'a\0', '\ud800'], 'entity_id_invalid'],
    ],
    $anon_distinct_id: [[[7, true, false, [], {}], 'anon_distinct_id_invalid']],
    $set: [[[7, '', 'x', true, []], 'directive_invalid']],
    $unset: [[[7, '', 'x', true, {}], 'directive_invalid']],
  }
  for (const [field, refusals] of Object.entries(cases)) {
    for (const [values, code] of refusals) {
      test(`${field}: ${code}`, async () => {
        for (const value of values) {
          const answer = await app.post('/event', anEvent('ada', { [field]: value }))
          assertRefused(answer, 400, 'invalid_request')
          const [issue] = answer.body.issues
          assert.deepEqual(
            [issue.path.split('.')[0], issue.message.split(':')[0]],
            [field, code],
            JSON.stringify(value),
          )
          assert.equal(answer.body.message, issue.message)
        }
      })
    }
  }

  test('directives inside properties are objects, and $unset is an array', async () => {
    for (const name of ['$set', '$set_once', '$increment']) {
      for (const value of [7, 'x', true, []]) {
        const answer = await app.post('/event', anEvent('ada', { properties: { [name]: value } }))
        assertRefused(answer, 400, 'invalid_request', `properties.${name}`)
      }
    }
    assertRefused(await app.post('/event', anEvent('ada', { properties: { $unset: {} } })), 400, 'invalid_request')
  })

  test('a number that no double holds', async () => {
    for (const [field, path] of [
      ['"value":1e400', 'value'],
      ['"value":-1e309', 'value'],
      ['"properties":{"a":[1,{"b":1e400}]}', 'properties.a.1.b'],
    ]) {
      const body = JSON.stringify({ apiKey: app.key, ...anEvent('ada') }).replace(/}$/, `,${field}}`)
      assertRefused(await app.post('/event', body), 400, 'invalid_request', path)
    }
  })

  test('tells of everything that is wrong', async () => {
    const { body } = await app.post('/event', { event: '', distinct_id: 'null', uuid: 'x', value: [], properties: 1 })
    assert.deepEqual(
      body.issues.map(({ path }: Body) => path),
      ['event', 'distinct_id', 'uuid', 'properties', 'value'],
    )
  })

  test('merge verbs are sent to the endpoint that takes them', async () => {
    for (const event of ['$create_alias', '$merge_dangerously']) {
      const answer = await app.post('/event', anEvent('ada', { event }))
      assertRefused(answer, 400, 'invalid_request', 'event')
      assert.deepEqual(answer.body.details, { lane: 'identity', endpoint: 'POST /v1/customers/{id}/merge' })
    }
  })
})

describe('POST /event, at the limits, 200', () => {
  const values: Record<string, unknown[]> = {
    event: ['x'.repeat(200), '😀'.repeat(200), ' paid ', '\u200b', '$unheard_of', 'a\u0085'],
    distinct_id: ['x'.repeat(256), '😀'.repeat(256), ' ada ', 'nulls', 'not_authenticated', '0', 'true', 'İ', '\u200b'],
    idempotency_key: [undefined],
    properties: [nested(32), Object.fromEntries(Array.from({ length: 2000 }, (_, n) => [n, n])), { a: 1e308, b: -0 }],
    value: [0, -1, 1.5, 1e308, 2 ** 53],
    entityId: ['x'.repeat(256), '😀'.repeat(256), 'a b'],
    $anon_distinct_id: ['', 'guest', 'x'.repeat(1000), 'a\0', '\ud800'],
    journeyOrigin: [7, 'x', [], { journeyId: 'x' }, { text: 'x'.repeat(3000) }],
    $set: [{}, { a: 1 }, null],
    $unset: [[], ['a'], [7], null],
  }
  for (const [field, taken] of Object.entries(values)) {
    test(field, async () => {
      for (const value of taken) {
        const { status, body } = await app.post('/event', anEvent('ada', { [field]: value }))
        assert.equal(status, 200, JSON.stringify(body))
      }
    })
  }
})

function nested(depth: number): object {
  return depth === 1 ? {} : { a: nested(depth - 1) }
}
