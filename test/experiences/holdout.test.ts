import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { uuidV7 } from '../../src/kernel/ids.ts'
import type { Body } from '../app/answers.ts'
import { anEvent, eventually } from '../app/project.ts'
import { aDraft, device } from '../harness/a-draft.ts'
import { startService } from '../harness/service.ts'
import { openStage } from '../profiles/stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

const variants = [
  { id: 'in', weight: 0.5, is_holdout: false },
  { id: 'out', weight: 0.5, is_holdout: true },
]
const asListed = variants.map(({ id, is_holdout: isHoldout }) => ({ id, isHoldout }))
const names = Array.from({ length: 12 }, (_, i) => `u${i}`)

/** What the profile says to everybody, and their reports that the first leg began, each of them twice. */
async function startAll(stage: Awaited<ReturnType<typeof openStage>>, experimentId: string): Promise<Body[]> {
  const { profile, app, project } = stage
  const given: Body[] = []
  for (const name of names) {
    await project.customer(name)
    const { body } = await profile(name)
    const [arm] = body.armedLegs
    given.push(body.facts.assignments[experimentId])
    const started = () =>
      anEvent(name, {
        event: '$journey_leg_started',
        properties: {
          ...{ journey_id: uuidV7(Date.now()), experience_id: arm.reference.experienceId, leg_id: arm.reference.legId },
          ...{
            experience_version_id: arm.reference.versionId,
            leg_generation: 0,
            started_at: new Date().toISOString(),
          },
        },
      })
    await app.postGzip('/batch', { batch: [started(), started()] })
  }
  return given
}

const unitsOf = ({ variants: each }: Body) => Object.fromEntries(each.map(({ id, units }: Body) => [id, units]))

test('who came to a holdout on a device is counted once, held out or not', async () => {
  const stage = await openStage(service)
  const { project, publish } = stage
  const body = { project_id: project.id, key: 'held', kind: 'holdout', variants }
  const { id } = await project.post('/experiments', body)
  await project.post(`/experiments/${id}/start`, {})
  const draft = aDraft()
  draft.policy.holdout = id
  await publish('welcome', draft)
  const given = await startAll(stage, id)
  const out = given.filter(({ isHoldout }) => isHoldout).length
  await eventually(async () => {
    const units = unitsOf(await project.get(`/experiments/${id}/results`))
    return units.in + units.out === names.length
  }, 20_000)
  assert.deepEqual(unitsOf(await project.get(`/experiments/${id}/results`)), { in: names.length - out, out })
})

test('of an experiment that is the first step only those held out are: of the others devices tell', async () => {
  const stage = await openStage(service)
  const { project, publish } = stage
  const { id } = await project.post('/experiments', { project_id: project.id, key: 'first', variants })
  await project.post(`/experiments/${id}/start`, {})
  const draft = aDraft()
  draft.graph.entry = 'pick'
  draft.graph.steps = [
    device(
      'pick',
      { type: 'experiment', experimentId: id, variants: asListed, fallbackVariantId: 'in' },
      { in: 'tell', out: null },
    ),
    ...draft.graph.steps,
  ]
  await publish('welcome', draft)
  const given = await startAll(stage, id)
  const out = given.filter(({ isHoldout }) => isHoldout).length
  await eventually(async () => unitsOf(await project.get(`/experiments/${id}/results`)).out === out, 20_000)
  assert.deepEqual(unitsOf(await project.get(`/experiments/${id}/results`)), { in: 0, out })
})
