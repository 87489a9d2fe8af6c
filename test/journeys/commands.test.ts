import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import type { Sql } from '../../src/db/pool.ts'
import { eventually } from '../app/project.ts'
import { startService } from '../harness/service.ts'
import { somebodyWaits } from '../harness/waits.ts'
import { assertRefused } from '../workspace/api.ts'
import { deviceDraft, newJourneyId, openStage, type Published, serverDraft } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const stage = await openStage(service)
const every = await stage.publish(deviceDraft({ frequency: { type: 'every_match' } }))
const place = `?project_id=${stage.project.id}`

async function waiting(who: string, of: Published = every): Promise<string> {
  const journeyId = newJourneyId()
  await stage.completed(who, { journeyId, of, section: 'tell', outcome: 'later' })
  await stage.journeyIs(journeyId, ({ status }) => status === 'waiting')
  return journeyId
}

const start = async (of: Published, who = randomUUID()) => {
  const body = { app_id: stage.app.id, distinct_id: who }
  return (await stage.call('POST', `/experiences/${of.id}/start`, { body })).body.journey_id as string
}
const api = () => serverDraft({ type: 'api' })

describe('a journey', () => {
  test('is read with its transitions and legs, in pages, newest first', async () => {
    const who = randomUUID()
    const id = await waiting(who)
    const transitions = await stage.transitions(id)
    assert.deepEqual(
      transitions.map(({ rev, from, to, input }) => [rev, from, to, input.kind]),
      [
        [2, 'on_device:tell', 'waiting:later', 'legCompleted'],
        [1, 'none', 'on_device:tell', 'enrol'],
      ],
    )
    const page = (await stage.call('GET', `/journeys/${id}/transitions?limit=1`)).body
    assert.deepEqual([page.data.length, page.has_more], [1, true])
    const next = (await stage.call('GET', `/journeys/${id}/transitions?limit=1&cursor=${page.next_cursor}`)).body
    assert.deepEqual([next.data[0].rev, next.has_more, next.next_cursor], [1, false, null])
    const journey = await stage.journey(id)
    assert.equal(journey.next_timer.kind, 'step')
  })

  test('is listed by customer, Experience and status', async () => {
    const of = await stage.publish(deviceDraft({ frequency: { type: 'every_match' } }))
    const who = randomUUID()
    const [a, b] = [await waiting(who, of), await waiting(who, of)]
    await stage.call('POST', `/journeys/${a}/cancel`, { body: {} })
    const customer = await stage.project.customer(who)
    const list = async (query: string) =>
      (await stage.call('GET', `/journeys${place}&${query}`)).body.data.map(({ id }: { id: string }) => id)
    assert.deepEqual(await list(`customer_id=${customer}`), [a, b].toSorted().toReversed())
    assert.deepEqual(await list(`experience_id=${of.id}&status=waiting`), [b])
    assert.deepEqual(await list(`experience_id=${of.key}&status=ended`), [a])
    assert.deepEqual(await list('experience_id=exp_none'), [])
    const first = (await stage.call('GET', `/journeys${place}&customer_id=${customer}&limit=1`)).body
    const second = (
      await stage.call('GET', `/journeys${place}&customer_id=${customer}&limit=1&cursor=${first.next_cursor}`)
    ).body
    assert.deepEqual(new Set([first.data[0].id, second.data[0].id]), new Set([a, b]))
    assertRefused(await stage.call('GET', `/journeys${place}&customer_id=cus_none`), 404, 'not_found')
    assert.equal((await stage.call('GET', `/journeys${place}&status=gone`)).status, 400)
    assertRefused(await stage.call('GET', `/journeys/${randomUUID()}`), 404, 'not_found')
  })

  test('is cancelled once, with the reason that was given', async () => {
    const id = await waiting(randomUUID())
    const { body } = await stage.call('POST', `/journeys/${id}/cancel`, { body: { reason: 'by support' } })
    assert.deepEqual(
      [body.status, body.end_reason, body.end_detail, body.next_timer],
      ['ended', 'cancelled', 'by support', null],
    )
    assertRefused(await stage.call('POST', `/journeys/${id}/cancel`, { body: {} }), 409, 'conflict')
  })

  test('is advanced to its next timer in test, and not in live', async () => {
    const id = await waiting(randomUUID())
    const { status, body } = await stage.call('POST', `/journeys/${id}/advance`)
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.status, body.section_key, body.generation], ['armed', 'again', 1])
    const live = await stage.call('POST', `/journeys/${id}/advance`, { headers: { 'x-service-env': 'live' } })
    assertRefused(live, 400, 'invalid_request')
    const after = await stage.call('POST', `/journeys/${id}/advance`)
    assert.deepEqual([after.body.status, after.body.end_reason], ['ended', 'completed'])
    assertRefused(await stage.call('POST', `/journeys/${id}/advance`), 409, 'conflict')
  })

  test('rests while its customer is paused, and goes on with what was left', async () => {
    const who = randomUUID()
    const id = await waiting(who)
    const customer = await stage.project.customer(who)
    for (let i = 0; i < 2; i++) await stage.project.post(`/customers/${customer}/pause_journeys`)
    const resting = await stage.journey(id)
    assert.deepEqual([resting.held, resting.status, resting.next_timer], [true, 'waiting', null])
    for (let i = 0; i < 2; i++) await stage.project.post(`/customers/${customer}/resume_journeys`)
    const going = await stage.journey(id)
    assert.deepEqual([going.held, going.next_timer.kind], [false, 'step'])
  })
})

test('a journey that is just beginning when its customer is paused rests like those before it', async () => {
  const of = await stage.publish(api())
  const who = randomUUID()
  const customer = await stage.project.customer(who)
  const acts = await service.pool.transaction(async (tx) => {
    await holdEnrolment(tx, of, who)
    const starting = start(of, who)
    await somebodyWaits(service.pool)
    const pausing = stage.project.post(`/customers/${customer}/pause_journeys`)
    await Promise.race([pausing, somebodyWaits(service.pool, 2)])
    return { starting, pausing }
  })
  await acts.pausing
  const resting = await stage.journey(await acts.starting)
  assert.deepEqual([resting.status, resting.held], ['armed', true])
})

test('a start that waits for its turn begins nothing in an Experience that is paused meanwhile', async () => {
  const of = await stage.publish(api())
  const who = randomUUID()
  await stage.project.customer(who)
  const body = { app_id: stage.app.id, distinct_id: who }
  const ask = () => stage.call('POST', `/experiences/${of.id}/start`, { body })
  const { first, second } = await service.pool.transaction(async (tx) => {
    await holdEnrolment(tx, of, who)
    const going = ask()
    await somebodyWaits(service.pool)
    const waiting = ask()
    // A customer's starts come one after the other: it has arrived, and waits for the first.
    await stage.call('GET', `/experiences/${of.id}${place}`)
    await stage.project.post(`/experiences/${of.id}/pause${place}`, {})
    return { first: going, second: waiting }
  })
  assert.deepEqual([(await first).body.status, (await second).body.status], ['started', 'ineligible'])
})

test('a customer whose journeys rest is offered nothing, and everything again afterwards; each is a new profile', async () => {
  const who = randomUUID()
  const customer = await stage.project.customer(who)
  let tag = ''
  const arms = async (): Promise<string[]> => {
    const { status, headers, body } = await stage.app.post('/profile', { distinct_id: who }, { 'if-none-match': tag })
    assert.equal(status, 200)
    tag = headers.get('etag') ?? ''
    return body.armedLegs.map(({ reference }: { reference: { experienceId: string } }) => reference.experienceId)
  }
  assert.ok((await arms()).includes(every.id))
  await stage.project.post(`/customers/${customer}/pause_journeys`)
  assert.deepEqual(await arms(), [])
  const path = `/customers/${customer}/profile?app_id=${stage.app.id}&experience_id=${every.id}`
  assert.equal((await stage.project.get(path)).experiences[0].reason, 'customer_paused')
  await stage.project.post(`/customers/${customer}/resume_journeys`)
  assert.ok((await arms()).includes(every.id))
})

const hold = { in_flight: 'hold' }

/** The journey of a start that had seen what is live, and is decided once the command was carried out, or waits for it. */
async function beginningWhile(command: (of: Published) => Promise<unknown>): Promise<string> {
  const of = await stage.publish(api())
  const who = randomUUID()
  await stage.project.customer(who)
  const acts = await service.pool.transaction(async (tx) => {
    await holdEnrolment(tx, of, who)
    const starting = start(of, who)
    await somebodyWaits(service.pool)
    const commanding = command(of)
    await Promise.race([commanding.then(swept), somebodyWaits(service.pool, 2)])
    return { starting, commanding }
  })
  await acts.commanding
  return acts.starting
}

/** A start looks whether the Experience is live and the customer is paused, and then waits for this row. */
const holdEnrolment = (tx: Sql, of: Published, who: string) =>
  tx.query(
    `insert into experience_enrolment (scope_id, experience_id, customer_id)
     select e.scope_id, e.id, a.customer_id
     from experience e
     join customer_alias a on a.scope_id = e.scope_id and a.distinct_id = $2
     where e.public_id = $1`,
    [of.id, who],
  )

/** Every command has been told to whom it can be told. */
const swept = () => eventually(async () => (await service.pool.query('select from journey_sweep')).length === 0, 20_000)

describe('what becomes of journeys under way', () => {
  test('is also told to one that is just beginning: it rests, or stops', async () => {
    const holding = await beginningWhile((of) => stage.project.post(`/experiences/${of.id}/pause${place}`, hold))
    await stage.journeyIs(holding, ({ held }) => held)
    const stop = { in_flight: 'stop' }
    const taken = await beginningWhile((of) => stage.project.post(`/experiences/${of.id}/unpublish${place}`, stop))
    await stage.journeyIs(taken, ({ status }) => status === 'ended')
    const replaced = await beginningWhile((of) => of.publish({ ...api(), priority: 1 }, stop))
    await stage.journeyIs(replaced, ({ status }) => status === 'ended')
  })

  test('when another version goes live: they finish, and stay on the version they began with', async () => {
    const of = await stage.publish(api())
    const id = await start(of)
    await of.publish({ ...api(), priority: 1 })
    await stage.quiet()
    const journey = await stage.journey(id)
    assert.deepEqual([journey.status, journey.version_id], ['armed', of.versionId])
  })

  test('with in_flight stop they end', async () => {
    const of = await stage.publish(api())
    const id = await start(of)
    await of.publish({ ...api(), priority: 1 }, { in_flight: 'stop' })
    const journey = await stage.journeyIs(id, ({ status }) => status === 'ended')
    assert.equal(journey.end_reason, 'cancelled')
    const [publication] = (await stage.call('GET', `/publications${place}&experience_id=${of.id}`)).body.data
    assert.equal(publication.in_flight, 'stop')
    assert.equal((await stage.journey(await start(of))).status, 'armed')
  })

  test('with in_flight stop or move_armed it is also told to those that began while the version was published', async () => {
    const [stopped, moved] = [await stage.publish(api()), await stage.publish(api())]
    const begun = await service.pool.transaction(async (tx) => {
      // Where publications take their numbers.
      await tx.query('select from publish_seq for update')
      const stopping = stopped.publish({ ...api(), priority: 1 }, { in_flight: 'stop' })
      const moving = moved.publish({ ...api(), priority: 1 }, { in_flight: 'move_armed' })
      await somebodyWaits(service.pool, 2)
      return { publishing: [stopping, moving], ids: [await start(stopped), await start(moved)] }
    })
    const [, next] = await Promise.all(begun.publishing)
    await stage.journeyIs(begun.ids[0] ?? '', ({ status }) => status === 'ended')
    const going = await stage.journeyIs(begun.ids[1] ?? '', ({ generation }) => generation === 2)
    assert.equal(going.version_id, next?.versionId)
  })

  test('with in_flight move_armed what nobody has started is offered again, of the new version', async () => {
    const of = await stage.publish(api())
    const [armed, running] = [await start(of), randomUUID()]
    const begun = await start(of, running)
    await stage.started(running, { journeyId: begun, of, section: 'again', generation: 1 })
    await stage.journeyIs(begun, ({ status }) => status === 'on_device')
    const next = await of.publish({ ...api(), priority: 1 }, { in_flight: 'move_armed' })
    const moved = await stage.journeyIs(armed, ({ generation }) => generation === 2)
    assert.deepEqual([moved.version_id, moved.status, moved.section_key], [next.versionId, 'armed', 'again'])
    assert.equal((await stage.journey(begun)).version_id, of.versionId)
    const legs = await stage.legs(armed)
    assert.deepEqual(
      legs.map(({ generation, status }) => [generation, status]),
      [
        [2, 'armed'],
        [1, 'withdrawn'],
      ],
    )
  })

  test('unpublish lets them finish or stops them; archive stops them', async () => {
    const [finishing, stopping, archived] = [
      await stage.publish(api()),
      await stage.publish(api()),
      await stage.publish(api()),
    ]
    const ids = [await start(finishing), await start(stopping), await start(archived)]
    await stage.project.post(`/experiences/${finishing.id}/unpublish${place}`, {})
    await stage.project.post(`/experiences/${stopping.id}/unpublish${place}`, { in_flight: 'stop' })
    await stage.project.post(`/experiences/${archived.id}/archive${place}`, {})
    for (const id of ids.slice(1)) await stage.journeyIs(id, ({ status }) => status === 'ended')
    assert.equal((await stage.journey(ids[0] ?? '')).status, 'armed')
  })

  test('pause lets them go on, or holds them until it is resumed', async () => {
    const [going, held] = [await stage.publish(api()), await stage.publish(api())]
    const ids = [await start(going), await start(held)]
    await stage.project.post(`/experiences/${going.id}/pause${place}`, {})
    await stage.project.post(`/experiences/${held.id}/pause${place}`, { in_flight: 'hold' })
    await stage.journeyIs(ids[1] ?? '', (journey) => journey.held)
    assert.equal((await stage.journey(ids[0] ?? '')).held, false)
    const who = randomUUID()
    await stage.project.post(`/experiences/${held.id}/resume${place}`, {})
    await stage.journeyIs(ids[1] ?? '', (journey) => !journey.held)
    assert.equal(typeof (await start(held, who)), 'string')
  })

  test('what a device reports only after the pause rests too, of the Experience or of the customer', async () => {
    const of = await stage.publish(deviceDraft({ frequency: { type: 'every_match' } }))
    const begin = async (who: string) => {
      const journeyId = newJourneyId()
      await stage.started(who, { journeyId, of, section: 'tell' })
      return stage.journeyIs(journeyId, ({ status }) => status === 'on_device')
    }
    await stage.project.post(`/experiences/${of.id}/pause${place}`, { in_flight: 'hold' })
    await stage.quiet()
    const late = await begin(randomUUID())
    assert.deepEqual([late.held, late.next_timer], [true, null])
    await stage.project.post(`/experiences/${of.id}/resume${place}`, {})
    const resumed = await stage.journeyIs(late.id, ({ held }) => !held)
    assert.equal(resumed.next_timer.kind, 'run')
    const who = randomUUID()
    const customer = await stage.project.customer(who)
    await stage.project.post(`/customers/${customer}/pause_journeys`)
    const resting = await begin(who)
    assert.equal(resting.held, true)
    await stage.project.post(`/customers/${customer}/resume_journeys`)
    assert.equal((await stage.journey(resting.id)).held, false)
  })
})

test('a funnel counts what was offered, begun and reported, version by version', async () => {
  const of = await stage.publish(deviceDraft({ frequency: { type: 'every_match' } }))
  const ids = await Promise.all(Array.from({ length: 3 }, () => waiting(randomUUID(), of)))
  await stage.started(randomUUID(), { journeyId: newJourneyId(), of, section: 'tell' })
  await stage.call('POST', `/journeys/${ids[0]}/advance`)
  await stage.quiet()
  const funnel = (version = '') => stage.project.get(`/experiences/${of.id}/funnel${place}${version}`)
  const counts = (await funnel()).sections
  assert.deepEqual(counts, [
    { section_key: 'again', armed: 1, started: 0, outcomes: {} },
    { section_key: 'tell', armed: 4, started: 4, outcomes: { later: 3 } },
  ])
  const next = await of.publish({ ...deviceDraft(), priority: 3 })
  assert.deepEqual((await funnel()).sections, [])
  assert.deepEqual((await funnel(`&version_id=${of.versionId}`)).sections, counts)
  assert.equal((await funnel()).version_id, next.versionId)
  await eventually(
    async () => (await stage.call('GET', `/experiences/${of.id}/funnel${place}&version_id=ver_none`)).status === 404,
  )
})
