import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startService } from '../harness/service.ts'
import type { Body } from './answers.ts'
import { openProject } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

test('GET /v1/event_warnings, 200: what was odd about events is counted under its code, with the events', async () => {
  const project = await openProject(service)
  const app = await project.app()
  const uuid = randomUUID()
  const event = (fields: Record<string, unknown>) => ({ event: 'e', distinct_id: 'u1', uuid: randomUUID(), ...fields })
  const odd: [string, Record<string, unknown>][] = [
    ['timestamp_clamped', event({ timestamp: '2990-01-01T00:00:00Z' })],
    ['text_replaced', event({ properties: { a: '\0' } })],
    ['merge_refused', event({ event: '$identify', $anon_distinct_id: 'u1' })],
    ['anon_id_ignored', event({ $anon_distinct_id: 'a1' })],
    ['increment_invalid', event({ $increment: { n: 'one' } })],
    ['increment_not_number', event({ $set: { text: 'x' }, $increment: { text: 1 } })],
    ['increment_out_of_range', event({ $set: { most: Number.MAX_SAFE_INTEGER }, $increment: { most: 1 } })],
    ['unset_entry_ignored', event({ $unset: [5] })],
    ['property_key_too_long', event({ $set: { ['k'.repeat(201)]: 1 } })],
    ['customer_properties_full', event({ $set: { large: 'x'.repeat(513 * 1024) } })],
    ['unrecognised_system_event', event({ event: '$no_such_event' })],
    ['journey_origin_ignored', event({ journeyOrigin: 'j' })],
    ['duplicate_body_differs', event({ uuid, value: 2 })],
  ]
  await app.post('/event', event({ uuid, value: 1 }))
  for (const [code, body] of odd) assert.equal((await app.post('/event', body)).status, 200, code)

  const list = async (query = ''): Promise<Body[]> =>
    (await project.get(`/event_warnings?project_id=${project.id}${query}`)).data
  let found: Body[] = []
  for (const until = Date.now() + 10_000; found.length < odd.length && Date.now() < until; await sleep(10))
    found = await list()
  assert.deepEqual(
    found.map(({ code, count }) => [code, count]),
    odd
      .map(([code]) => code)
      .toSorted()
      .map((code) => [code, 1]),
  )
  for (const [code, body] of odd) {
    const warning = found.find((each) => each.code === code)
    const [sample] = warning.samples
    assert.deepEqual([sample.uuid, sample.event, sample.distinct_id], [body.uuid, body.event, 'u1'], code)
    assert.match(sample.seen_at, /Z$/)
  }
  assert.equal(found.find(({ code }) => code === 'merge_refused').samples[0].detail, 'same_id')

  assert.deepEqual(
    (await list('&code=text_replaced')).map(({ code }) => code),
    ['text_replaced'],
  )
  assert.deepEqual(await list('&code=nothing'), [])
  const now = Date.now()
  assert.equal((await list(`&start=${new Date(now - 3600_000).toISOString()}`)).length, odd.length)
  assert.deepEqual(await list(`&end=${new Date(now - 2 * 3600_000).toISOString()}`), [])
})

test('GET /v1/event_warnings, 400: what is no instant', async () => {
  for (const query of ['start=yesterday', 'end=2026-02-30T00:00:00Z', 'start=1960-01-01T00:00:00Z', 'codes=a']) {
    assert.equal((await service.workspace('GET', `/event_warnings?${query}`)).status, 400, query)
  }
})
