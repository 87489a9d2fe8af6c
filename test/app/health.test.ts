import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { version } from '../../src/version.ts'
import { startService } from '../harness/service.ts'
import type { Answer, Body } from './answers.ts'
import { assertRefused, fetchBytes, type Headers, send } from './project.ts'

const service = await startService({ METRICS_TOKEN: 'a-secret-token' })
after(() => service[Symbol.asyncDispose]())

test('GET /health, 200: says that it lives, to anybody', async () => {
  const { status, body } = await send(service.url, 'GET', '/health', undefined)
  assert.equal(status, 200)
  assert.deepEqual(body, { status: 'ok', version })
})

describe('GET /ready', () => {
  const ready = () => send(service.url, 'GET', '/ready', undefined)

  test('200: every check is well', async () => {
    const { status, body } = await ready()
    assert.deepEqual([status, body.status], [200, 'ready'])
    assert.deepEqual(
      body.checks.map(({ name, ok }: Body) => [name, ok]),
      [
        ['database', true],
        ['migrations', true],
        ['processing_lag', true],
        ['lanes', true],
      ],
    )
  })

  test('503: a migration is missing', async () => {
    const renumber = (from: number, to: number) =>
      service.pool.query('update schema_migration set number = $2 where number = $1', [from, to])
    await renumber(1, -1)
    const answer = await ready()
    await renumber(-1, 1)
    assert.deepEqual([answer.status, answer.body.status], [503, 'unready'])
    const failed = answer.body.checks.filter(({ ok }: Body) => !ok)
    assert.deepEqual(failed, [{ name: 'migrations', ok: false, detail: 'pending: 0001-tenancy.sql' }])
    assert.equal((await ready()).status, 200)
  })
})

describe('GET /metrics', () => {
  const metrics = (headers: Headers = {}): Promise<Answer> =>
    fetchBytes(service.url, 'GET', '/metrics', undefined, headers)
  const passedOn = { 'x-forwarded-for': '203.0.113.7' }
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

  test('200: tells this machine what was answered and how far the worker is', async () => {
    await send(service.url, 'GET', '/health', undefined)
    await fetchBytes(service.url, 'GET', '/nothing/here')
    const { status, bytes, headers } = await metrics()
    assert.equal(status, 200)
    assert.match(headers.get('content-type') ?? '', /^text\/plain; version=/)
    const text = bytes.toString()
    assert.match(text, /^turnpike_requests_total\{route="\/health",status="200"\} [1-9]/m)
    assert.match(text, /^turnpike_requests_total\{route="none",status="404"\} [1-9]/m)
    assert.match(text, /^turnpike_request_seconds_total\{route="\/health",status="200"\} 0?\.?\d/m)
    assert.match(text, /^turnpike_lane_lag_seconds 0$/m)
    assert.match(text, /^turnpike_lane_waiting_events 0$/m)
    assert.match(text, /^process_cpu_seconds_total /m)
    for (const name of ['historical_waiting_events', 'lanes_stopped', 'dead_events', 'append_waiting_events'])
      assert.match(text, new RegExp(`^turnpike_${name} 0$`, 'm'))
    assert.match(text, /^turnpike_xmin_hold_seconds\{holder="[^"]*"\} \d/m)
    assert.match(text, /^turnpike_partition_bytes\{table="event_log"\} [1-9]/m)
    assert.doesNotMatch(text, /nothing\/here/)
  })

  test('200: the token opens it to whom a proxy passes on', async () => {
    assert.equal((await metrics({ ...passedOn, ...bearer('a-secret-token') })).status, 200)
    assert.equal((await metrics({ ...passedOn, authorization: 'bearer  a-secret-token' })).status, 200)
  })

  test('401: whom a proxy passes on without it, or with another one', async () => {
    const tokens = ['x', 'a-secret-tokem', 'a-secret-toke', 'é'.repeat(14), 'é'.repeat(7), service.secretKey]
    for (const headers of [
      passedOn,
      { forwarded: 'for=203.0.113.7' },
      { 'x-forwarded-for': '127.0.0.1' },
      { ...passedOn, authorization: 'a-secret-token' },
      { ...passedOn, authorization: 'Basic a-secret-token' },
      ...tokens.map((token) => ({ ...passedOn, ...bearer(token) })),
    ]) {
      assertRefused(await metrics(headers), 401, 'invalid_api_key')
    }
  })
})
