import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { journeyTriesMax } from '../../src/kernel/limits.ts'
import { eventually } from '../app/project.ts'
import { server } from '../harness/a-draft.ts'
import { startService } from '../harness/service.ts'
import { openStage, serverDraft } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const { pool } = service
const stage = await openStage(service)
const { project, call } = stage
const place = `project_id=${project.id}`

const resting = serverDraft({ type: 'api' }, { policy: { exitWhenAny: [{ type: 'event', eventName: 'churned' }] } })
resting.graph.entry = 'rest'
resting.graph.steps.push(server('rest', { type: 'delay', durationMs: 3_600_000 }, { next: 'again' }))
const of = await stage.publish(resting)

async function begun(who: string): Promise<string> {
  const body = { app_id: stage.app.id, distinct_id: who }
  return (await call('POST', `/experiences/${of.id}/start`, { body })).body.journey_id
}

const listed = async () => (await project.get(`/journey_quarantine?${place}`)).data
const audited = async (id: string) =>
  (await project.get(`/audit_log?object_id=${id}`)).data.map(({ action }: { action: string }) => action)

/** A row as the inbox leaves it. */
async function setAside(source: string, journeyId: string | null, customerId: string | null, body: object) {
  const [row] = await pool.query<{ id: bigint }>(
    `insert into journey_quarantine (scope_id, source, customer_id, journey_id, body, error, at_ms)
     values ($1, $2, $3, $4, $5, 'it broke', 1770000000000)
     returning id`,
    [await project.scopeId(), source, customerId, journeyId, JSON.stringify(body)],
  )
  return `jq_${row?.id}`
}

/** The journey cannot be gone on with while its wait is gone. */
async function waits(id: string, wait: object | null): Promise<void> {
  await pool.query(
    `with journey as (
       update journey
       set pending = jsonb_set(jsonb_set(pending::jsonb, '{wait}', $2::jsonb), '{timers,step,dueAt}', '1')::text
       where id = $1
     )
     update journey_timer
     set due_at_ms = 1, look_at_ms = 1, attempts = $3
     where journey_id = $1
       and kind = 'step'`,
    [id, JSON.stringify(wait), journeyTriesMax - 1],
  )
}

describe('what was set aside', () => {
  test('is listed with why, and a timer that is released goes on', async () => {
    const id = await begun(randomUUID())
    await waits(id, null)
    const [row] = await eventually(async () => {
      const rows = await listed()
      return rows.length > 0 && rows
    }, 20_000)
    const { id: quarantined, body, error, created_at: at, ...shown } = row
    assert.deepEqual(shown, {
      ...{ object: 'quarantined_input', environment: 'test', source: 'timer', customer_id: null, journey_id: id },
    })
    assert.deepEqual(body, { kind: 'step', rev: 1, due_at_ms: 1 })
    assert.match(error, /a step timer belongs to a wait/)
    assert.ok(Math.abs(Date.parse(at) - Date.now()) < 600_000)
    assert.equal((await stage.journey(id)).step_id, 'rest')

    await waits(id, { kind: 'delay' })
    assert.deepEqual(await project.post(`/journey_quarantine/${quarantined}/release`, {}), row)
    await stage.journeyIs(id, ({ status }) => status === 'armed')
    assert.deepEqual(await listed(), [])
    assert.equal((await call('POST', `/journey_quarantine/${quarantined}/release`, { body: {} })).status, 404)
    assert.deepEqual(await audited(quarantined), ['release'])
  })

  test('an input that is released is told', async () => {
    const who = randomUUID()
    const id = await begun(who)
    const { customer_id: customerId } = await stage.journey(id)
    const at = Date.now() + 1000
    const event = {
      ...{
        kind: 'event',
        uuid: randomUUID(),
        name: 'churned',
        distinctId: who,
        appId: stage.app.id,
        at,
        receivedAt: at,
      },
      ...{ trust: 'device', fact: false, live: true, origin: null, properties: {} },
    }
    const body = { pos: '999999', n: 0, received_at_ms: at, body: JSON.stringify(event) }
    const quarantined = await setAside('inbox', null, customerId.slice('cus_'.length), body)
    const [row] = await listed()
    assert.deepEqual([row.id, row.source, row.customer_id], [quarantined, 'input', customerId])
    assert.deepEqual(row.body, { ...body, body: event })
    await project.post(`/journey_quarantine/${quarantined}/release`, {})
    const ended = await stage.journeyIs(id, ({ status }) => status === 'ended')
    assert.equal(ended.end_detail, 'event:churned')
    assert.deepEqual(await listed(), [])
  })

  test('a timer of which its journey has a newer one by now changes nothing', async () => {
    const id = await begun(randomUUID())
    const before = (await stage.journey(id)).next_timer
    const quarantined = await setAside('timer', id, null, { kind: 'step', rev: 7, due_at_ms: 1 })
    await project.post(`/journey_quarantine/${quarantined}/release`, {})
    await stage.quiet()
    assert.deepEqual((await stage.journey(id)).next_timer, before)
  })

  test('the result of a webhook cannot be released, but dropped, which leaves a row in the audit log', async () => {
    const id = await begun(randomUUID())
    const quarantined = await setAside('outbox', id, null, { rev: 1, index: 0, endpoint_id: 'whe_1', attempts: 8 })
    const path = `/journey_quarantine/${quarantined}`
    const refused = await call('POST', `${path}/release`, { body: {} })
    assert.deepEqual([refused.status, refused.body.error.code], [409, 'conflict'])
    assert.equal((await listed())[0].source, 'webhook_result')
    for (const elsewhere of ['jq_0', 'jq_x', quarantined]) {
      const environment = elsewhere === quarantined ? 'live' : 'test'
      assert.equal((await call('DELETE', `/journey_quarantine/${elsewhere}`, { environment })).status, 404)
    }
    assert.deepEqual(await project.delete(path), { object: 'quarantined_input', id: quarantined, deleted: true })
    assert.deepEqual(await listed(), [])
    assert.deepEqual(await audited(quarantined), ['delete'])
  })

  test('pages meet without gaps, newest first', async () => {
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.unshift(await setAside('outbox', randomUUID(), null, {}))
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await project.get(`/journey_quarantine?${place}&limit=2${cursor && `&cursor=${cursor}`}`)
      seen.push(...page.data.map((one: { id: string }) => one.id))
      cursor = page.next_cursor
    }
    assert.deepEqual(seen, ids)
  })
})
