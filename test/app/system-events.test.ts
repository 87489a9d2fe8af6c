import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { factNames, systemEvents } from '../../src/events/catalogue.ts'
import { startService } from '../harness/service.ts'
import type { Body } from './answers.ts'
import { anEvent, eventually, openProject } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()

/** What is stored of the events of a customer, when there are so many. */
function storedOf(distinctId: string, count: number): Promise<Body[]> {
  return eventually(async () => {
    const path = `/events?project_id=${project.id}&distinct_id=${distinctId}&limit=100`
    const { data } = (await service.workspace('GET', path)).body
    return data.length === count ? data : undefined
  }, 20_000)
}

/** Sent by a device and by the backend. */
async function record(events: Body[]): Promise<Body[]> {
  const device = await app.postGzip('/batch', { batch: events })
  const body = { project_id: project.id, events }
  const server = await service.workspace('POST', '/events', { body })
  assert.deepEqual([device.status, server.status], [200, 200])
  return [device.body, server.body]
}

describe('every name of the catalogue', () => {
  test('is accepted and stored as recognised, without a warning', async () => {
    const names = systemEvents.map(({ name }) => name)
    const { body } = await app.postGzip('/batch', { batch: names.map((event) => anEvent('device', { event })) })
    assert.deepEqual([body.status, body.accepted, body.failed], ['success', names.length, 0])
    const stored = await storedOf('device', names.length)
    assert.deepEqual(new Set(stored.map(({ event }) => event)), new Set(names))
    for (const { event, recognised, warnings } of stored) assert.deepEqual([recognised, warnings], [true, []], event)
  })

  test('takes a directive with it, retired ones too', async () => {
    const batch = systemEvents.map(({ name: event }, n) =>
      anEvent('counted', { event, properties: { $increment: { n: 1 }, $set: { [`key ${n}`]: event } } }),
    )
    await app.postGzip('/batch', { batch })
    await eventually(async () => {
      const path = `/customers/by_distinct_id/counted?project_id=${project.id}`
      const { status, body } = await service.workspace('GET', path)
      return status === 200 && body.properties.n === batch.length
    }, 20_000)
  })
})

test('a $ name that is unknown, or that only the service records, is stored as not recognised, with a warning', async () => {
  const names = ['$no_such_event', '$', '$Identify', '$segment_entered', '$response_set', '$toString', ...factNames]
  for (const { accepted } of await record(names.map((event) => anEvent('unknown', { event }))))
    assert.equal(accepted, names.length)
  // The backend's are the same events again: duplicates.
  for (const { event, recognised, warnings } of await storedOf('unknown', names.length)) {
    assert.equal(recognised, false, event)
    assert.deepEqual(warnings, [{ code: 'unrecognised_system_event' }], event)
  }
})

test('verbs of identity are refused one by one, with lane and endpoint, and what stands beside them is not', async () => {
  const verbs = ['$create_alias', '$merge_dangerously']
  const batch = [anEvent('plain'), ...verbs.map((event) => anEvent('plain', { event })), anEvent('plain')]
  for (const { status, total, accepted, failed, rejectedFailed, errors } of await record(batch)) {
    assert.deepEqual([status, total, accepted, failed, rejectedFailed], ['partial', 4, 2, 2, 2])
    assert.deepEqual(
      errors.map(({ index, event, lane, endpoint }: Body) => ({ index, event, lane, endpoint })),
      verbs.map((event, n) => ({
        ...{ index: n + 1, event, lane: 'identity', endpoint: 'POST /v1/customers/{id}/merge' },
      })),
    )
  }
  const single = await app.post('/event', anEvent('plain', { event: '$create_alias' }))
  assert.equal(single.status, 400)
  assert.deepEqual(single.body.details, { lane: 'identity', endpoint: 'POST /v1/customers/{id}/merge' })
})

test('events of purchases and usage neither grant nor spend, whoever sends them', async () => {
  await project.feature('exports')
  await project.feature('pro', { type: 'boolean' })
  await project.grant('buyer', { feature: 'exports', allowance: 5 })
  const said = {
    ...{ feature_id: 'exports', featureId: 'exports', amount: 3, quantity: 3, price: 9.99, currency: 'EUR' },
    ...{ product_id: 'pro', store_product_id: 'pro', transaction_id: '1', original_transaction_id: '1' },
  }
  const commerce = systemEvents.filter(({ group }) => group === 'commerce').map(({ name }) => name)
  assert.equal(commerce.length, 9)
  const before = await ledger()
  for (const [n, distinctId] of ['buyer', 'buyer', 'stranger'].entries()) {
    const events = commerce.map((event) => anEvent(distinctId, { event, properties: said, value: n + 1 }))
    const body = { project_id: project.id, events }
    const answer =
      n === 1 ? await service.workspace('POST', '/events', { body }) : await app.postGzip('/batch', { batch: events })
    assert.equal(answer.body.accepted, commerce.length)
  }
  await storedCommerce('stranger', commerce.length)
  await storedCommerce('buyer', 2 * commerce.length)
  assert.deepEqual(await ledger(), before)
  const entitled = async (customerId: string, featureId: string) =>
    (await app.post('/entitled', { customerId, featureId })).body
  assert.equal((await entitled('buyer', 'exports')).balance, 5)
  assert.equal((await entitled('buyer', 'pro')).allowed, false)
  assert.equal((await entitled('stranger', 'exports')).allowed, false)
})

/** Those of a customer, beside what the service itself stated of their grants. */
async function storedCommerce(distinctId: string, count: number): Promise<void> {
  await eventually(async () => {
    const path = `/events?project_id=${project.id}&distinct_id=${distinctId}&limit=100`
    const { data } = (await service.workspace('GET', path)).body
    return data.filter(({ event }: Body) => /^\$(purchase|restore|feature_used)/.test(event)).length === count
  }, 20_000)
}

/** How much there is of everything that units and access are made of. */
async function ledger(): Promise<object> {
  const [row] = await service.pool.query(
    `select (select count(*) from ledger_grant) as grants, (select count(*) from entry) as entries,
       (select count(*) from operation) as operations`,
  )
  return row ?? {}
}
