import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { deleteBuried, settleChanges } from '../../src/customers/index.ts'
import { erasersOf } from '../../src/erasers.ts'
import { type App, anEvent, aSecondMs, eventually, openProject, type Project } from '../app/project.ts'
import { startService } from '../harness/service.ts'
import { findings } from '../ledger/world.ts'
import type { Body } from './api.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const { pool, tombstoneKey } = service

/** All that is left of deletions, without waiting for appends that may be under way: nobody else is at work here. */
async function settle(): Promise<void> {
  const options = { erasers: erasersOf({ tombstoneKey }), now: Date.now, appendsEndMs: 0 }
  for (let scopeId = 0; ; ) {
    const slice = await settleChanges(pool, options, scopeId)
    if (slice === null) {
      const [left] = await pool.query<{ count: bigint }>(
        'select count(*) from customer_change where settled_at is null',
      )
      if (left?.count === 0n) return
    }
    scopeId = slice?.isMore ? slice.scopeId - 1 : (slice?.scopeId ?? 0)
  }
}

/** Every place in the database that holds the text: any column that can, of any table. */
async function placesOf(text: string): Promise<string[]> {
  const columns = await pool.query<{ table: string; column: string; type: string }>(
    `select c.oid::regclass::text as table, quote_ident(a.attname) as column, a.atttypid::regtype::text as type
     from pg_class c
     join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'public'
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relkind = 'r'
       and a.atttypid::regtype::text in
         ('text', 'jsonb', 'json', 'bytea', 'text[]', 'jsonb[]', 'bytea[]', 'character varying', 'name', 'uuid')`,
  )
  assert.ok(columns.length > 100)
  const found = await Promise.all(
    columns.map(async ({ table, column, type }) => {
      const holds =
        type === 'bytea' ? `position(convert_to($1, 'UTF8') in ${column}) > 0` : `position($1 in ${column}::text) > 0`
      const [row] = await pool.query<{ is: boolean }>(`select exists (select from ${table} where ${holds}) as is`, [
        text,
      ])
      return row?.is ? [`${table}.${column}`] : []
    }),
  )
  return found.flat()
}

async function customerOf(project: Project, distinctId: string): Promise<Body> {
  const path = `/customers/by_distinct_id/${encodeURIComponent(distinctId)}?project_id=${project.id}`
  const { status, body } = await service.workspace('GET', path)
  return status === 200 ? body : undefined
}

/** Resolves when everything that the app sent was applied. */
async function applied(project: Project, app: App): Promise<void> {
  const distinctId = `marker-${crypto.randomUUID()}`
  await app.post('/event', anEvent(distinctId))
  await eventually(() => customerOf(project, distinctId), aSecondMs)
}

/** The erasers that have ended for the newest deletion of a scope; all of them once it is settled. */
async function endedOf(scopeId: number): Promise<string[]> {
  const [row] = await pool.query<{ ended: string[] | null; settled: boolean }>(
    `select work -> 'ended' as ended, settled_at is not null as settled
     from customer_change
     where scope_id = $1
     order by pos desc
     limit 1`,
    [scopeId],
  )
  return row?.settled ? erasersOf({ tombstoneKey }).map(({ name }) => name) : (row?.ended ?? [])
}

async function erase(project: Project, id: string): Promise<Body> {
  await project.delete(`/customers/${id}`)
  await settle()
  const changes = await project.get(`/customer_changes?project_id=${project.id}&limit=100`)
  return changes.data.find((each: Body) => each.type === 'delete' && each.customer_id === id)
}

describe('DELETE /customers/{id}', () => {
  test('from the answer on every call with any of the ids is 410, for ever, and batch items are rejected alone', async () => {
    const project = await openProject(service)
    await project.feature('exports')
    const app = await project.app()
    const id = await project.customer('gone')
    await project.post(`/customers/${id}/merge`, { source_distinct_id: 'gone-tablet' })
    assert.deepEqual(await project.delete(`/customers/${id}`), { object: 'customer', id, deleted: true })

    for (const distinct_id of ['gone', 'gone-tablet']) {
      const usage = { customerId: distinct_id, featureId: 'exports' }
      const calls: [string, Record<string, unknown>][] = [
        ['/event', anEvent(distinct_id)],
        ['/profile', { distinct_id }],
        ['/entitled', { ...usage, requiredBalance: 1 }],
        ['/feature/consume', { ...usage, operationId: crypto.randomUUID(), quantity: 1 }],
      ]
      for (const [path, body] of calls) {
        const answer = await app.post(path, body)
        assert.deepEqual([path, answer.status, answer.body.code], [path, 410, 'customer_deleted'])
      }
      const batch = await app.postGzip('/batch', { batch: [anEvent('lives'), anEvent(distinct_id), anEvent('lives')] })
      assert.equal(batch.status, 200)
      const { accepted, rejectedFailed, errors } = batch.body
      assert.deepEqual([accepted, rejectedFailed, errors.length, errors[0].index], [2, 1, 1, 1])
      assert.match(errors[0].error, /^customer_deleted: /)
      const created = await service.workspace('POST', '/customers', { body: { project_id: project.id, distinct_id } })
      assert.deepEqual([created.status, created.body.error.code], [410, 'customer_deleted'])
      assert.equal(await customerOf(project, distinct_id), undefined)
    }
    for (const path of ['', '/merges', '/balances', '/grants', '/ledger', '/operations']) {
      assert.equal((await service.workspace('GET', `/customers/${id}${path}`)).status, 404, path)
    }
    assert.equal((await service.workspace('DELETE', `/customers/${id}`)).status, 404)
    const list = await project.get(`/customers?project_id=${project.id}`)
    assert.ok(list.data.every((each: Body) => each.id !== id))
    const [audited] = await pool.query<{ action: string; before_digest: string | null }>(
      `select action, before_digest from audit_log where object_id = $1 order by id desc limit 1`,
      [id],
    )
    assert.deepEqual(audited, { action: 'delete', before_digest: null })
  })

  test('afterwards no table holds a distinct id, an entity, a note or a property of the deleted; the ledger still adds up', async () => {
    const project = await openProject(service)
    await project.feature('exports')
    const app = await project.app()
    const secret = `erase-${crypto.randomUUID()}`
    const [person, tablet, friend] = [`${secret}-person`, `${secret}-tablet`, `friend-${crypto.randomUUID()}`]
    const key = { idempotencyKey: crypto.randomUUID() }
    const id = (await project.post('/customers', { project_id: project.id, distinct_id: person }, key)).id
    await app.post('/event', anEvent(tablet, { properties: { about: secret, $set: { a: secret } } }))
    await app.post('/event', anEvent(person, { event: '$identify', $anon_distinct_id: tablet }))
    await app.post('/event', anEvent(person, { properties: { $increment: { a: 1 } } }))
    await app.postGzip('/batch', { batch: [anEvent(person), anEvent(friend)], historical_migration: true })
    // Somebody else whose device says it was theirs: refused, and told with the id.
    await app.post('/event', anEvent(friend, { event: '$identify', $anon_distinct_id: person }))
    await applied(project, app)
    await eventually(async () => (await project.get(`/customers/${id}/merges`)).data.length > 0, aSecondMs)
    const forced = `${secret}-forced`
    await project.customer(forced)
    const merged = await project.post(
      `/customers/${id}/merge`,
      { source_distinct_id: forced, force: true },
      { idempotencyKey: crypto.randomUUID() },
    )
    await project.post(`/customers/${id}/merges/${merged.id}/split`)
    await project.post(`/customers/${id}/merge`, { source_distinct_id: forced })
    await project.patch(`/customers/${id}`, { properties: { set: { b: [secret] } } })
    await project.post(`/customers/${id}/entities`, { feature: 'exports', entity_id: `${secret}-seat` })
    const seat = { entity_id: `${secret}-seat`, note: `for ${secret}` }
    const granted = { feature: 'exports', allowance: 9, ...seat }
    await project.post(`/customers/${id}/grants`, granted, { idempotencyKey: crypto.randomUUID() })
    const operationId = crypto.randomUUID()
    const usage = { customerId: person, featureId: 'exports', entityId: `${secret}-seat` }
    assert.equal((await app.post('/feature/consume', { ...usage, operationId, quantity: 4 })).body.accepted, true)
    await project.post(`/operations/${operationId}/reverse`, { customer_id: id, reason: `sorry ${secret}` })
    await applied(project, app)
    const scopeId = await project.scopeId()
    await pool.query(
      `insert into dead_event (scope_id, stream, gen, xid, seq, uuid, distinct_id, received_at, payload, error)
       values ($1, 0, 1, '1', 1, gen_random_uuid(), $2, now(), $2, $2)`,
      [scopeId, person],
    )
    const places = new Set(await placesOf(secret))
    for (const table of [
      'customer_alias',
      'merge_journal',
      'command',
      'dead_event',
      'event_warning_sample',
      'idempotency',
    ]) {
      assert.ok(
        [...places].some((place) => place.startsWith(`${table}.`)),
        table,
      )
    }

    const startedAt = performance.now()
    const change = await erase(project, id)
    assert.deepEqual(await placesOf(secret), [])
    assert.ok(performance.now() - startedAt < 60_000)
    assert.ok(Date.parse(change.erased_at) >= Date.parse(change.created_at), JSON.stringify(change))

    // The friend keeps what is theirs, and repeats are still known as such.
    assert.equal((await customerOf(project, friend)).distinct_ids.length, 1)
    assert.deepEqual(await findings(pool, { scopeId } as Parameters<typeof findings>[1]), [])
    const answer = await service.workspace('POST', '/customers', {
      body: { project_id: project.id, distinct_id: person },
      ...key,
    })
    assert.equal(answer.status, 410)
  })

  test('events that were on their way, and their repeats, are dropped', async () => {
    const project = await openProject(service)
    const app = await project.app()
    const id = await project.customer('late')
    const scopeId = await project.scopeId()
    // What another process appended before the deletion, and the lane has not taken yet.
    await pool.transaction(async (tx) => {
      await tx.query('select from lane where id = $1 for update', [scopeId])
      const events = Array.from({ length: 5 }, () => anEvent('late', { properties: { $set: { back: true } } }))
      for (const event of events) assert.equal((await app.post('/event', event)).status, 200)
      await pool.query(
        `insert into customer_tombstone (scope_id, id_hash) values ($1, sha256($2::bytea || convert_to('late', 'UTF8')))`,
        [scopeId, tombstoneKey],
      )
      assert.equal((await app.post('/event', events[0] ?? {})).status, 410)
    })
    await project.delete(`/customers/${id}`)
    await applied(project, app)
    await settle()
    const [left] = await pool.query<{ events: bigint; customers: bigint }>(
      `select (select count(*) from event where scope_id = $1 and distinct_id = 'late') as events,
         (select count(*) from customer where scope_id = $1 and properties ? 'back') as customers`,
      [scopeId],
    )
    assert.deepEqual(left, { events: 0n, customers: 0n })
  })

  test('an event that names the deleted afterwards is stored without the name', async () => {
    const project = await openProject(service)
    const app = await project.app()
    await project.delete(`/customers/${await project.customer('gone')}`)
    const naming = [{ $anon_distinct_id: 'gone' }, { properties: { $anon_distinct_id: 'gone', kept: 1 } }]
    for (const said of naming) await app.post('/event', anEvent('other', { event: '$identify', ...said }))
    await applied(project, app)
    const stored = await pool.query(
      `select props, merge ->> 'reason' as reason from event where scope_id = $1 and event = '$identify' order by pos`,
      [await project.scopeId()],
    )
    const reason = 'source_deleted'
    assert.deepEqual(stored, [
      { props: {}, reason },
      { props: { kept: 1 }, reason },
    ])
  })

  test('erasing is taken up wherever it was left, and repeated it changes nothing', async () => {
    const project = await openProject(service)
    const app = await project.app()
    const distinctId = `again-${crypto.randomUUID()}`
    await app.postGzip('/batch', { batch: Array.from({ length: 30 }, () => anEvent(distinctId)) })
    await applied(project, app)
    const { id } = await customerOf(project, distinctId)
    await project.delete(`/customers/${id}`)
    const options = { erasers: erasersOf({ tombstoneKey }), now: Date.now, appendsEndMs: 0 }
    const behind = (await project.scopeId()) - 1
    // Each of them crashes after its work, with all that it did in that slice. The service itself may be quicker.
    for (const eraser of options.erasers) {
      const crashing: typeof eraser = {
        ...eraser,
        async erase(...slice) {
          await eraser.erase(...slice)
          throw new Error('crash')
        },
      }
      const erasers = options.erasers.map((each) => (each === eraser ? crashing : each))
      let crashes = 0
      while (crashes < 2 && !(await endedOf(behind + 1)).includes(eraser.name)) {
        await settleChanges(pool, { ...options, erasers }, behind).catch((error: Error) => {
          assert.equal(error.message, 'crash')
          crashes++
        })
      }
    }
    await Promise.all([settle(), settle(), settle()])
    assert.deepEqual(await placesOf(distinctId), [])
    assert.equal(await settleChanges(pool, options, 0), null)
  })

  test('a restored backup forgets again whom it brought back', async () => {
    const project = await openProject(service)
    const distinctId = `restored-${crypto.randomUUID()}`
    const id = await project.customer(distinctId)
    const scopeId = await project.scopeId()
    await pool.query(
      `insert into customer_tombstone (scope_id, id_hash) values ($1, sha256($2::bytea || convert_to($3, 'UTF8')))`,
      [scopeId, tombstoneKey, distinctId],
    )
    assert.equal(await deleteBuried(pool, { tombstoneKey, participants: [] }), 1)
    assert.equal(await deleteBuried(pool, { tombstoneKey, participants: [] }), 0)
    assert.equal((await service.workspace('GET', `/customers/${id}`)).status, 404)
    await settle()
    assert.deepEqual(await placesOf(distinctId), [])
  })
})

describe('stored events', () => {
  test('are the survivor’s after a merge, and by their distinct ids the source’s again after a split', async () => {
    const project = await openProject(service)
    const app = await project.app()
    const scopeId = await project.scopeId()
    for (const id of ['anon', 'ada', 'anon']) await app.post('/event', anEvent(id))
    await applied(project, app)
    const [source, target] = [await project.customer('anon'), await project.customer('ada')]
    const owners = async () => {
      const rows = await pool.query<{ distinct_id: string; id: string }>(
        `select distinct distinct_id, 'cus_' || customer_id as id
         from event where scope_id = $1 and distinct_id in ('anon', 'ada') order by 1`,
        [scopeId],
      )
      return rows.map(({ distinct_id, id }) => [distinct_id, id])
    }
    const { id: mergeId } = await project.post(`/customers/${target}/merge`, { source_distinct_id: 'anon' })
    await app.post('/event', anEvent('anon'))
    await applied(project, app)
    await settle()
    assert.deepEqual(await owners(), [
      ['ada', target],
      ['anon', target],
    ])
    await project.post(`/customers/${target}/merges/${mergeId}/split`)
    await settle()
    assert.deepEqual(await owners(), [
      ['ada', target],
      ['anon', source],
    ])
  })
})

describe('GET /customer_changes', () => {
  test('merges, splits and deletions by position, with a cursor that resumes for ever', async () => {
    const project = await openProject(service)
    const path = `/customer_changes?project_id=${project.id}`
    const empty = await project.get(path)
    assert.deepEqual([empty.data, empty.has_more], [[], false])

    const [source, target] = [await project.customer('one'), await project.customer('two')]
    const { id: mergeId } = await project.post(`/customers/${target}/merge`, { source_distinct_id: 'one' })
    await project.post(`/customers/${target}/merges/${mergeId}/split`)
    await project.delete(`/customers/${source}`)
    const { data, next_cursor: end } = await project.get(`${path}&cursor=${empty.next_cursor}`)
    assert.deepEqual(
      data.map(({ type, customer_id, source_customer_id, merge_id }: Body) => [
        ...[type, customer_id, source_customer_id, merge_id],
      ]),
      [
        ['merge', target, source, mergeId],
        ['split', target, source, mergeId],
        ['delete', source, null, null],
      ],
    )
    const positions = data.map(({ position }: Body) => position)
    assert.deepEqual(
      positions,
      positions.toSorted((a: number, b: number) => a - b),
    )
    const pages: Body[] = []
    for (let cursor = empty.next_cursor, more = true; more; ) {
      const page = await project.get(`${path}&limit=1&cursor=${cursor}`)
      pages.push(...page.data)
      cursor = page.next_cursor
      more = page.has_more
    }
    assert.deepEqual(
      pages.map(({ id }) => id),
      data.map(({ id }: Body) => id),
    )
    const nothing = await project.get(`${path}&cursor=${end}`)
    assert.deepEqual([nothing.data, nothing.next_cursor], [[], end])
    await project.delete(`/customers/${target}`)
    assert.equal((await project.get(`${path}&cursor=${end}`)).data.length, 1)
    const wrong = await service.workspace('GET', `${path}&cursor=bm9uZQ`)
    assert.equal(wrong.status, 400)
  })
})
