import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { startContextBytesMax } from '../../src/kernel/limits.ts'
import fc from '../harness/random.ts'
import { startService } from '../harness/service.ts'
import { assertRefused } from '../workspace/api.ts'
import { deviceDraft, newJourneyId, openStage, type Published, serverDraft } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const stage = await openStage(service)
const api = { type: 'api' }
const every = await stage.publish(serverDraft(api))

interface StartOf {
  of?: Published | string
  who?: string
  key?: string
  app?: string
  context?: object
  headers?: Record<string, string>
}

const start = ({ of = every, who = randomUUID(), key, app = stage.app.id, context, headers = {} }: StartOf = {}) =>
  stage.call('POST', `/experiences/${typeof of === 'string' ? of : of.id}/start`, {
    body: { app_id: app, distinct_id: who, ...(context && { context }) },
    headers: { ...(key === undefined ? {} : { 'idempotency-key': key }), ...headers },
  })

const startsOf = async (of: Published, who: string) =>
  (await stage.call('GET', `/experiences/${of.id}/starts?distinct_id=${who}&project_id=${stage.project.id}`)).body.data

describe('a start', () => {
  test('begins a journey of the server: 202, and the first section on a device is offered as generation 1', async () => {
    const who = randomUUID()
    const { status, body } = await start({ who })
    assert.equal(status, 202)
    assert.deepEqual(body, {
      object: 'experience_start',
      experience_id: every.id,
      journey_id: body.journey_id,
      status: 'started',
    })
    assert.match(body.journey_id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const journey = await stage.journey(body.journey_id)
    assert.deepEqual(
      [journey.status, journey.generation, journey.section_key, journey.origin, journey.trust, journey.version_id],
      ['armed', 1, 'again', 'api', 'server', every.versionId],
    )
    assert.equal((await stage.journeysOf(who))[0].id, body.journey_id)
  })

  test('again with the same key is coalesced: the earlier id, also when it has ended, whatever the context', async () => {
    const [who, key] = [randomUUID(), 'order-1']
    const first = await start({ who, key, context: { source: 'a' } })
    assert.equal(first.body.status, 'started')
    await stage.call('POST', `/journeys/${first.body.journey_id}/cancel`, { body: {} })
    for (const context of [{ source: 'a' }, { source: 'b' }, undefined]) {
      const again = await start({ who, key, ...(context && { context }) })
      assert.equal(again.status, 202)
      assert.deepEqual([again.body.status, again.body.journey_id], ['coalesced', first.body.journey_id])
    }
    assert.equal((await stage.journey(first.body.journey_id)).context.event.source, 'a')
  })

  test('with the same key is judged afresh for another customer, app or Experience', async () => {
    const other = await stage.publish(serverDraft(api))
    const android = await stage.project.app('android')
    await other.publish(serverDraft(api))
    const [who, key] = [randomUUID(), 'same']
    const ids = [
      (await start({ who, key })).body,
      (await start({ who: randomUUID(), key })).body,
      (await start({ who, key, of: other })).body,
      (await start({ who, key, of: other, app: android.id })).body,
    ]
    assert.deepEqual(
      ids.map(({ status }) => status),
      ['started', 'started', 'started', 'started'],
    )
    assert.equal(new Set(ids.map(({ journey_id }) => journey_id)).size, 4)
  })

  test('without a key is always one of its own', async () => {
    const who = randomUUID()
    const [a, b] = [await start({ who }), await start({ who })]
    assert.deepEqual([a.body.status, b.body.status], ['started', 'started'])
    assert.notEqual(a.body.journey_id, b.body.journey_id)
  })

  test('whose key was ineligible stays so, and is not judged again', async () => {
    const once = await stage.publish(serverDraft(api, { entry: { frequency: { type: 'one_time' } } }))
    const who = randomUUID()
    assert.equal((await start({ of: once, who, key: 'a' })).body.status, 'started')
    const refused = await start({ of: once, who, key: 'b' })
    assert.equal(refused.status, 202)
    assert.deepEqual(refused.body, {
      object: 'experience_start',
      experience_id: once.id,
      journey_id: null,
      status: 'ineligible',
    })
    const opened = await once.publish(serverDraft(api, { entry: { frequency: { type: 'every_match' } } }))
    assert.equal((await start({ of: opened, who, key: 'b' })).body.status, 'ineligible')
    assert.equal((await start({ of: opened, who, key: 'c' })).body.status, 'started')
    const records = await startsOf(once, who)
    assert.deepEqual(
      records.map(({ key, status, reason }: Record<string, unknown>) => [key, status, reason]),
      [
        ['api:c', 'started', null],
        ['api:b', 'ineligible', 'frequency'],
        ['api:a', 'started', null],
      ],
    )
  })

  test('is ineligible where eligibility is false or unknown, and eligible where it is true', async () => {
    const eligibility = {
      ir_version: 1,
      expr: { type: 'User', op: 'eq', key: 'plan', value: { type: 'String', value: 'trial' } },
    }
    const trial = await stage.publish(serverDraft(api, { entry: { eligibility } }))
    const who = randomUUID()
    assert.equal((await start({ of: trial, who, key: 'a' })).body.status, 'ineligible')
    assert.equal((await startsOf(trial, who))[0].reason, 'eligibility')
    const customer = await stage.project.customer(who)
    await stage.project.patch(`/customers/${customer}`, { properties: { set: { plan: 'trial' } } })
    assert.equal((await start({ of: trial, who, key: 'b' })).body.status, 'started')
  })

  test('is ineligible while the Experience or the customer is paused', async () => {
    const paused = await stage.publish(serverDraft(api))
    const who = randomUUID()
    const place = `?project_id=${stage.project.id}`
    await stage.project.post(`/experiences/${paused.id}/pause${place}`, {})
    assert.equal((await start({ of: paused, who, key: 'a' })).body.status, 'ineligible')
    await stage.project.post(`/experiences/${paused.id}/resume${place}`, {})
    const customer = await stage.project.customer(who)
    await stage.project.post(`/customers/${customer}/pause_journeys`)
    assert.equal((await start({ of: paused, who, key: 'b' })).body.status, 'ineligible')
    await stage.project.post(`/customers/${customer}/resume_journeys`)
    assert.equal((await start({ of: paused, who, key: 'c' })).body.status, 'started')
    assert.deepEqual(
      (await startsOf(paused, who)).map(({ reason }: { reason: string | null }) => reason),
      [null, 'customer_paused', 'experience_paused'],
    )
  })

  test('is ineligible for who is held out, which counts as one enrolment', async () => {
    const variants = [
      { id: 'in', weight: 0.5, is_holdout: false },
      { id: 'out', weight: 0.5, is_holdout: true },
    ]
    const place = { project_id: stage.project.id }
    const holdout = await stage.project.post('/experiments', {
      ...place,
      ...{ key: 'held', name: 'Held', kind: 'holdout', variants, coverage: 1, metrics: [] },
    })
    await stage.project.post(`/experiments/${holdout.id}/start`, {})
    const gated = await stage.publish(
      serverDraft(api, { entry: { frequency: { type: 'one_time' } }, policy: { holdout: holdout.id } }),
    )
    const seen = new Map<string, string>()
    for (let i = 0; seen.size < 2 && i < 60; i++) {
      const who = randomUUID()
      const { status } = (await start({ of: gated, who, key: 'a' })).body
      seen.set(status, who)
    }
    const [inside, outside] = [seen.get('started') ?? '', seen.get('ineligible') ?? '']
    assert.deepEqual(await stage.journeysOf(outside), [])
    assert.equal((await start({ of: gated, who: outside, key: 'b' })).body.status, 'ineligible')
    assert.deepEqual(
      (await startsOf(gated, outside)).map(({ reason }: { reason: string }) => reason),
      ['held_out', 'held_out'],
    )
    const often = await stage.publish(serverDraft(api, { policy: { holdout: holdout.id } }))
    assert.equal((await start({ of: often, who: outside, key: 'a' })).body.status, 'ineligible')
    assert.deepEqual(await stage.journeysOf(outside), [])
    const counted = await service.pool.query<{ who: string; count: number }>(
      `select a.distinct_id as who, e.count
       from experience_enrolment e
       join customer_alias a on a.scope_id = e.scope_id and a.customer_id = e.customer_id
       where a.distinct_id = any($1)
       order by e.count`,
      [[inside, outside]],
    )
    assert.deepEqual(
      new Map(counted.map(({ who, count }) => [who, count])),
      new Map([
        [inside, 1],
        [outside, 1],
      ]),
    )
  })

  test('makes an unknown customer, and takes the Experience by its key too', async () => {
    const who = randomUUID()
    assert.equal((await start({ of: every.key, who })).body.experience_id, every.id)
    assert.equal(typeof (await stage.project.customer(who)), 'string')
  })
})

describe('what a start is refused for, in this order', () => {
  const noKey = { authorization: 'Bearer sk_none' }

  test('401 comes before all else', async () => {
    assertRefused(await start({ of: 'none', app: 'none', headers: noKey }), 401, 'invalid_api_key')
  })

  test('400 for an environment that is none, before the body', async () => {
    const answer = await stage.call('POST', '/experiences/none/start', {
      body: {},
      headers: { 'x-service-env': 'prod' },
    })
    assertRefused(answer, 400, 'invalid_request')
  })

  test('400 for a body that is wrong, before what it names', async () => {
    for (const body of [
      {},
      { app_id: 'none' },
      { app_id: 'none', distinct_id: 'guest' },
      { app_id: 'none', distinct_id: '' },
      { app_id: 'none', distinct_id: 'x'.repeat(257) },
      { app_id: 'none', distinct_id: 'a', context: [] },
      { app_id: 'none', distinct_id: 'a', context: 'text' },
    ]) {
      assert.equal((await stage.call('POST', '/experiences/none/start', { body })).status, 400, JSON.stringify(body))
    }
    const unknown = { app_id: 'none', distinct_id: 'a', more: 1 }
    assert.equal((await stage.call('POST', '/experiences/none/start', { body: unknown })).status, 400)
  })

  test('400 for a key that is not 1 to 255 visible ASCII characters', async () => {
    for (const key of ['k'.repeat(256), 'a b', 'é']) {
      assertRefused(await start({ key }), 400, 'invalid_request', 'Idempotency-Key')
    }
    assert.equal((await start({ key: 'k'.repeat(255) })).body.status, 'started')
    assert.equal((await start({ key: '!~' })).body.status, 'started')
  })

  test('404 not_found for an app of nobody, before the Experience', async () => {
    assertRefused(await start({ of: 'none', app: 'app_none' }), 404, 'not_found', 'app_id')
  })

  test('404 experience_not_startable for one that is unknown, not live there, taken back, or without the trigger', async () => {
    const device = await stage.publish(deviceDraft())
    const gone = await stage.publish(serverDraft(api))
    await stage.project.post(`/experiences/${gone.id}/unpublish?project_id=${stage.project.id}`, {})
    const elsewhere = await stage.project.app('web')
    for (const command of [{ of: 'exp_none' }, { of: device }, { of: gone }, { app: elsewhere.id }]) {
      assertRefused(await start({ ...command, key: 'taken?' }), 404, 'experience_not_startable')
    }
    const live = await stage.call('POST', `/experiences/${every.id}/start`, {
      body: { app_id: stage.app.id, distinct_id: 'a' },
      environment: 'live',
      headers: { 'x-service-env': 'live' },
    })
    assertRefused(live, 404, 'experience_not_startable')
  })

  test('410 for a deleted customer, before the context', async () => {
    const who = randomUUID()
    const customer = await stage.project.customer(who)
    await stage.project.delete(`/customers/${customer}`)
    assertRefused(await start({ who, context: { source: 7 } }), 410, 'customer_deleted')
  })

  test('400 for a context that is too large, lacks what is required, or has another type', async () => {
    const draft = serverDraft(api)
    draft.fields.event = {
      plan: { type: 'string', required: true },
      seats: { type: 'number', required: false, max: 5 },
    } as never
    const needs = await stage.publish(draft)
    for (const context of [undefined, {}, { plan: 7 }, { plan: 'a', seats: 'two' }, { plan: 'a', seats: 6 }]) {
      assertRefused(await start({ of: needs, ...(context && { context }) }), 400, 'invalid_request', 'context')
    }
    assert.equal((await start({ of: needs, context: { plan: 'a', seats: 5, other: true } })).body.status, 'started')
    const filling = (bytes: number) => ({ source: 's'.repeat(bytes - JSON.stringify({ source: '' }).length) })
    assert.equal((await start({ context: filling(startContextBytesMax) })).body.status, 'started')
    assertRefused(await start({ context: filling(startContextBytesMax + 1) }), 400, 'invalid_request', 'context')
  })
})

test('5 of many starts with one key over two processes exactly one is started; all name one journey', async () => {
  await using another = await service.another()
  const who = randomUUID()
  const bodies = await Promise.all(
    Array.from({ length: 1000 }, async (_, i) => {
      const by = i % 2 === 0 ? service : another
      for (;;) {
        const { status, body } = await by.workspace('POST', `/experiences/${every.id}/start`, {
          body: { app_id: stage.app.id, distinct_id: who },
          headers: { 'idempotency-key': 'race' },
        })
        if (status === 202) return body
        assert.equal(status, 503)
      }
    }),
  )
  const by = Map.groupBy(bodies, ({ status }) => status)
  assert.deepEqual([by.get('started')?.length, by.get('coalesced')?.length], [1, 999])
  assert.equal(new Set(bodies.map(({ journey_id }) => journey_id)).size, 1)
  assert.equal((await stage.journeysOf(who)).length, 1)
})

test('of many starts of a one-time Experience with keys of their own exactly one is started', async () => {
  await using another = await service.another()
  const once = await stage.publish(serverDraft(api, { entry: { frequency: { type: 'one_time' } } }))
  const who = randomUUID()
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, i) =>
      (i % 2 === 0 ? service : another).workspace('POST', `/experiences/${once.id}/start`, {
        body: { app_id: stage.app.id, distinct_id: who },
        headers: { 'idempotency-key': `key-${i}` },
      }),
    ),
  )
  assert.equal(answers.filter(({ body }) => body.status === 'started').length, 1)
  assert.equal(answers.filter(({ body }) => body.status === 'ineligible' && body.journey_id === null).length, 59)
})

test('6 whatever begins it, over two processes at once, a one-time Experience is counted once for a customer', async () => {
  await using another = await service.another()
  const once = await stage.publish(deviceDraft())
  const raced = await stage.publish(serverDraft(api, { entry: { frequency: { type: 'one_time' } } }))
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom('start', 'again', 'device'), { minLength: 2, maxLength: 8 }),
      async (ways) => {
        const who = randomUUID()
        await Promise.all(
          ways.map((way, i) => {
            if (way === 'device') return stage.started(who, { journeyId: newJourneyId(), of: once, section: 'tell' })
            return (i % 2 === 0 ? service : another).workspace('POST', `/experiences/${raced.id}/start`, {
              body: { app_id: stage.app.id, distinct_id: who },
              headers: { 'idempotency-key': way === 'again' ? 'again' : `key-${i}` },
            })
          }),
        )
        await stage.quiet()
        const counts = await service.pool.query<{ experience: string; count: number; open: bigint }>(
          `select x.public_id as experience, e.count, (
           select count(*) from journey j
           where j.scope_id = e.scope_id and j.customer_id = e.customer_id and j.experience_id = e.experience_id
             and j.end_reason is distinct from 'refused') as open
         from experience_enrolment e
         join experience x on x.id = e.experience_id
         join customer_alias a on a.scope_id = e.scope_id and a.customer_id = e.customer_id
         where a.distinct_id = $1
           and e.scope_id = $2`,
          [who, await stage.project.scopeId()],
        )
        for (const [of, isIn] of [
          [once, ways.includes('device')],
          [raced, ways.some((way) => way !== 'device')],
        ] as const) {
          const row = counts.find(({ experience }) => experience === of.id)
          assert.deepEqual([row?.count ?? 0, Number(row?.open ?? 0)], isIn ? [1, 1] : [0, 0])
        }
      },
    ),
    { numRuns: 8 },
  )
})
