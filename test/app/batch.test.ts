import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { batchItemsMax, eventBytesMax } from '../../src/kernel/limits.ts'
import fc from '../harness/random.ts'
import { startService } from '../harness/service.ts'
import type { Body } from './answers.ts'
import { anEvent, assertRefused, openProject } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()
const scopeId = await project.scopeId()
await project.tombstone('gone')

const bodyOf = (items: unknown, more: object = {}) => JSON.stringify({ apiKey: app.key, batch: items, ...more })

/** Sends items that are to be taken as a batch, and checks the sums that clients check. */
async function record(items: unknown[], more: object = {}): Promise<Body> {
  const { status, body } = await app.postGzip('/batch', bodyOf(items, more))
  assert.equal(status, 200, JSON.stringify(body))
  assertSums(body, items)
  return body
}

function assertSums(body: Body, items: unknown[]): void {
  const { status, total, accepted, processed, failed, queued, validationFailed, rejectedFailed, eventIds, errors } =
    body
  const said = JSON.stringify(body).slice(0, 1000)
  for (const count of [total, accepted, processed, failed, validationFailed, rejectedFailed]) {
    assert.ok(Number.isInteger(count) && count >= 0, said)
  }
  assert.equal(total, items.length, said)
  assert.equal(processed, accepted, said)
  assert.equal(failed, total - processed, said)
  assert.equal(failed, validationFailed + rejectedFailed, said)
  assert.equal('enqueueFailed' in body, false, said)
  assert.equal(status, failed === 0 ? 'success' : accepted === 0 ? 'error' : 'partial', said)
  assert.equal(queued, accepted > 0, said)
  assert.equal(eventIds?.length, accepted === 0 ? undefined : accepted, said)
  assert.equal(errors?.length, failed === 0 ? undefined : failed, said)
  const failedAt: number[] = (errors ?? []).map((error: Body) => error.index)
  assert.deepEqual(
    failedAt,
    [...new Set(failedAt)].toSorted((a, b) => a - b),
    said,
  )
  assert.ok(
    failedAt.every((index) => Number.isInteger(index) && index >= 0 && index < total),
    said,
  )
  const taken = items.filter((_, index) => !failedAt.includes(index)) as { uuid?: string; idempotency_key?: string }[]
  assert.deepEqual(
    eventIds ?? [],
    taken.map(({ uuid, idempotency_key }) => (uuid ?? idempotency_key)?.toLowerCase()),
  )
}

/** What the log holds of these ids, as many times as it does. */
async function logged(uuids: string[]): Promise<string[]> {
  const rows = await service.pool.query<{ uuid: string }>(
    'select uuid::text from event_log where lane = $1 and uuid = any($2::uuid[])',
    [scopeId, uuids],
  )
  return rows.map(({ uuid }) => uuid)
}

describe('POST /batch, 200', () => {
  test('takes 1 item, and takes 1,000', async () => {
    for (const count of [1, batchItemsMax]) {
      const items = Array.from({ length: count }, () => anEvent('ada'))
      const { status, eventIds } = await record(items)
      assert.equal(status, 'success')
      assert.deepEqual(new Set(await logged(eventIds)), new Set(eventIds))
    }
  })

  test('a batch of bad items only is an error, and nothing is stored', async () => {
    const before = await service.pool.query('select from event_log')
    const body = await record([{}, null, 'event', anEvent('null')])
    assert.deepEqual([body.status, body.accepted, body.validationFailed, body.queued], ['error', 0, 4, false])
    assert.equal((await service.pool.query('select from event_log')).length, before.length)
  })

  test('good items stay although others fail', async () => {
    const good = [anEvent('ada'), anEvent('bob')]
    const body = await record([good[0], { event: 'opened' }, good[1]])
    assert.equal(body.status, 'partial')
    assert.deepEqual(body.errors, [
      { index: 1, event: 'opened', error: 'distinct_id_required: distinct_id must be a text that is not blank' },
    ])
    assert.equal((await logged(body.eventIds)).length, 2)
  })

  test('names an item whose event is no text unknown, and any other by its name', async () => {
    const names = [undefined, null, 7, {}, 'paid', '$app_opened', '', 'a\ud800']
    const items = names.map((event) => ({ ...anEvent('ada'), event, uuid: 'no' }))
    const { errors } = await record([...items, 'text'])
    const shown = ['unknown', 'unknown', 'unknown', 'unknown', 'paid', '$app_opened', '', 'a\ufffd', 'unknown']
    assert.deepEqual(
      errors.map(({ event }: Body) => event),
      shown,
    )
  })

  test('is answered in a few bytes for names that are far too long', async () => {
    const { errors } = await record([{ ...anEvent('ada'), event: 'x'.repeat(5_000_000) }])
    assert.match(errors[0].error, /^event_/)
    assert.ok(JSON.stringify(errors).length < 1000)
  })

  test('tells of an item one reason, the first in the order of the fields', async () => {
    const fields = [
      ['event', ' ', () => 'opened', 'event_required'],
      ['distinct_id', 'guest', () => 'ada', 'distinct_id_reserved'],
      ['uuid', 'x', randomUUID, 'uuid_invalid'],
      ['timestamp', 'x', () => '2026-01-01', 'timestamp_invalid'],
      ['properties', 7, () => ({}), 'properties_invalid'],
      ['value', 'x', () => 1, 'value_invalid'],
      ['entityId', ' ', () => 'seat', 'entity_id_invalid'],
      ['$anon_distinct_id', 7, () => 'x', 'anon_distinct_id_invalid'],
    ] as const
    const mendedUpTo = (n: number) =>
      Object.fromEntries(fields.map(([name, bad, good], i) => [name, i < n ? good() : bad]))
    const { errors } = await record(fields.map((_, n) => mendedUpTo(n)))
    assert.deepEqual(
      errors.map(({ error }: Body) => error.split(':')[0]),
      fields.map(([, , , code]) => code),
    )
  })

  test('an item of a deleted customer fails alone', async () => {
    const body = await record([anEvent('gone'), anEvent('ada'), anEvent('gone')])
    assert.deepEqual([body.rejectedFailed, body.validationFailed], [2, 0])
    assert.deepEqual(body.errors[1], {
      index: 2,
      event: 'opened',
      error: 'customer_deleted: the customer of this distinct_id was deleted',
    })
  })

  test('merge verbs are sent to the endpoint that takes them', async () => {
    const items = ['$create_alias', '$merge_dangerously'].map((event) => ({ ...anEvent('ada'), event }))
    const body = await record(items)
    assert.deepEqual([body.rejectedFailed, body.validationFailed], [2, 0])
    for (const [index, error] of body.errors.entries()) {
      assert.deepEqual(error, {
        index,
        event: items[index]?.event,
        error: 'endpoint_required: this event is taken by another endpoint only',
        lane: 'identity',
        endpoint: 'POST /v1/customers/{id}/merge',
      })
    }
  })

  test('the same id twice is accepted and listed twice, in lower case, whichever name it has', async () => {
    const uuid = randomUUID()
    const again = { ...anEvent('ada'), uuid: undefined, idempotency_key: uuid.toUpperCase() }
    const body = await record([anEvent('ada', { uuid }), again])
    assert.deepEqual(body.eventIds, [uuid, uuid])
  })

  test('unknown fields are ignored, of the batch and of an item, its own key among them', async () => {
    const item = { ...anEvent('ada'), apiKey: 'pk_test_nobody', sent_at: 'now', $lib: {} }
    assert.equal((await record([item], { sent_at: 'now', api_key: 'x' })).status, 'success')
  })

  test('an item of more than 1 MiB fails alone', async () => {
    const item = anEvent('ada', { properties: { text: 'x'.repeat(eventBytesMax) } })
    const body = await record([anEvent('ada'), item, anEvent('ada')])
    assert.equal(body.validationFailed, 1)
    assert.match(body.errors[0].error, /^event_too_large: /)
  })

  test('historical_migration stores by time and answers in the submitted order', async () => {
    const days = ['2020-01-03', '2020-01-01', '2020-01-02', '2020-01-01']
    const items = [...days.map((timestamp) => anEvent('ada', { timestamp })), { event: 'bad' }, anEvent('ada')]
    const body = await record(items, { historical_migration: true })
    assert.deepEqual(
      body.errors.map(({ index }: Body) => index),
      [4],
    )
    const rows = await service.pool.query<{ uuid: string; stream: number }>(
      'select uuid::text, stream from event_log where lane = $1 and uuid = any($2::uuid[]) order by seq',
      [scopeId, body.eventIds],
    )
    const [a, b, c, d, e] = body.eventIds
    assert.deepEqual(
      rows.map(({ uuid }) => uuid),
      [b, d, c, a, e],
    )
    assert.deepEqual(new Set(rows.map(({ stream }) => stream)), new Set([1]))
  })

  test('a batch sent again, whole or in part, is accepted again', async () => {
    const items = [anEvent('ada'), anEvent('ada')]
    const { eventIds } = await record(items)
    assert.deepEqual((await record(items)).eventIds, eventIds)
    assert.deepEqual((await record(items.slice(1))).eventIds, eventIds.slice(1))
  })

  test('whatever the mix, the sums are right and exactly the accepted events are stored', async () => {
    const item = fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom('ada', 'bob').map((id) => anEvent(id)) },
      fc.constant(null).map(() => anEvent('gone')),
      fc.constantFrom('$create_alias', '$merge_dangerously').map((event) => ({ ...anEvent('ada'), event })),
      fc.constantFrom('', ' Guest ', 'x'.repeat(257), '\ud800', 'a\0').map((id) => anEvent(id)),
      fc.constantFrom<unknown>(null, 7, 'event', [], {}, { event: 'opened' }, true),
      fc
        .constantFrom({ timestamp: '2026-02-30' }, { value: '1' }, { properties: [] })
        .map((wrong) => anEvent('ada', wrong)),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(item, { minLength: 1, maxLength: 40 }), fc.boolean(), async (items, historical) => {
        const body = await record(items, historical ? { historical_migration: true } : {})
        const sent = items.flatMap((each) => (each as { uuid?: string } | null)?.uuid ?? [])
        assert.deepEqual((await logged(sent)).toSorted(), ((body.eventIds ?? []) as string[]).toSorted())
      }),
      { numRuns: 60 },
    )
  })
})

describe('POST /batch, 400', () => {
  test('0 items and 1,001 items', async () => {
    for (const count of [0, batchItemsMax + 1]) {
      const items = Array.from({ length: count }, () => anEvent('ada'))
      assertRefused(await app.postGzip('/batch', bodyOf(items)), 400, 'invalid_request', 'batch')
    }
  })

  test('a batch that is no array', async () => {
    for (const batch of [undefined, null, {}, { length: 1, 0: {} }, 'batch', 7, true]) {
      assertRefused(await app.postGzip('/batch', bodyOf(batch)), 400, 'invalid_request', 'batch')
    }
  })

  test('historical_migration that is no boolean', async () => {
    for (const historical_migration of ['true', 1, 0, {}, []]) {
      const body = bodyOf([anEvent('ada')], { historical_migration })
      assertRefused(await app.postGzip('/batch', body), 400, 'invalid_request', 'historical_migration')
    }
    for (const historical_migration of [true, false, null]) await record([anEvent('ada')], { historical_migration })
  })
})
