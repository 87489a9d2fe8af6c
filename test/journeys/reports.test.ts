import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { startService } from '../harness/service.ts'
import { deviceDraft, newJourneyId, openStage } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const stage = await openStage(service)
const every = await stage.publish(deviceDraft({ frequency: { type: 'every_match' } }))
const once = await stage.publish(deviceDraft())

/** How often each disposition was counted by what `work` sends. */
async function countedBy(work: () => Promise<void>): Promise<Record<string, number>> {
  await stage.quiet()
  const before = await stage.dispositions()
  await work()
  await stage.quiet()
  const now = await stage.dispositions()
  const changed = Object.keys(now).filter((name) => now[name] !== (before[name] ?? 0))
  return Object.fromEntries(changed.map((name) => [name, (now[name] ?? 0) - (before[name] ?? 0)]))
}

describe('a leg that a device began', () => {
  test('makes the journey under the id of the device, on the reported version and millisecond', async () => {
    const [who, journeyId, startedAt] = [randomUUID(), newJourneyId(), Date.now() - 1234]
    await stage.started(who, { journeyId, of: every, section: 'tell', startedAt })
    const journey = await stage.journeyIs(journeyId, ({ status }) => status === 'on_device')
    assert.deepEqual(
      [journey.origin, journey.generation, journey.section_key, journey.version_id, journey.app_id, journey.rev],
      ['device', 0, 'tell', every.versionId, stage.app.id, 1],
    )
    assert.equal(journey.started_at, new Date(startedAt).toISOString())
    const [leg] = await stage.legs(journeyId)
    assert.deepEqual([leg.generation, leg.status, leg.leg_id], [0, 'on_device', every.legs.tell])
    assert.equal(leg.armed_at, null)
  })

  test('goes on along the plan when it is completed, with what the plan lets through', async () => {
    const [who, journeyId] = [randomUUID(), newJourneyId()]
    const report = { journeyId, of: every, section: 'tell', outcome: 'later' }
    await stage.started(who, report)
    await stage.completed(who, { ...report, outputs: { event: { source: 'mail', other: 1 } } })
    const journey = await stage.journeyIs(journeyId, ({ status }) => status === 'waiting')
    assert.deepEqual([journey.step_id, journey.context], ['later', { event: { source: 'mail' }, responses: {} }])
    const [leg] = await stage.legs(journeyId)
    assert.deepEqual([leg.status, leg.outcome, leg.dispositions], ['completed', 'later', ['output_dropped']])
  })

  test('is begun and ended by a completion alone; the start that comes later fills its time only', async () => {
    const [who, journeyId] = [randomUUID(), newJourneyId()]
    const report = { journeyId, of: every, section: 'tell', outcome: 'later' }
    const counts = await countedBy(async () => {
      await stage.completed(who, report)
      await stage.started(who, report)
    })
    assert.deepEqual(counts, { late_start: 1 })
    assert.equal((await stage.journey(journeyId)).status, 'waiting')
  })

  test('is one journey however often it is reported, also under new event ids', async () => {
    const [who, journeyId] = [randomUUID(), newJourneyId()]
    const report = { journeyId, of: every, section: 'tell', outcome: 'later' }
    const counts = await countedBy(async () => {
      for (let i = 0; i < 3; i++) await stage.started(who, report)
      for (let i = 0; i < 3; i++) await stage.completed(who, report)
    })
    assert.deepEqual(counts, { duplicate: 4 })
    assert.equal((await stage.transitions(journeyId)).length, 2)
  })

  test('ends as abandoned under an outcome that the plan does not know', async () => {
    const [who, journeyId] = [randomUUID(), newJourneyId()]
    await stage.completed(who, { journeyId, of: every, section: 'tell', outcome: 'made_up' })
    const journey = await stage.journeyIs(journeyId, ({ status }) => status === 'ended')
    assert.equal(journey.end_reason, 'completed')
    const [leg] = await stage.legs(journeyId)
    assert.deepEqual([leg.outcome, leg.dispositions], ['abandoned', ['outcome_unknown']])
  })

  test('counts for the frequency: a second one of a one-time Experience is refused, and nothing follows it', async () => {
    const who = randomUUID()
    const [first, second] = [newJourneyId(), newJourneyId()]
    await stage.started(who, { journeyId: first, of: once, section: 'tell' })
    await stage.completed(who, { journeyId: second, of: once, section: 'tell', outcome: 'later' })
    const refused = await stage.journeyIs(second, ({ status }) => status === 'ended')
    assert.deepEqual([refused.end_reason, refused.end_detail], ['refused', 'frequency'])
    assert.equal((await stage.journey(first)).status, 'on_device')
  })
})

describe('a report that is no more than telemetry is counted by why', () => {
  const names = (journeyId: string) => ({ journeyId, of: every, section: 'tell', outcome: 'later' })

  test('late: when its journey has ended', async () => {
    const [who, journeyId] = [randomUUID(), newJourneyId()]
    await stage.started(who, names(journeyId))
    await stage.journeyIs(journeyId, ({ status }) => status === 'on_device')
    await stage.call('POST', `/journeys/${journeyId}/cancel`, { body: {} })
    assert.deepEqual(await countedBy(() => stage.completed(who, names(journeyId))), { late: 1 })
    const [leg] = await stage.legs(journeyId)
    assert.deepEqual([leg.outcome, leg.dispositions], ['later', ['late']])
    assert.equal((await stage.journey(journeyId)).end_reason, 'cancelled')
  })

  test('unknown_generation: for one that was never offered, of a known and of an unknown journey', async () => {
    const [who, journeyId] = [randomUUID(), newJourneyId()]
    const counts = await countedBy(async () => {
      await stage.started(who, { ...names(newJourneyId()), generation: 1 })
      await stage.started(who, names(journeyId))
      await stage.started(who, { ...names(journeyId), generation: 1 })
    })
    assert.deepEqual(counts, { unknown_generation: 2 })
  })

  test('reference_mismatch: for a section that nothing begins with, another leg, another app', async () => {
    const [who, journeyId] = [randomUUID(), newJourneyId()]
    const other = await stage.project.app('android')
    const counts = await countedBy(async () => {
      await stage.started(who, { ...names(newJourneyId()), section: 'again' })
      await stage.started(who, names(journeyId))
      await stage.completed(who, { ...names(journeyId), section: 'again' })
    })
    assert.deepEqual(counts, { reference_mismatch: 2 })
    // In that app the version was never published.
    const elsewhere = await countedBy(() => stage.completed(who, names(journeyId), other))
    assert.deepEqual(elsewhere, { unknown_release: 1 })
  })

  test('owner_mismatch: for the journey of somebody else', async () => {
    const journeyId = newJourneyId()
    const counts = await countedBy(async () => {
      await stage.started(randomUUID(), names(journeyId))
      await stage.completed(randomUUID(), names(journeyId))
    })
    assert.deepEqual(counts, { owner_mismatch: 1 })
    assert.equal((await stage.journey(journeyId)).status, 'on_device')
  })

  test('unknown_release: for an Experience, a version or a leg that was never published here', async () => {
    const who = randomUUID()
    const counts = await countedBy(async () => {
      for (const more of [
        { experience_id: 'exp_other' },
        { experience_version_id: 'ver_other' },
        { leg_id: 'f'.repeat(64) },
      ]) {
        await stage.started(who, { ...names(newJourneyId()), more })
      }
    })
    assert.deepEqual(counts, { unknown_release: 3 })
    assert.deepEqual(await stage.journeysOf(who), [])
  })

  test('invalid: without what a report needs', async () => {
    const who = randomUUID()
    const wrong = [
      { journey_id: randomUUID() },
      { journey_id: 7 },
      { leg_generation: -1 },
      { leg_generation: 0.5 },
      { leg_generation: 2 ** 31 },
      { started_at: 'yesterday' },
      { started_at: 5 },
      { leg_id: 'x' },
      { experience_id: 'e'.repeat(257) },
    ]
    const counts = await countedBy(async () => {
      for (const more of wrong) await stage.started(who, { ...names(newJourneyId()), more })
      await stage.completed(who, { ...names(newJourneyId()), more: { outcome: null } })
    })
    assert.deepEqual(counts, { invalid: wrong.length + 1 })
  })

  test('historical: in an import', async () => {
    const properties = {
      ...{ journey_id: newJourneyId(), experience_id: every.id, experience_version_id: every.versionId },
      ...{ leg_id: every.legs.tell, leg_generation: 0, started_at: new Date().toISOString() },
    }
    const item = { event: '$journey_leg_started', distinct_id: randomUUID(), uuid: randomUUID(), properties }
    const counts = await countedBy(async () => {
      const { status } = await stage.app.postGzip('/batch', { batch: [item], historical_migration: true })
      assert.equal(status, 200)
      await new Promise((resolve) => setTimeout(resolve, 500))
    })
    assert.deepEqual(counts, { historical: 1 })
  })

  test('over_quota: beyond 200 of a customer a day, who is not stopped in what began before', async () => {
    const who = randomUUID()
    const ids = Array.from({ length: 201 }, newJourneyId)
    const counts = await countedBy(async () => {
      for (const journeyId of ids) await stage.started(who, names(journeyId))
      await stage.completed(who, names(ids[0] ?? ''))
    })
    assert.deepEqual(counts, { over_quota: 1 })
    assert.equal((await stage.call('GET', `/journeys/${ids[200]}`)).status, 404)
  })
})

test('whatever is forged or stale, it stays in the log and changes nothing; the true report still counts', async () => {
  const [who, thief, journeyId] = [randomUUID(), randomUUID(), newJourneyId()]
  const told = { journeyId, of: every, section: 'tell', outcome: 'later' }
  await stage.started(who, told)
  await stage.completed(who, told)
  await stage.journeyIs(journeyId, ({ status }) => status === 'waiting')
  await stage.project.post(`/journeys/${journeyId}/advance`, {})
  const { rev, generation, status } = await stage.journey(journeyId)
  assert.deepEqual([generation, status], [1, 'armed'])
  const again = { ...told, section: 'again', generation: 1, outcome: 'greeted' }
  const counts = await countedBy(async () => {
    await stage.completed(thief, again)
    await stage.completed(who, { ...again, generation: 0 })
    await stage.completed(who, { ...again, generation: 2 })
    await stage.completed(who, { ...told, generation: 1 })
    await stage.completed(who, { ...told, more: { outcome: 'other' } })
    await stage.completed(who, { ...again, more: { experience_version_id: 'ver_other' } })
    await stage.completed(who, { ...again, more: { journey_id: randomUUID() } })
  })
  assert.deepEqual(counts, {
    ...{
      owner_mismatch: 1,
      reference_mismatch: 2,
      unknown_generation: 1,
      duplicate: 1,
      unknown_release: 1,
      invalid: 1,
    },
  })
  const before = await stage.journey(journeyId)
  assert.deepEqual([before.rev, before.generation, before.status], [rev, generation, status])
  const [stored] = await service.pool.query<{ count: number }>(
    `select count(*)::int as count
     from event
     where scope_id = $1 and distinct_id = any($2) and event = '$journey_leg_completed'`,
    [await stage.project.scopeId(), [who, thief]],
  )
  assert.equal(stored?.count, 8)
  await stage.completed(who, again)
  await stage.journeyIs(journeyId, (one) => one.status === 'ended' && one.end_reason === 'completed')
})
