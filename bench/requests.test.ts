import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { isUuid } from '../src/kernel/ids.ts'
import { customerOf, distinctIdOf, idPrefix } from './ids.ts'
import { requestSource } from './requests.ts'

const prefix = idPrefix(1_764_000_000_000, 7)

test('every request of a round has its own valid id and the customer that the check expects', async () => {
  const spec = {
    kind: 'consume',
    apiKey: 'pk',
    featureId: 'f',
    idPrefix: prefix,
    customers: 100,
    firstCustomer: 5,
  } as const
  const source = await requestSource(spec, 2, [])
  const ids = new Set<string>()
  for (let n = 0; n < 500; n++) {
    const { bytes, needle } = source(n, n % 2)
    const [head = '', body = ''] = bytes.toString().split('\r\n\r\n')
    const sent = JSON.parse(body) as { operationId: string; customerId: string }
    assert.match(head, new RegExp(`content-length: ${body.length}$`, 'im'))
    assert.equal(sent.customerId, distinctIdOf(5 + customerOf(n, 100)))
    assert.equal(sent.operationId, `${prefix}${n.toString(16).padStart(12, '0')}`)
    assert.equal(needle.toString(), sent.operationId)
    assert.ok(isUuid(sent.operationId))
    ids.add(sent.operationId)
  }
  assert.equal(ids.size, 500)
})

test('a batch holds a thousand events with ids that follow on from the batch before', async () => {
  const spec = { kind: 'batch', apiKey: 'pk', idPrefix: prefix, customers: 10, bodies: 2, again: false } as const
  const { bytes } = (await requestSource(spec, 1, []))(1, 0)
  const body = gunzipSync(bytes.subarray(bytes.indexOf('\r\n\r\n') + 4)).toString()
  const { batch } = JSON.parse(body) as { batch: { uuid: string }[] }
  assert.equal(batch.length, 1000)
  assert.equal(batch[0]?.uuid, `${prefix}${(1000).toString(16).padStart(12, '0')}`)
})
