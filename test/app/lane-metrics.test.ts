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

test('GET /metrics tells how many deleted customers are still being erased, and for how long the oldest', async () => {
  const project = await openProject(service)
  const id = await project.customer('gone')
  await project.delete(`/customers/${id}`)
  const scopeId = await project.scopeId()
  const becomes = async (isReached: (erasures: number, seconds: number) => boolean) => {
    for (;;) {
      const text = await scrape()
      const [erasures = 0, seconds = 0] = ['erasures_waiting', 'erasure_wait_seconds'].map((name) =>
        figureOf(text, `turnpike_${name}`),
      )
      if (isReached(erasures, seconds)) return
      await sleep(20)
    }
  }
  const age = (seconds: number) =>
    service.pool.query(`update customer_change set at = at - $2 * interval '1 second' where scope_id = $1`, [
      scopeId,
      seconds,
    ])
  // Requests that had looked before the deletion may still be under way for twenty seconds: it is not complete before.
  await age(5)
  await becomes((erasures, seconds) => erasures === 1 && seconds >= 5)
  await age(3600)
  await becomes((erasures, seconds) => erasures === 0 && seconds === 0)
})
