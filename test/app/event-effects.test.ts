import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { startService } from '../harness/service.ts'
import type { Body } from './answers.ts'
import { anEvent, aSecondMs, eventually, openProject } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()

async function record(body: Record<string, unknown>): Promise<Body> {
  const answer = await app.post('/event', body)
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  return answer.body
}

/** The customer as the Workspace API shows it; undefined while there is none. */
async function customerOf(distinctId: string): Promise<Body> {
  const path = `/customers/by_distinct_id/${encodeURIComponent(distinctId)}?project_id=${project.id}`
  const { status, body } = await service.workspace('GET', path)
  return status === 200 ? body : undefined
}

/** The customer's properties, as soon as they are these; within a second of the answer that accepted them. */
function propertiesBecome(distinctId: string, properties: object): Promise<unknown> {
  return eventually(async () => {
    const customer = await customerOf(distinctId)
    return isDeepStrictEqual(customer?.properties, properties)
  }, aSecondMs)
}

describe('customerIdHint', () => {
  test('is the id that the customer is then born with, and has afterwards', async () => {
    const { customerIdHint } = await record(anEvent('newborn'))
    assert.equal((await eventually(() => customerOf('newborn'), aSecondMs)).id, customerIdHint)
    assert.equal((await record(anEvent('newborn'))).customerIdHint, customerIdHint)
  })

  test('is the id of a customer that exists', async () => {
    const id = await project.customer('known')
    assert.equal((await record(anEvent('known'))).customerIdHint, id)
  })

  test('is the survivor after an identify', async () => {
    const [source, target] = [await project.customer('device-1'), await project.customer('person-1')]
    await record(anEvent('person-1', { event: '$identify', $anon_distinct_id: 'device-1' }))
    await eventually(async () => (await customerOf('device-1'))?.id === target, aSecondMs)
    assert.notEqual(source, target)
    assert.equal((await record(anEvent('device-1'))).customerIdHint, target)
  })

  test('is another one in the other environment', async () => {
    const live = await project.app('ios', 'live')
    const hints = [await app.post('/event', anEvent('both')), await live.post('/event', anEvent('both'))]
    assert.equal(new Set(hints.map(({ body }) => body.customerIdHint)).size, 2)
  })
})

describe('directives of an event reach the customer within a second', () => {
  test('$set replaces, $set_once does not, $increment adds, $unset removes', async () => {
    const send = (directives: object) => record(anEvent('props', { properties: directives }))
    await send({ $set: { plan: 'free', seats: 1, gone: true }, $set_once: { source: 'mail' } })
    await propertiesBecome('props', { plan: 'free', seats: 1, gone: true, source: 'mail' })
    await send({
      $set: { plan: 'pro' },
      $set_once: { source: 'web' },
      $increment: { seats: 4, visits: 1.5 },
      $unset: ['gone'],
    })
    await propertiesBecome('props', { plan: 'pro', seats: 5, source: 'mail', visits: 1.5 })
  })

  test('an increment counts once, however often and over whatever ways it is sent at the same time', async () => {
    const event = anEvent('counted', { properties: { $increment: { n: 1 } } })
    const upper = { ...event, uuid: undefined, idempotency_key: String(event.uuid).toUpperCase() }
    await Promise.all([
      ...Array.from({ length: 20 }, () => record(event)),
      ...Array.from({ length: 5 }, () => record(upper)),
      ...Array.from({ length: 5 }, () => app.postGzip('/batch', { batch: [event, upper, event] })),
    ])
    await record(event)
    await record(anEvent('counted', { properties: { $increment: { n: 10 }, $set: { last: true } } }))
    await propertiesBecome('counted', { n: 11, last: true })
  })

  test('twenty different ones count twenty times', async () => {
    const one = () => anEvent('sum', { properties: { $increment: { n: 1 } } })
    await Promise.all(Array.from({ length: 20 }, () => record(one())))
    await propertiesBecome('sum', { n: 20 })
  })

  test('equal uuids in the two environments are two events', async () => {
    const live = await project.app('ios', 'live')
    const event = anEvent('twice', { properties: { $increment: { n: 1 } } })
    await Promise.all([record(event), live.post('/event', event)])
    await propertiesBecome('twice', { n: 1 })
    const inLive = { environment: 'live' }
    const path = `/customers/by_distinct_id/twice?project_id=${project.id}`
    await eventually(async () => (await service.workspace('GET', path, inLive)).body.properties?.n === 1, aSecondMs)
  })
})

test('keys that mean something to JavaScript are echoed and stored as plain keys', async () => {
  const keys = '{"__proto__":{"a":1},"constructor":{"prototype":{"b":2}},"toString":3,"hasOwnProperty":null}'
  const event = JSON.stringify({ apiKey: app.key, ...anEvent('proto') })
  const body = event.replace(/}$/, `,"properties":{"__proto__":[],"$set":${keys}}}`)
  const answer = await app.post('/event', body)
  assert.equal(answer.status, 200)
  assert.ok(answer.bytes.includes(`{"__proto__":[],"$set":${keys}}`))
  await eventually(async () => {
    const { bytes } = await rawCustomer('proto')
    return bytes.includes('"__proto__":{"a":1}') && bytes.includes('"constructor":{"prototype":{"b":2}}')
  }, aSecondMs)
})

async function rawCustomer(distinctId: string): Promise<{ bytes: string }> {
  const response = await fetch(`${service.url}/v1/customers/by_distinct_id/${distinctId}?project_id=${project.id}`, {
    headers: { authorization: `Bearer ${service.secretKey}`, 'x-service-env': 'test' },
  })
  return { bytes: await response.text() }
}
