import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { membershipsOf } from '../../src/customers/index.ts'
import { must } from '../../src/kernel/assert.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { anEvent, eventually, openProject } from '../app/project.ts'
import { aDraft, server } from '../harness/a-draft.ts'
import { startService } from '../harness/service.ts'

const service = await startService({ EVENT_RETENTION_DAYS: '31' })
after(() => service[Symbol.asyncDispose]())
const { pool } = service

const ir = (expr: object) => ({ ir_version: 1, expr })
const bought = (minutes?: number) => ({
  type: 'Events.Exists',
  name: 'bought',
  ...(minutes !== undefined && { within: { type: 'Duration', value: minutes * 60 } }),
})
const often = {
  type: 'Compare',
  op: '>=',
  left: { type: 'Events.Count', name: 'opened', within: { type: 'Duration', value: 86_400 } },
  right: { type: 'Number', value: 2 },
}
const isPro = { type: 'User', op: 'eq', key: 'plan', value: { type: 'String', value: 'pro' } }

/** Eligible is who did not buy; a branch asks who came often, and is pro. */
function asking(eligibility: object = { type: 'Not', arg: bought() }) {
  const draft = aDraft()
  const { entry } = draft.policy as { entry: object }
  draft.policy = { ...draft.policy, entry: { ...entry, eligibility: ir(eligibility) } }
  const branches = [{ id: 'often', condition: ir({ type: 'And', args: [isPro, often] }) }]
  draft.graph.steps = [
    ...draft.graph.steps.map((step) => (step.id === 'later' ? { ...step, outlets: { next: 'which' } } : step)),
    server('which', { type: 'branch', branches }, { often: 'note', default: null }),
  ]
  return draft
}

async function aStage() {
  const project = await openProject(service)
  const app = await project.app()
  const call = async (method: string, path: string, body?: object, headers?: Record<string, string>) =>
    service.workspace(method, `${path}?project_id=${project.id}`, {
      ...(body && { body }),
      ...(headers && { headers }),
    })
  const key = await project.post('/signing_keys', { project_id: project.id })
  await project.post(`/signing_keys/${key.id}/activate`, {})
  await project.post('/experiences', { project_id: project.id, key: 'welcome', name: 'Welcome' })
  const [row] = await pool.query<Scope>(
    `select s.id as "scopeId", p.workspace_id as "workspaceId", p.id as "projectId", s.environment
     from scope s
     join project p on p.id = s.project_id
     where p.id = $1
       and s.environment = 'test'`,
    [project.id],
  )
  const scope = must(row, 'the project has its scopes')
  let revision = 0
  return {
    ...{ project, app, scope, call },
    save: async (draft: object) => {
      const { status, body } = await call('PUT', '/experiences/welcome/draft', draft, { 'if-match': `${revision++}` })
      assert.equal(status, 200, JSON.stringify(body))
    },
    publish: () => call('POST', '/experiences/welcome/versions', {}),
    segments: () =>
      pool.query<{ id: string; definition: { where: object }; status: string }>(
        `select public_id as id, definition, status
         from segment
         where scope_id = $1
           and deleted_at is null
         order by definition::text`,
        [scope.scopeId],
      ),
  }
}

test('what eligibility and branches ask of past events is kept by the lane, unlisted, until the Experience is archived', async () => {
  const { project, app, scope, call, save, publish, segments } = await aStage()
  const [ada, bob] = [await project.customer('ada'), await project.customer('bob')].map((id) => id.replace('cus_', ''))
  await save(asking())
  const published = await publish()
  assert.equal(published.status, 201, JSON.stringify(published.body))
  const ready = await eventually(async () => {
    const rows = await segments()
    return rows.length === 2 && rows.every(({ status }) => status === 'ready') ? rows : undefined
  }, 20_000)
  assert.deepEqual((await call('GET', '/segments')).body.data, [])
  for (const { id } of ready) assert.equal((await service.workspace('GET', `/segments/${id}`)).status, 404)
  await app.postGzip('/batch', { batch: [anEvent('ada', { event: 'bought' }), anEvent('bob'), anEvent('bob')] })

  // The plan asks these Segments; what devices get still says what the author wrote.
  const [publication] = await pool.query<{ plan: string }>('select plan from publication where scope_id = $1', [
    scope.scopeId,
  ])
  const plan = JSON.parse(publication?.plan ?? '{}')
  const notBought = plan.policy.entry.eligibility.expr.id
  const came = plan.steps.which.action.branches[0].condition.expr.args[1].id
  assert.deepEqual(new Set([notBought, came]), new Set(ready.map(({ id }) => id)))
  const members = async (customerId: string) => {
    const found = await membershipsOf(pool, scope, [customerId])
    return new Set((found.get(customerId) ?? []).map(({ segmentId }) => segmentId))
  }
  await eventually(async () => !(await members(ada ?? '')).has(notBought), 20_000)
  await eventually(async () => (await members(bob ?? '')).has(came), 20_000)
  assert.ok((await members(bob ?? '')).has(notBought))
  assert.deepEqual((await service.workspace('GET', `/customers/cus_${bob}/memberships`)).body.data, [])
  const [leg] = await pool.query<{ descriptor: Buffer }>('select descriptor from release where scope_id = $1 limit 1', [
    scope.scopeId,
  ])
  const descriptor = JSON.parse(String(leg?.descriptor))
  assert.deepEqual(descriptor.leg.policy.entry.eligibility, ir({ type: 'Not', arg: bought() }))

  // Who bought is not offered it any more; who did not, is.
  const armed = async (distinctId: string) =>
    (await app.post('/profile', { distinct_id: distinctId })).body.armedLegs.length
  assert.deepEqual([await armed('ada'), await armed('bob')], [0, 1])

  // Published again, nothing is kept twice.
  assert.equal((await publish()).status, 200)
  assert.equal((await segments()).length, 2)
  await call('POST', '/experiences/welcome/archive', {})
  assert.deepEqual(await segments(), [])
})

test('what can not be kept is refused, with the place of it', async () => {
  const { save, publish, segments } = await aStage()
  await save(asking({ type: 'Events.InOrder', steps: [{ name: 'a' }, { name: 'b' }] }))
  const { status, body } = await publish()
  assert.deepEqual([status, body.error.code], [400, 'draft_invalid'])
  const [issue] = body.error.issues
  assert.deepEqual([issue.path, issue.code], ['/policy/entry/eligibility', 'ir_plane'])
  assert.match(issue.message, /^"Events\.InOrder" cannot be judged on the server; move it to /)
  assert.deepEqual(await segments(), [])
})

test('a window as long as events are kept can be asked, a longer one not', async () => {
  const { save, publish } = await aStage()
  const day = 1440
  await save(asking(bought(31 * day)))
  assert.equal((await publish()).status, 201)
  await save(asking(bought(31 * day + 1)))
  const { status, body } = await publish()
  assert.deepEqual([status, body.error.code], [400, 'draft_invalid'])
  assert.equal(body.error.issues[0].code, 'ir_plane')
})

test('a branch over past events is one that clients can forge', async () => {
  const { save, publish, project } = await aStage()
  await project.feature('credits')
  const draft = asking()
  draft.graph.steps = draft.graph.steps.map((step) =>
    step.id === 'note'
      ? server('note', { type: 'grant_feature', featureId: 'credits', amount: 5 }, { next: 'again' })
      : step,
  )
  await save(draft)
  const { body } = await publish()
  assert.ok(body.error.issues.some(({ code }: { code: string }) => code === 'grant_untrusted'))
})
