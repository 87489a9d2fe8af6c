import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { Sample } from '../conformance/samples/publish.ts'
import { judge } from './journal.ts'
import { flush, type Item, type Reply } from './outbox.ts'

const itemsOf = (count: number): Item[] =>
  Array.from({ length: count }, (_, index) => {
    return { event: `e${index}`, distinct_id: 'ada', timestamp: '', idempotency_key: String(index), properties: {} }
  })
const reply = (status: number, body: Sample): Reply => ({
  status,
  headers: new Headers(),
  bytes: Buffer.from(JSON.stringify(body)),
})

/** Sends once; `answer` gets the names that came in one call. */
async function sent(count: number, answer: (names: string[]) => Reply): Promise<{ calls: number[]; left: string[] }> {
  const calls: number[] = []
  const left = await flush(itemsOf(count), 'pk', async (_path, body) => {
    const { batch } = JSON.parse(gunzipSync(body as Uint8Array).toString())
    calls.push(batch.length)
    return answer(batch.map(({ event }: Item) => event))
  })
  return { calls, left: left.map(({ event }) => event) }
}
const good = (names: string[]) => ({
  status: 'ok',
  total: names.length,
  processed: names.length,
  failed: 0,
  errors: null,
})

describe('events that wait', () => {
  test('leave fifty at a time, oldest first', async () => {
    const { calls, left } = await sent(51, (names) => reply(200, good(names)))
    assert.deepEqual([calls, left], [[50], ['e50']])
  })

  test('stay at the head when they are refused one by one', async () => {
    const errors = [{ index: 1, event: 'e1', error: 'no' }]
    const { left } = await sent(3, () => reply(200, { status: 'partial', total: 3, processed: 2, failed: 1, errors }))
    assert.deepEqual(left, ['e1'])
  })

  test('all stay when the answer does not add up, or is none', async () => {
    const wrong: Sample[] = [
      { status: 1, total: 2, processed: 2, failed: 0 },
      { status: 'ok', total: 3, processed: 3, failed: 0 },
      { status: 'ok', total: 2, processed: 1, failed: 0 },
      { status: 'ok', total: 2, processed: 1, failed: 1 },
      { status: 'ok', total: 2, processed: 1, failed: 1, errors: [{ index: 2, event: '', error: '' }] },
      { status: 'ok', total: 2, processed: 0, failed: 2, errors: Array(2).fill({ index: 0, event: '', error: '' }) },
      { status: 'ok', total: 2, processed: 1, failed: 1, errors: [{ index: 0, event: null, error: '' }] },
    ]
    for (const body of wrong) assert.equal((await sent(2, () => reply(200, body))).left.length, 2, JSON.stringify(body))
    for (const status of [401, 404, 429, 500]) assert.equal((await sent(2, () => reply(status, {}))).left.length, 2)
    const cut = await flush(itemsOf(2), 'pk', () => Promise.reject(new Error('cut')))
    assert.equal(cut.length, 2)
  })

  test('are halved when the body is refused as a whole, and a single one is dropped', async () => {
    const answer = (names: string[]) => (names.includes('e0') ? reply(413, {}) : reply(200, good(names)))
    assert.deepEqual(await sent(4, answer), { calls: [4, 2, 1], left: ['e1', 'e2', 'e3'] })
  })
})

describe('a use that waits', () => {
  const command = { operationId: 'op', customerId: 'ada', featureId: 'exports', quantity: 2 }
  const kindOf = (status: number, body: Sample) => judge(command, reply(status, body)).kind

  test('is decided by an answer to itself only', () => {
    assert.equal(kindOf(200, { ...command, quantity: 2.0, accepted: false }), 'decided')
    for (const key of Object.keys(command))
      assert.equal(kindOf(200, { ...command, accepted: true, [key]: 'other' }), 'kept')
    assert.equal(kindOf(200, { ...command, accepted: 'yes' }), 'kept')
  })

  test('is dropped where trying again can’t help, and kept otherwise', () => {
    for (const status of [400, 401, 403, 404, 410, 413, 422]) assert.equal(kindOf(status, {}), 'dropped')
    for (const status of [402, 409, 429, 500, 503]) assert.equal(kindOf(status, {}), 'kept')
    assert.equal(kindOf(409, { code: 'operation_conflict' }), 'dropped')
    assert.equal(kindOf(409, { error: { code: 'operation_conflict' } }), 'kept')
  })
})
