import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startService } from '../harness/service.ts'
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
  const variants = [
    { id: 'a', weight: 0.5, is_holdout: false },
    { id: 'b', weight: 0.5, is_holdout: false },
  ]
  const { id } = await stage.project.post('/experiments', {
    ...place,
    ...{ key: 'x', name: 'X', kind: 'ab', variants, coverage: 1, metrics: [], audience_segment_id: audience },
  })
  assert.deepEqual(await usedBy(audience), [{ object: 'experiment', id }])
  await stage.project.post(`/experiments/${id}/start`, {})
  assert.deepEqual(await usedBy(audience), [{ object: 'experiment', id }])
  await stage.project.post(`/experiments/${id}/conclude`, { winner_variant_id: 'a' })
  assert.equal((await remove(audience)).status, 200)
})
