import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { startService } from '../harness/service.ts'

test('what a backend posts is applied, listed, counted, named and exported', async () => {
  await using service = await startService({ DEMO: '1' })
  const { workspace: call, url, secretKey } = service
  const timestamp = '2026-03-28T12:00:00.000Z'
  const events = ['a', 'b', 'a'].map((plan) => ({
    ...{ event: 'invoice_paid', distinct_id: 'ada', uuid: randomUUID(), timestamp, properties: { plan } },
  }))
  assert.equal((await call('POST', '/events', { body: { events } })).body.accepted, 3)
  let found = await call('GET', `/events/${events[2]?.uuid}`)
  while (found.status === 404) found = await call('GET', `/events/${events[2]?.uuid}`)
  assert.deepEqual([found.body.trust, found.body.timestamp], ['server', timestamp])
  const last: number = found.body.position
  const listed = await call('GET', `/customers/${found.body.customer_id}/events`)
  assert.deepEqual(
    listed.body.data.map(({ id }: { id: string }) => id),
    events.map(({ uuid }) => uuid).toReversed(),
  )

  const { body } = await call('POST', '/event_queries', {
    body: {
      ...{ type: 'trend', interval: 'day', series: [{ event: 'invoice_paid' }] },
      time_range: { start: '2026-03-28T00:00:00Z', end: '2026-03-29T00:00:00Z' },
    },
  })
  assert.deepEqual([body.series[0].groups[0].total, body.meta.engine], [3, 'rollup'])
  const names = (await call('GET', '/event_names')).body.data.map(({ name }: { name: string }) => name)
  assert.ok(names.includes('invoice_paid'))
  const properties = await call('GET', '/event_properties?event=invoice_paid')
  assert.deepEqual([properties.body.data[0].name, properties.body.data[0].types], ['plan', ['string']])
  const values = await call('GET', '/event_property_values?event=invoice_paid&property=plan&prefix=a')
  assert.deepEqual([values.body.data[0].value, values.body.data[0].count, values.body.data.length], ['a', 2, 1])

  let made = await call('POST', '/event_exports', { body: { format: 'jsonl.gz', from_position: last - 2 } })
  while (made.body.status !== 'completed') made = await call('GET', `/event_exports/${made.body.id}`)
  const [file] = made.body.files
  const headers = { authorization: `Bearer ${secretKey}`, 'x-service-env': 'test' }
  const answer = await fetch(`${url}${file.url}`, { headers })
  assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'application/gzip'])
  const lines = gunzipSync(await answer.arrayBuffer())
    .toString()
    .trim()
    .split('\n')
  const newest = await call('GET', `/events?sort=position&limit=1000`)
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    newest.body.data.filter(({ position }: { position: number }) => position > last - 2),
  )
})
