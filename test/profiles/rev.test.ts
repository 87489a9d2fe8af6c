import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { raiseRevs } from '../../src/customers/index.ts'
import { anEvent, eventually, openProject } from '../app/project.ts'
import { startService } from '../harness/service.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()
const scopeId = await project.scopeId()
const { pool } = service

async function recordOf(distinctId: string): Promise<string> {
  const [row] = await pool.query<{ id: string }>(
    'select customer_id as id from customer_alias where scope_id = $1 and distinct_id = $2',
    [scopeId, distinctId],
  )
  return row?.id ?? ''
}

async function revOf(customerId: string): Promise<number> {
  const [row] = await pool.query<{ rev: bigint }>(
    'select rev from customer_rev where scope_id = $1 and customer_id = $2',
    [scopeId, customerId],
  )
  return Number(row?.rev ?? 0)
}

/** All that was sent so far has been applied. */
async function applied(): Promise<void> {
  const name = `seen-${crypto.randomUUID()}`
  await app.post('/event', anEvent('marker', { event: name }))
  await eventually(async () => {
    const rows = await pool.query('select from event where scope_id = $1 and event = $2', [scopeId, name])
    return rows.length > 0
  })
}

describe("a customer's number", () => {
  test('rises with properties, by event and by hand, and not with an event or an edit that changes none', async () => {
    await app.post('/event', anEvent('ada', { properties: { $set: { plan: 'free' } } }))
    await applied()
    const id = await recordOf('ada')
    const seen = [await revOf(id)]
    const step = async (change: () => Promise<unknown>) => {
      await change()
      await applied()
      seen.push(await revOf(id))
    }
    await step(() => app.post('/event', anEvent('ada', { properties: { tapped: 1 } })))
    await step(() => app.post('/event', anEvent('ada', { properties: { $set: { plan: 'pro' } } })))
    await step(() => app.post('/event', anEvent('ada', { properties: { $set: { plan: 'pro' } } })))
    await step(() => project.patch(`/customers/cus_${id}`, { properties: { set: { seats: 3 } } }))
    await step(() => project.patch(`/customers/cus_${id}`, { properties: { set: { seats: 3 } } }))
    const [birth = 0] = seen
    assert.deepEqual(seen, [birth, birth, birth + 1, birth + 1, birth + 2, birth + 2])
  })

  test('rises for every customer that a distinct id leaves: by merge, split and deletion', async () => {
    await project.customer('old')
    await app.post('/event', anEvent('person', { event: '$identify' }))
    await applied()
    const [old, person] = [await recordOf('old'), await recordOf('person')]
    const before = [await revOf(old), await revOf(person)]
    await app.post('/event', anEvent('person', { event: '$identify', $anon_distinct_id: 'old' }))
    await applied()
    const merged = [await revOf(old), await revOf(person)]
    assert.ok(
      merged.every((rev, i) => rev > (before[i] ?? 0)),
      [...before, ...merged].join(' '),
    )
    const { data } = await project.get(`/customers/cus_${person}/merges`)
    await project.post(`/customers/cus_${person}/merges/${data[0].id}/split`)
    const split = [await revOf(old), await revOf(person)]
    assert.ok(
      split.every((rev, i) => rev > (merged[i] ?? 0)),
      [...merged, ...split].join(' '),
    )
    await project.delete(`/customers/cus_${person}`)
    assert.ok((await revOf(person)) > (split[1] ?? 0))
  })

  test('rises with memberships that an event, or nothing but time, brings and takes', async () => {
    const { id: segment } = await project.post('/segments', {
      project_id: project.id,
      name: 'Pro',
      definition: { version: 1, where: { property: { key: 'tier', op: 'eq', value: 'gold' } } },
    })
    await eventually(async () => (await project.get(`/segments/${segment}`)).status === 'ready')
    await app.post('/event', anEvent('member', { properties: { other: 1 } }))
    await applied()
    const id = await recordOf('member')
    const before = await revOf(id)
    await app.post('/event', anEvent('member', { properties: { $set: { tier: 'gold' } } }))
    await applied()
    // Once for the property, once for the membership.
    assert.equal(await revOf(id), before + 2)
    await app.post('/event', anEvent('member', { properties: { $unset: ['tier'] } }))
    await applied()
    assert.equal(await revOf(id), before + 4)
  })

  test('is raised for many at once, each once, whatever their order', async () => {
    const ids = Array.from({ length: 40 }, () => crypto.randomUUID())
    const whose = [...ids, ...ids].map((customerId) => ({ scopeId, customerId }))
    const all = [whose, whose.toReversed()]
    await Promise.all(Array.from({ length: 12 }, (_, i) => pool.transaction((tx) => raiseRevs(tx, all[i % 2] ?? []))))
    assert.deepEqual(new Set(await Promise.all(ids.map(revOf))), new Set([12]))
    await pool.transaction((tx) => raiseRevs(tx, []))
  })
})
