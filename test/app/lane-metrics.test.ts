import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startService } from '../harness/service.ts'
import { fetchBytes, openProject } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

const scrape = async () => (await fetchBytes(service.url, 'GET', '/metrics')).bytes.toString()
const figureOf = (text: string, name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])

test('GET /metrics counts what became of events, and how long it took', async () => {
  const app = await (await openProject(service)).app()
  const event = { event: 'e', distinct_id: 'u1', uuid: randomUUID() }
  for (const body of [event, event, { ...event, event: '$identify', $anon_distinct_id: 'u1', uuid: randomUUID() }])
    assert.equal((await app.post('/event', body)).status, 200)
  let text = ''
  // The worker tells once a second.
  while (!(figureOf(text, 'turnpike_lane_rows_total') >= 3)) {
    text = await scrape()
    await sleep(20)
  }
  const values = ['applied', 'duplicates', 'refused_merges', 'dropped', 'dead'].map((name) =>
    figureOf(text, `turnpike_lane_${name}_total`),
  )
  assert.deepEqual(values, [2, 1, 1, 0, 0])
  assert.equal(figureOf(text, 'turnpike_events_accepted_total'), 3)
  assert.equal(figureOf(text, 'turnpike_append_seconds_count'), 3)
  assert.equal(figureOf(text, 'turnpike_accepted_to_processed_seconds_count'), 2)
  assert.equal(figureOf(text, 'turnpike_accepted_to_processed_seconds_bucket\\{le="\\+Inf"\\}'), 2)
})
