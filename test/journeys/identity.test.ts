import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { eventually } from '../app/project.ts'
import { startService } from '../harness/service.ts'
import { deviceDraft, newJourneyId, openStage, type Published, serverDraft } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const stage = await openStage(service)
const every = await stage.publish(deviceDraft({ frequency: { type: 'every_match' } }))
const once = await stage.publish(deviceDraft())
const byApi = await stage.publish(serverDraft({ type: 'api' }, { entry: { frequency: { type: 'one_time' } } }))

async function begun(of: Published, who: string): Promise<string> {
  const journeyId = newJourneyId()
  await stage.started(who, { journeyId, of, section: 'tell' })
  await stage.journeyIs(journeyId, ({ status }) => status === 'on_device')
  return journeyId
}

async function identified(source: string, target: string): Promise<void> {
  await stage.send(target, '$identify', { $anon_distinct_id: source })
  await eventually(async () => {
    const { status, body } = await stage.call(
      'GET',
      `/customers/by_distinct_id/${target}?project_id=${stage.project.id}`,
    )
    return status === 200 && body.distinct_ids.some((one: { distinct_id: string }) => one.distinct_id === source)
  })
}

const customerOf = (who: string) => stage.project.get(`/customers/by_distinct_id/${who}?project_id=${stage.project.id}`)
const start = async (who: string, key: string) =>
  (
    await stage.call('POST', `/experiences/${byApi.id}/start`, {
      body: { app_id: stage.app.id, distinct_id: who },
      headers: { 'idempotency-key': key },
    })
  ).body

describe('a merge', () => {
  test('moves journeys as they are, and reports under the old id reach them', async () => {
    const [source, target] = [randomUUID(), randomUUID()]
    const own = await begun(every, target)
    const moved = await begun(every, source)
    const before = await stage.journey(moved)
    await identified(source, target)
    const after = await stage.journey(moved)
    assert.deepEqual([after.rev, after.generation, after.status], [before.rev, before.generation, before.status])
    assert.equal(after.customer_id, (await customerOf(target)).id)
    assert.deepEqual(new Set((await stage.journeysOf(target)).map(({ id }) => id)), new Set([own, moved]))
    await stage.completed(source, { journeyId: moved, of: every, section: 'tell', outcome: 'later' })
    await stage.journeyIs(moved, ({ status }) => status === 'waiting')
  })

  test('of two open ones that the frequency would not have allowed both keeps the one that is further', async () => {
    const [source, target] = [randomUUID(), randomUUID()]
    const further = await begun(once, source)
    const other = await begun(once, target)
    await stage.completed(source, { journeyId: further, of: once, section: 'tell', outcome: 'later' })
    await stage.journeyIs(further, ({ status }) => status === 'waiting')
    await identified(source, target)
    const ended = await stage.journeyIs(other, ({ status }) => status === 'ended')
    assert.equal(ended.end_reason, 'superseded')
    assert.equal((await stage.journey(further)).status, 'waiting')
  })

  test('adds up what was counted: who was in before either way is in no more', async () => {
    const [source, target] = [randomUUID(), randomUUID()]
    assert.equal((await start(source, 'a')).status, 'started')
    await stage.project.customer(target)
    await identified(source, target)
    assert.equal((await start(target, 'b')).status, 'ineligible')
    assert.equal((await start(target, 'a')).status, 'coalesced')
  })

  test('taken back gives back what came with the source', async () => {
    const [source, target] = [randomUUID(), randomUUID()]
    const [own, moved] = [await begun(every, target), await begun(every, source)]
    const started = await start(source, 'a')
    await identified(source, target)
    const { id } = await customerOf(target)
    const [merge] = (await stage.project.get(`/customers/${id}/merges`)).data
    await stage.project.post(`/customers/${id}/merges/${merge.id}/split`)
    assert.deepEqual(
      new Set((await stage.journeysOf(source)).map(({ id: one }) => one)),
      new Set([moved, started.journey_id]),
    )
    assert.deepEqual(
      (await stage.journeysOf(target)).map(({ id: one }) => one),
      [own],
    )
    assert.equal((await start(source, 'a')).status, 'coalesced')
    assert.equal((await start(target, 'c')).status, 'started')
  })
})

test('an id that gave its record to another one gets back what it had when the merge is taken back', async () => {
  const [source, target] = [randomUUID(), randomUUID()]
  const own = await begun(every, source)
  assert.equal((await start(source, 'a')).status, 'started')
  await identified(source, target)
  const later = await begun(every, target)
  const { id } = await customerOf(target)
  const [merge] = (await stage.project.get(`/customers/${id}/merges`)).data
  await stage.project.post(`/customers/${id}/merges/${merge.id}/split`)
  assert.deepEqual(
    (await stage.journeysOf(target)).map(({ id: one }) => one),
    [later],
  )
  assert.ok((await stage.journeysOf(source)).some(({ id: one }) => one === own))
  assert.equal((await start(source, 'a')).status, 'coalesced')
  assert.equal((await start(target, 'b')).status, 'started')
})

test('a journey that began before its id gave the record away, but was told of afterwards, stays counted with who has it', async () => {
  const [source, target] = [randomUUID(), randomUUID()]
  await stage.project.customer(source)
  const startedAt = Date.now() - 1000
  await identified(source, target)
  const journeyId = newJourneyId()
  await stage.started(target, { journeyId, of: once, section: 'tell', startedAt })
  await stage.journeyIs(journeyId, ({ status }) => status === 'on_device')
  const { id } = await customerOf(target)
  const [merge] = (await stage.project.get(`/customers/${id}/merges`)).data
  await stage.project.post(`/customers/${id}/merges/${merge.id}/split`)
  assert.deepEqual(
    (await stage.journeysOf(target)).map((one) => one.id),
    [journeyId],
  )
  const counts = await service.pool.query<{ distinct_id: string; count: number }>(
    `select a.distinct_id, e.count
     from experience_enrolment e
     join customer_alias a on a.scope_id = e.scope_id and a.customer_id = e.customer_id
     where a.distinct_id = any($1) and e.count > 0`,
    [[source, target]],
  )
  assert.deepEqual(counts, [{ distinct_id: target, count: 1 }])
})

describe('a deletion', () => {
  test('25 ends what is open at once, and nothing of the customer is left after the purge', async () => {
    const who = randomUUID()
    const journeyId = await begun(every, who)
    await stage.completed(who, {
      journeyId,
      of: every,
      section: 'tell',
      outcome: 'later',
      outputs: { event: { source: who } },
    })
    await stage.journeyIs(journeyId, ({ status }) => status === 'waiting')
    const { journey_id: armed } = await start(who, `key of ${who}`)
    const customer = (await customerOf(who)).id.slice('cus_'.length)
    await stage.project.delete(`/customers/cus_${customer}`)
    for (const id of [journeyId, armed]) {
      const rows = await service.pool.query(
        `select j.id from journey j
         left join journey_timer t on t.scope_id = j.scope_id and t.journey_id = j.id
         where j.id = $1 and (j.status <> 'ended' or t.kind is not null)`,
        [id],
      )
      assert.deepEqual(rows, [])
    }
    await eventually(async () => {
      const tables = ['journey', 'journey_occurrence', 'journey_inbox', 'journey_subscription', 'experience_enrolment']
      for (const table of tables) {
        const rows = await service.pool.query(`select 1 from ${table} where customer_id = $1`, [uuidOf(customer)])
        if (rows.length > 0) return false
      }
      for (const table of ['journey_transition', 'journey_leg', 'journey_timer']) {
        const rows = await service.pool.query(`select 1 from ${table} where journey_id = any($1::uuid[])`, [
          [journeyId, armed],
        ])
        if (rows.length > 0) return false
      }
      return true
    }, 30_000)
  })
})

test('24 and 25 what begins while its customer is merged moves along, and while its customer is deleted ends', async () => {
  const pairs = Array.from({ length: 12 }, () => [randomUUID(), randomUUID()] as const)
  const known = await Promise.all(
    pairs.map(async ([source, target]) => [await stage.project.customer(source), await stage.project.customer(target)]),
  )
  const call = async (method: string, path: string, body?: object) => {
    const answer = await stage.call(method, path, body ? { body } : {})
    assert.ok([200, 409, 503].includes(answer.status), JSON.stringify(answer.body))
    return answer.status
  }
  const begin = async (who: string, key: string) => {
    const { status } = await stage.call('POST', `/experiences/${byApi.id}/start`, {
      body: { app_id: stage.app.id, distinct_id: who },
      headers: { 'idempotency-key': key },
    })
    assert.ok([202, 410, 503].includes(status))
  }
  const merged = await Promise.all(
    pairs.map(async ([source], i) => {
      const [answer] = await Promise.all([
        call('POST', `/customers/${known[i]?.[1]}/merge`, { source_distinct_id: source, force: true }),
        begin(source, 'a'),
        begin(source, 'b'),
      ])
      return answer === 200 ? uuidOf((known[i]?.[0] ?? '').slice('cus_'.length)) : ''
    }),
  )
  const left = 'select id from journey where customer_id = any($1::uuid[])'
  const sources = merged.filter((id) => id !== '')
  assert.ok(sources.length > 0)
  assert.deepEqual(await service.pool.query(left, [sources]), [])
  const deleted = await Promise.all(
    pairs.map(async ([, target], i) => {
      const id = known[i]?.[1] ?? ''
      const [answer] = await Promise.all([call('DELETE', `/customers/${id}`), begin(target, 'c'), begin(target, 'd')])
      return answer === 200 ? uuidOf(id.slice('cus_'.length)) : ''
    }),
  )
  assert.ok(deleted.some((id) => id !== ''))
  const open = `${left} and status <> 'ended'`
  assert.deepEqual(await service.pool.query(open, [deleted.filter((id) => id !== '')]), [])
})

/** As it is stored. */
function uuidOf(wire: string): string {
  return wire.includes('-') ? wire : wire.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
