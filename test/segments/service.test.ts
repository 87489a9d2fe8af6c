import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Body } from '../app/answers.ts'
import { anEvent, aSecondMs, eventually, openProject } from '../app/project.ts'
import { startService } from '../harness/service.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()

async function segment(where: object): Promise<string> {
  const body = { name: 'S', definition: { version: 1, where }, project_id: project.id }
  const { id } = await project.post('/segments', body)
  await eventually(async () => (await project.get(`/segments/${id}`)).status === 'ready', 5 * aSecondMs)
  return id
}

/** The customer's segments, as soon as they are these. */
async function become(distinctId: string, segments: string[]): Promise<void> {
  const customerId = await project.customer(distinctId)
  await eventually(async () => {
    const { data } = await project.get(`/customers/${customerId}/memberships`)
    return data.map((one: Body) => one.segment_id).join() === segments.join()
  }, 2 * aSecondMs)
}

test('events of an app, edits of a backend and grants of the ledger move customers within moments', async () => {
  const [opened, pro, payer] = [
    await segment({ performed: { event: 'opened', within: { value: 1, unit: 'hour' } } }),
    await segment({ property: { key: 'plan', op: 'eq', value: 'pro' } }),
    await segment({ feature: { id: 'gold', is: 'active' } }),
  ]
  assert.equal((await app.post('/event', anEvent('u', { event: 'opened' }))).status, 200)
  await become('u', [opened])
  const customerId = await project.customer('u')
  await project.patch(`/customers/${customerId}`, { properties: { set: { plan: 'pro' } } })
  await become('u', [pro, opened])
  await project.feature('gold', { type: 'boolean' })
  const grant = await project.grant('u', { feature: 'gold' })
  await become('u', [payer, pro, opened])
  await project.post(`/grants/${grant.id}/revoke`, {})
  await become('u', [pro, opened])
})
