import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testClockMsMax } from '../../src/kernel/limits.ts'
import { dayMs } from '../harness/apple-pki.ts'
import { startService } from '../harness/service.ts'
import { openStore } from './store-world.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

const put = (project: string, offset_ms: number, environment = 'test') =>
  service.workspace('PUT', `/projects/${project}/test_clock`, { body: { offset_ms }, environment })

test('access, resets, spends and purchases of a test environment go by its clock', async () => {
  await using world = await openStore(service)
  const { project, app, store, subscription, bring, entitled } = world
  const bought = subscription('ada')
  store.tell(bought, 1, {})
  assert.equal((await bring('ada', bought)).status, 200)
  await project.grant('bob', { feature: 'exports', allowance: 5, interval: 'month' })
  const spend = async (customerId: string, quantity: number, operationId: string) =>
    (await app.post('/feature/consume', { customerId, featureId: 'exports', operationId, quantity })).body
  assert.equal((await spend('bob', 4, 'first')).balance, 1)
  const listed = async (distinctId: string) =>
    (await app.post('/profile', { distinct_id: distinctId })).body.features.map(({ id }: { id: string }) => id)
  assert.deepEqual(await listed('ada'), ['exports', 'pro'])

  assert.deepEqual((await put(project.id, 32 * dayMs)).body, {
    object: 'test_clock',
    project_id: project.id,
    offset_ms: 32 * dayMs,
  })
  assert.equal((await entitled('ada', 'pro')).allowed, false)
  assert.deepEqual(await listed('ada'), [])
  assert.equal((await spend('ada', 1, 'late')).accepted, false)
  assert.equal((await entitled('bob', 'exports')).balance, 5)
  const { balance, occurredAtMs } = await spend('bob', 2, 'second')
  assert.equal(balance, 3)
  assert.ok(occurredAtMs > Date.now() + 31 * dayMs)
  const id = await project.customer('ada')
  const states = (await project.get(`/customers/${id}/grants`)).data.map(({ state }: { state: string }) => state)
  assert.deepEqual([...new Set(states)], ['expired'])
  assert.equal((await project.get(`/customers/${id}/purchases`)).data[0].active, false)

  // The store's time runs ahead as well: what it signs then is not from the future.
  const { originalTransactionId } = bought
  const at = Date.now() + 32 * dayMs
  const renewed = subscription('ada', {
    originalTransactionId,
    purchaseDate: at - dayMs,
    expiresDate: at + 29 * dayMs,
    signedDate: at,
  })
  store.tell(renewed, 1, { signedDate: at })
  const answer = await bring('ada', renewed)
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  assert.equal((await entitled('ada', 'pro')).allowed, true)
})

test('the clock never goes back, has an end, and is of test alone', async () => {
  await using world = await openStore(service)
  const { id } = world.project
  assert.equal((await put(id, 1000)).status, 200)
  assert.equal((await put(id, 1000)).status, 200)
  assert.deepEqual([(await put(id, 999)).status, (await put(id, 999)).body.error.code], [409, 'conflict'])
  assert.equal((await put(id, testClockMsMax)).status, 200)
  assert.equal((await put(id, testClockMsMax + 1)).status, 400)
  assert.equal((await put(id, -1)).status, 400)
  assert.equal((await put(id, 1, 'live')).body.error.code, 'test_only')
  assert.equal((await put('proj_none', 1)).status, 404)
})
