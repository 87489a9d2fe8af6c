import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { eventually, openProject } from '../app/project.ts'
import { startService } from '../harness/service.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()
const list = async (path: string) => (await service.workspace('GET', path)).body

describe('the audit log', () => {
  test('tells who changed what, when and by which request, newest first', async () => {
    const made = await service.workspace('POST', '/features', {
      body: { key: 'audited', name: 'A', type: 'metered' },
      headers: { 'x-request-id': 'my-request-1' },
    })
    await service.workspace('PATCH', '/features/audited', { body: { name: 'B' } })
    const { data } = await list(`/audit_log?object_id=${made.body.id}`)
    const [update, create] = data
    assert.equal(data.length, 2)
    assert.deepEqual([update.action, create.action], ['update', 'create'])
    assert.deepEqual(create.target, { object: 'feature', id: made.body.id })
    assert.match(create.id, /^audit_\d+$/)
    assert.equal(create.actor.type, 'secret_key')
    assert.equal(create.request_id, 'my-request-1')
    assert.equal(create.before_digest, null)
    assert.equal(create.after_digest, update.before_digest)
    assert.notEqual(update.after_digest, update.before_digest)
    assert.ok(Math.abs(Date.parse(create.created_at) - Date.now()) < 60_000)
  })

  test('can be asked by everything it says, and read in pages without gap or repeat', async () => {
    for (let n = 0; n < 7; n++) {
      await service.workspace('POST', '/features', { body: { key: `page-${n}`, name: 'P', type: 'boolean' } })
    }
    const all = (await list('/audit_log?object=feature&action=create&limit=100')).data.map(
      ({ id }: { id: string }) => id,
    )
    assert.ok(all.length >= 7)
    const read: string[] = []
    for (let cursor = ''; ; ) {
      const page = await list(`/audit_log?object=feature&action=create&limit=3${cursor}`)
      read.push(...page.data.map(({ id }: { id: string }) => id))
      if (!page.has_more) break
      cursor = `&cursor=${page.next_cursor}`
    }
    assert.deepEqual(read, all)
    const [entry] = (await list('/audit_log?request_id=my-request-1')).data
    assert.equal((await list(`/audit_log?actor_id=${entry.actor.id}&limit=100`)).data.length > 7, true)
    assert.deepEqual((await list('/audit_log?actor_id=nobody')).data, [])
    assert.deepEqual((await list(`/audit_log?request_id=my-request-1&to=${entry.created_at}`)).data, [])
    assert.equal((await list(`/audit_log?request_id=my-request-1&from=${entry.created_at}`)).data.length, 1)
  })

  test('refuses filters it does not know, and words that are none', async () => {
    for (const query of ['who=me', 'from=yesterday', 'action=', 'cursor=abc', 'limit=0', `action=${'x'.repeat(201)}`]) {
      assert.equal((await service.workspace('GET', `/audit_log?${query}`)).status, 400, query)
    }
  })

  test('takes instants of any zone, and refuses those that are out of time by the name of the filter', async () => {
    for (const time of ['0000-01-01T00:00:00Z', '9999-12-31T23:59:59-15:00']) {
      for (const param of ['from', 'to']) {
        const { status, body } = await service.workspace('GET', `/audit_log?${param}=${time}`)
        assert.deepEqual([status, body.error.param], [400, param], time)
      }
    }
    for (const time of [
      '2026-11-21T00:00:00%2B23:59',
      '2026-11-21T00:00:00-16:00',
      `2026-11-21T00:00:00.${'1'.repeat(300)}Z`,
    ]) {
      assert.equal((await service.workspace('GET', `/audit_log?from=${time}&to=${time}`)).status, 200, time)
    }
  })
})

describe('usage', () => {
  test('counts requests, events and decisions of a day, of the environment they were in', async () => {
    await project.feature('exports')
    await project.grant('ada', { feature: 'exports', allowance: 10 })
    const before = (await list('/usage_stats')).data
    assert.deepEqual(before, [])
    const event = () => ({ event: 'saved', distinct_id: 'ada', uuid: randomUUID() })
    await app.post('/event', event())
    await app.postGzip('/batch', { batch: [event(), event(), { event: '' }] })
    await app.post('/entitled', { customerId: 'ada', featureId: 'exports' })
    await app.post('/feature/consume', { customerId: 'ada', featureId: 'exports', operationId: 'one', quantity: 1 })
    await app.post('/entitled', { customerId: 'ada', featureId: 'nothing' })
    const [today] = await eventually(async () => {
      const { data } = await list('/usage_stats')
      return data.length > 0 && data[0].requests >= 5 ? data : undefined
    }, 15_000)
    const day = today.day
    assert.match(day, /^\d{4}-\d\d-\d\d$/)
    const { project_id, ...rest } = today
    assert.match(project_id, /^proj_/)
    assert.deepEqual(rest, {
      object: 'usage_stat',
      id: day,
      environment: 'test',
      day,
      requests: 5,
      events: 3,
      decisions: 2,
    })
    const live = await service.workspace('GET', '/usage_stats', { environment: 'live' })
    assert.deepEqual(live.body.data, [])
    assert.equal((await list(`/usage_stats?from=${day}&to=${day}`)).data.length, 1)
    assert.deepEqual((await list('/usage_stats?to=2020-01-01')).data, [])
    assert.equal((await service.workspace('GET', '/usage_stats?from=2026-02-30')).status, 400)
  })

  test('refuses days that no calendar has, also in a cursor', async () => {
    const cursor = (day: string) => `cursor=${Buffer.from(JSON.stringify(day)).toString('base64url')}`
    const cases = [
      ['from', 'from=0000-02-29'],
      ['to', 'to=0000-01-01'],
      ['cursor', cursor('2026-99-99')],
      ['cursor', cursor('2026-02-30')],
      ['cursor', cursor('0000-01-01')],
    ]
    for (const [param, query] of cases) {
      const { status, body } = await service.workspace('GET', `/usage_stats?${query}`)
      assert.deepEqual([status, body.error.param], [400, param], query)
    }
    assert.deepEqual((await list(`/usage_stats?${cursor('0001-01-01')}`)).data, [])
  })

  test('is added to by every process, and by the last breath of one that stops', async () => {
    {
      await using other = await service.another()
      for (let n = 0; n < 4; n++) {
        await fetch(`${other.url}/status?apiKey=${app.key}`).then((answer) => answer.text())
      }
    }
    const [today] = (await list('/usage_stats')).data
    assert.ok(today.requests >= 9, String(today.requests))
  })
})

test('a key that asks too often is told how long to wait, and nobody else is', async () => {
  await using limited = await service.another({ WORKSPACE_RATE_LIMIT: '3' })
  const ask = () => limited.workspace('GET', '/projects')
  // All in one minute of the clock: begun at its start.
  await eventually(async () => new Date().getSeconds() < 50, 15_000)
  const answers = [await ask(), await ask(), await ask(), await ask()]
  assert.deepEqual(
    answers.map(({ status, headers }) => [status, headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')]),
    [
      [200, '3', '2'],
      [200, '3', '1'],
      [200, '3', '0'],
      [429, '3', '0'],
    ],
  )
  const refused = answers[3]
  const wait = Number(refused?.headers.get('retry-after'))
  assert.equal(refused?.body.error.code, 'rate_limited')
  assert.ok(wait >= 1 && wait <= 60)
  assert.equal(refused?.headers.get('ratelimit-reset'), String(wait))
  assert.equal((await service.workspace('GET', '/projects')).status, 200)
  const unknown = await fetch(`${limited.url}/v1/projects`, { headers: { authorization: 'Bearer sk_nobody' } })
  assert.equal(unknown.status, 401)
})
