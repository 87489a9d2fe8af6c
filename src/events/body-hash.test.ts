import assert from 'node:assert/strict'
import test from 'node:test'
import { bodyHash } from './body-hash.ts'
import { normalise } from './normalise.ts'

const received = [Date.parse('2026-11-20T12:00:00.000Z'), Date.parse('2026-11-20T12:30:00.000Z')] as const
const least = { event: 'e', distinct_id: 'u"timestamp":"', uuid: '0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b' }

function hashOf(fields: Record<string, unknown>, receivedAt: number): bigint {
  const judged = normalise({ ...least, ...fields }, { receivedAt, trust: 'device' })
  assert.equal(judged.kind, 'event')
  return bodyHash(judged.event.text, JSON.parse(judged.event.text), receivedAt)
}

const bodies: Record<string, unknown>[] = [
  {},
  { timestamp: '2026-11-19' },
  { timestamp: '9999-01-01' },
  { properties: { timestamp: '2026-11-20T12:00:00.000Z' } },
  { properties: { a: '\0' }, journeyOrigin: 5 },
  { value: 1 },
  { $set: { a: 1 } },
]
for (const body of bodies) {
  test(`the same body sent again later is the same: ${JSON.stringify(body)}`, () => {
    assert.equal(hashOf(body, received[0]), hashOf(body, received[1]))
    assert.equal(hashOf({ ...body, uuid: least.uuid.toUpperCase() }, received[0]), hashOf(body, received[0]))
  })
}

test('another body is another', () => {
  const others = [
    ...bodies,
    { value: 2 },
    { timestamp: '2026-11-18' },
    { event: 'f' },
    { properties: { a: 1 } },
    { entityId: 'e' },
  ]
  // A clamped timestamp is that of the receipt, so it counts as none.
  const distinct = others.filter(({ timestamp }) => timestamp !== '9999-01-01')
  assert.equal(new Set(distinct.map((body) => hashOf(body, received[0]))).size, distinct.length)
})
