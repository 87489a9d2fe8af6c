import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../test/harness/random.ts'
import { batchReply, eventNameOf, type ItemOutcome } from './batch-reply.ts'

const accepted = (uuid: string): ItemOutcome => ({ kind: 'accepted', uuid })
const invalid: ItemOutcome = { kind: 'invalid', event: 'e', error: 'event_required: …' }
const misdirected: ItemOutcome = {
  ...{ kind: 'misdirected', event: '$create_alias', error: 'endpoint_required: …' },
  ...{ lane: 'identity', endpoint: 'POST /v1/customers/{id}/merge' },
}

test('a batch that is taken whole is a success without errors', () => {
  assert.deepEqual(batchReply([accepted('a'), accepted('b')]), {
    ...{ status: 'success', accepted: 2, processed: 2, failed: 0, total: 2, queued: true },
    ...{ validationFailed: 0, rejectedFailed: 0, eventIds: ['a', 'b'] },
  })
})

test('a batch of invalid items is an error without event ids', () => {
  assert.deepEqual(batchReply([invalid]), {
    ...{ status: 'error', accepted: 0, processed: 0, failed: 1, total: 1, queued: false },
    ...{ validationFailed: 1, rejectedFailed: 0, errors: [{ index: 0, event: 'e', error: 'event_required: …' }] },
  })
})

test('a mixed batch is partial and names lane and endpoint where they help', () => {
  const reply = batchReply([misdirected, accepted('a'), { kind: 'deleted', event: 'e', error: 'customer_deleted: …' }])
  assert.deepEqual(reply, {
    ...{ status: 'partial', accepted: 1, processed: 1, failed: 2, total: 3, queued: true },
    ...{ validationFailed: 0, rejectedFailed: 2, eventIds: ['a'] },
    errors: [
      ...[{ index: 0, event: '$create_alias', error: 'endpoint_required: …', lane: 'identity' }].map((error) => ({
        ...error,
        endpoint: 'POST /v1/customers/{id}/merge',
      })),
      { index: 2, event: 'e', error: 'customer_deleted: …' },
    ],
  })
})

test('the same uuid twice is accepted twice and listed twice', () => {
  assert.deepEqual(batchReply([accepted('a'), accepted('a')]).eventIds, ['a', 'a'])
})

test('every sum holds for any mix of outcomes', () => {
  const kind = fc.constantFrom('accepted', 'invalid', 'misdirected', 'deleted', 'not_queued')
  fc.assert(
    fc.property(fc.array(kind, { minLength: 1, maxLength: 50 }), (kinds) => {
      const reply = batchReply(
        kinds.map((each): ItemOutcome => {
          if (each === 'accepted') return accepted('a')
          return each === 'misdirected' ? misdirected : { kind: each, event: 'e', error: 'x' }
        }),
      )
      const of = (each: string) => kinds.filter((one) => one === each).length
      assert.equal(reply.total, kinds.length)
      assert.equal(reply.accepted, of('accepted'))
      assert.equal(reply.processed, reply.accepted)
      assert.equal(reply.failed, reply.total - reply.processed)
      assert.equal(reply.failed, reply.validationFailed + reply.rejectedFailed)
      assert.equal(reply.rejectedFailed, of('misdirected') + of('deleted') + of('not_queued'))
      assert.equal(reply.enqueueFailed, of('not_queued') || undefined)
      assert.equal(reply.queued, reply.accepted > 0)
      assert.equal(reply.status, reply.failed === 0 ? 'success' : reply.accepted === 0 ? 'error' : 'partial')
      assert.equal(reply.eventIds?.length ?? 0, reply.accepted)
      assert.equal('eventIds' in reply, reply.accepted > 0)
      assert.equal('errors' in reply, reply.failed > 0)
      assert.deepEqual(
        reply.errors?.map(({ index }) => index) ?? [],
        kinds.flatMap((each, index) => (each === 'accepted' ? [] : [index])),
      )
    }),
    { numRuns: 200 },
  )
})

test('an item is named as it was sent, or unknown when its name is no text', () => {
  assert.equal(eventNameOf({ event: '  odd ' }), '  odd ')
  assert.equal(eventNameOf({ event: '' }), '')
  for (const item of [{ event: 5 }, { event: null }, {}, null, 'text', []]) assert.equal(eventNameOf(item), 'unknown')
})

test('a name with lone surrogates becomes text that every JSON reader takes', () => {
  assert.equal(eventNameOf({ event: 'a\ud800' }), 'a\ufffd')
})

test('the longest name is shown whole, and what is longer than any name is not sent back', () => {
  const longest = '\u{1f600}'.repeat(200)
  assert.equal(eventNameOf({ event: longest }), longest)
  assert.equal(eventNameOf({ event: `a${longest}b` }), `a${'\u{1f600}'.repeat(199)}\ufffd`)
  assert.equal(eventNameOf({ event: 'x'.repeat(10_000_000) }).length, 400)
})
