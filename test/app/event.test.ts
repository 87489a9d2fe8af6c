import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { eventBodyBytesMax, eventBytesMax } from '../../src/kernel/limits.ts'
import { startService } from '../harness/service.ts'
import type { Body } from './answers.ts'
import { anEvent, assertRefused, openProject, send } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()
const scopeId = await project.scopeId()

async function record(body: Record<string, unknown>): Promise<Body> {
  const answer = await app.post('/event', body)
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  return answer.body
}

async function inLog(uuid: string): Promise<{ distinct_id: string; payload: Body }[]> {
  const rows = await service.pool.query<{ distinct_id: string; payload: string }>(
    'select distinct_id, payload from event_log where lane = $1 and uuid = $2',
    [scopeId, uuid],
  )
  return rows.map((row) => ({ ...row, payload: JSON.parse(row.payload) }))
}

describe('POST /event, 200', () => {
  test('says what was accepted, and what was accepted is in the log', async () => {
    const uuid = randomUUID()
    const answer = await record({ event: 'opened', distinct_id: 'ada', uuid })
    const { customerIdHint, payload, ...rest } = answer
    assert.deepEqual(rest, { status: 'ok', eventId: uuid, accepted: 1, queued: true })
    assert.match(customerIdHint, /^cus_[0-9a-f-]{36}$/)
    const { timestamp, ...known } = payload
    assert.deepEqual(known, { event: 'opened', distinct_id: 'ada', uuid, properties: {} })
    assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 5000, 'an absent timestamp is the time of receipt')
    assert.deepEqual(
      (await inLog(uuid)).map((row) => row.distinct_id),
      ['ada'],
    )
  })

  test('shows every known field after normalisation, and none that it does not know', async () => {
    const uuid = randomUUID()
    const known = {
      event: '$app_opened',
      distinct_id: ' Ada Lovelace ',
      properties: { n: 1.5, nested: [{ a: null }], $set: { plan: 'pro' } },
      value: -2.5,
      entityId: 'seat 1',
      $anon_distinct_id: 'anon-1',
    }
    const sent = {
      ...known,
      timestamp: '2026-03-01T12:00:00+02:00',
      uuid: uuid.toUpperCase(),
      $lib: 'x',
      batch: [],
      locale: 'de',
    }
    const { payload, eventId } = await record(sent)
    assert.equal(eventId, uuid)
    assert.deepEqual(payload, { ...known, uuid, timestamp: '2026-03-01T10:00:00.000Z' })
  })

  test('takes uuid, or idempotency_key, or both when they are the same', async () => {
    const uuid = randomUUID()
    const event = { event: 'opened', distinct_id: 'ada' }
    for (const ids of [{ uuid }, { idempotency_key: uuid }, { uuid, idempotency_key: uuid.toUpperCase() }]) {
      const { eventId, payload } = await record({ ...event, ...ids })
      assert.deepEqual([eventId, payload.uuid, 'idempotency_key' in payload], [uuid, uuid, false])
    }
    assert.equal((await record({ ...event, uuid, idempotency_key: null })).eventId, uuid)
  })

  test('takes optional fields that are null as absent', async () => {
    const nothing = { properties: null, timestamp: null, value: null, entityId: null, $anon_distinct_id: null }
    const { payload } = await record(anEvent('ada', nothing))
    assert.deepEqual(Object.keys(payload), ['event', 'distinct_id', 'uuid', 'timestamp', 'properties'])
  })

  test('reads timestamps of every zone, and those of another day than today', async () => {
    const readings = {
      '2026-02-28T23:59:59.999Z': '2026-02-28T23:59:59.999Z',
      '2026-02-28T23:59:59.9999Z': '2026-02-28T23:59:59.999Z',
      '2024-02-29': '2024-02-29T00:00:00.000Z',
      '2026-01-01T10:00': '2026-01-01T10:00:00.000Z',
      '2026-01-01T10:00:00': '2026-01-01T10:00:00.000Z',
      '2026-01-01T10:00:00+0530': '2026-01-01T04:30:00.000Z',
      '2026-01-01T10:00:00-03': '2026-01-01T13:00:00.000Z',
      '2016-12-31T23:59:60Z': '2016-12-31T23:59:59.999Z',
      '0001-01-01T00:00:00Z': '0001-01-01T00:00:00.000Z',
    }
    for (const [timestamp, read] of Object.entries(readings)) {
      assert.equal((await record(anEvent('ada', { timestamp }))).payload.timestamp, read)
    }
  })

  test('takes a timestamp far ahead for the time of receipt', async () => {
    const near = new Date(Date.now() + 22 * 3600_000).toISOString()
    assert.equal((await record(anEvent('ada', { timestamp: near }))).payload.timestamp, near)
    for (const timestamp of [new Date(Date.now() + 24 * 3600_000).toISOString(), '9999-12-31T23:59:59Z']) {
      const { payload } = await record(anEvent('ada', { timestamp }))
      assert.ok(Math.abs(Date.parse(payload.timestamp) - Date.now()) < 5000)
    }
  })

  test('puts a replacement where text cannot be stored', async () => {
    const properties = '{"a\\u0000":"b\\ud800","ok":"\\ud83d\\ude00"}'
    const event = JSON.stringify({ apiKey: app.key, ...anEvent('ada') }).replace(/}$/, `,"properties":${properties}}`)
    const { body } = await app.post('/event', event)
    assert.deepEqual(body.payload.properties, { 'a\ufffd': 'b\ufffd', ok: '😀' })
  })

  test('may be compressed with gzip', async () => {
    for (const encoding of ['gzip', 'GZIP', 'x-gzip']) {
      const answer = await app.postGzip('/event', anEvent('ada'), { 'content-encoding': encoding })
      assert.equal(answer.status, 200)
      assert.equal((await inLog(answer.body.eventId)).length, 1)
    }
    assert.equal((await app.post('/event', anEvent('ada'), { 'content-encoding': 'identity' })).status, 200)
  })

  test('a retry gets the same kind of answer, and each is in the log', async () => {
    const event = anEvent('ada')
    const first = await record(event)
    assert.equal((await record(event)).eventId, first.eventId)
    assert.equal((await inLog(first.eventId)).length, 2)
  })
})

test('POST /event, 410: the customer was deleted, and nothing is stored', async () => {
  await project.customer('gone')
  await project.tombstone('gone')
  const event = anEvent('gone')
  assertRefused(await app.post('/event', event), 410, 'customer_deleted')
  assert.deepEqual(await inLog(String(event.uuid)), [])
  assert.equal((await record(anEvent('gone '))).status, 'ok')
})

test('POST /event: what is refused is nowhere', async () => {
  const uuid = randomUUID()
  await app.post('/event', anEvent('ada', { uuid, value: 'x' }))
  assert.deepEqual(await inLog(uuid), [])
})

describe('POST /event, 413', () => {
  test('a body of more than 1 MiB and 64 KiB, as it was sent or inflated', async () => {
    const padded = (bytes: number) => JSON.stringify({ apiKey: app.key, ...anEvent('ada') }).padEnd(bytes)
    assert.equal((await app.post('/event', padded(eventBodyBytesMax))).status, 200)
    assert.equal((await app.postGzip('/event', padded(eventBodyBytesMax))).status, 200)
    assertRefused(await app.post('/event', padded(eventBodyBytesMax + 1)), 413, 'payload_too_large')
    assertRefused(await app.postGzip('/event', padded(eventBodyBytesMax + 1)), 413, 'payload_too_large')
  })

  test('an event of more than 1 MiB', async () => {
    const ofText = (bytes: number) => app.post('/event', anEvent('ada', { properties: { text: 'x'.repeat(bytes) } }))
    assert.equal((await ofText(eventBytesMax - 1000)).status, 200)
    const answer = await ofText(eventBytesMax)
    assertRefused(answer, 413, 'payload_too_large')
    assert.match(answer.body.message, /^event_too_large: /)
  })
})

test('POST /event, 400: an encoding other than gzip, and gzip that is not whole', async () => {
  const whole = gzipSync(JSON.stringify({ apiKey: app.key, ...anEvent('ada') }))
  for (const [bytes, encoding] of [
    [whole, 'br'],
    [whole, 'deflate'],
    [whole, 'gzip, gzip'],
    [whole.subarray(0, -1), 'gzip'],
    [Buffer.concat([whole, whole]), 'gzip'],
    [Buffer.from('{}'), 'gzip'],
  ] as const) {
    assertRefused(await app.post('/event', bytes, { 'content-encoding': encoding }), 400, 'unsupported_encoding')
  }
})

describe('GET /event', () => {
  const ask = (query: string) => send(service.url, 'GET', `/event${query}`, undefined)

  test('tries the key and records nothing', async () => {
    const before = await service.pool.query('select from event_log')
    const { status, body } = await ask(`?apiKey=${app.key}&event=opened&distinct_id=ada&uuid=${randomUUID()}`)
    assert.equal(status, 200)
    assert.deepEqual(body, { status: 'ok', message: 'Event GET endpoint (test only)' })
    assert.equal((await service.pool.query('select from event_log')).length, before.length)
  })

  test('refuses no key, an unknown one and one of another kind', async () => {
    for (const query of [
      '',
      '?apiKey=',
      '?apiKey=pk_test_nobody',
      `?apiKey=${app.key}&apiKey=${app.key}`,
      `?ApiKey=${app.key}`,
    ]) {
      assertRefused(await ask(query), 401, 'invalid_api_key')
    }
    assertRefused(await ask(`?apiKey=${service.secretKey}`), 401, 'key_kind_invalid')
  })
})
