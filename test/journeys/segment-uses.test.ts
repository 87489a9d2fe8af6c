import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startService } from '../harness/service.ts'
import { somebodyWaits } from '../harness/waits.ts'
import { assertRefused } from '../workspace/api.ts'
import { deviceDraft, openStage, serverDraft } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const stage = await openStage(service)
const place = { project_id: stage.project.id }

const aSegment = async (): Promise<string> => {
  const where = { property: { key: 'plan', op: 'eq', value: 'pro' } }
  return (await stage.project.post('/segments', { ...place, name: 'Pro', definition: { version: 1, where } })).id
}
const remove = (id: string) => stage.call('DELETE', `/segments/${id}`)
const anExperiment = (key: string, audience: string) => ({
  ...{ ...place, key, name: key, kind: 'ab', coverage: 1, metrics: [], audience_segment_id: audience },
  variants: [
    { id: 'a', weight: 0.5, is_holdout: false },
    { id: 'b', weight: 0.5, is_holdout: false },
  ],
})
const usedBy = async (id: string) => {
  const answer = await remove(id)
  assertRefused(answer, 409, 'conflict')
  return answer.body.error.details.used_by
}

test('a Segment that a live or paused Experience names cannot be deleted, one that none names any more can', async () => {
  const [trigger, eligible] = [await aSegment(), await aSegment()]
  const eligibility = { ir_version: 1, expr: { type: 'Segment', op: 'is_member', id: eligible } }
  const live = await stage.publish(serverDraft({ type: 'segment_enter', segmentId: trigger }))
  const asking = await stage.publish(deviceDraft({ eligibility }))
  assert.deepEqual(await usedBy(trigger), [{ object: 'experience', id: live.id }])
  assert.deepEqual(await usedBy(eligible), [{ object: 'experience', id: asking.id }])
  await stage.project.post(`/experiences/${asking.id}/pause?project_id=${stage.project.id}`, {})
  assert.deepEqual(await usedBy(eligible), [{ object: 'experience', id: asking.id }])
  await asking.publish(deviceDraft({}))
  assert.equal((await remove(eligible)).status, 200)
  await stage.project.post(`/experiences/${live.id}/unpublish?project_id=${stage.project.id}`, {})
  assert.equal((await remove(trigger)).status, 200)
})

test('the audience of an experiment cannot be deleted before the experiment is over', async () => {
  const audience = await aSegment()
  const { id } = await stage.project.post('/experiments', anExperiment('x', audience))
  assert.deepEqual(await usedBy(audience), [{ object: 'experiment', id }])
  await stage.project.post(`/experiments/${id}/start`, {})
  assert.deepEqual(await usedBy(audience), [{ object: 'experiment', id }])
  await stage.project.post(`/experiments/${id}/conclude`, { winner_variant_id: 'a' })
  assert.equal((await remove(audience)).status, 200)
})

/** Who begins to ask for a Segment has seen it, and waits for `lock`; then somebody deletes it. */
async function deletedWhile<Asking>(lock: string, segmentId: string, ask: () => Promise<Asking>) {
  const { asking, deleting } = await service.pool.transaction(async (tx) => {
    await tx.query(lock)
    const begun = ask()
    await somebodyWaits(service.pool)
    const ending = remove(segmentId)
    await Promise.race([ending, somebodyWaits(service.pool, 2)])
    return { asking: begun, deleting: ending }
  })
  return { asked: await asking, deleted: await deleting }
}

test('a Segment is not deleted while an Experience that names it is published', async () => {
  const eligible = await aSegment()
  const eligibility = { ir_version: 1, expr: { type: 'Segment', op: 'is_member', id: eligible } }
  const asking = await stage.publish(deviceDraft({}))
  // Where publications take their numbers.
  const { deleted } = await deletedWhile('select from publish_seq for update', eligible, () =>
    asking.publish(deviceDraft({ eligibility })),
  )
  assertRefused(deleted, 409, 'conflict')
  assert.deepEqual(deleted.body.error.details.used_by, [{ object: 'experience', id: asking.id }])
})

test('a Segment is not deleted while an experiment takes it for its audience, nor taken while it is deleted', async () => {
  const audience = await aSegment()
  const make = (key: string, of: string) => () => stage.call('POST', '/experiments', { body: anExperiment(key, of) })
  const terms = 'lock table experiment_phase in share row exclusive mode'
  const { asked, deleted } = await deletedWhile(terms, audience, make('y', audience))
  assert.equal(asked.status, 201)
  assert.deepEqual(deleted.body.error?.details.used_by, [{ object: 'experiment', id: asked.body.id }])
  const other = await aSegment()
  const turn = `select pg_advisory_xact_lock(hashtextextended('experiment', id)) from scope`
  const late = await deletedWhile(turn, other, make('z', other))
  assert.deepEqual([late.asked.status, late.deleted.status], [400, 200])
})
