import Type from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { setTestClock } from '../../entitlements/index.ts'
import { testClockMsMax } from '../../kernel/limits.ts'
import {
  createProject,
  deleteProject,
  getProject,
  listProjects,
  type Project,
  updateProject,
} from '../../tenancy/index.ts'
import { closed, instant, nullable } from '../schema.ts'
import { checkRuntime, clientRuntime } from './client-runtime.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, deleted, name } from './parts.ts'

const deliverAlways = nullable(
  Type.Boolean({
    description:
      'Whether the entry condition `always` is sent as written; otherwise it is lowered to `app_foregrounded`. Null: sent with the NAMESPACE `service`, lowered with any other, whose clients refuse it.',
  }),
)

const ProjectObject = Type.Object(
  {
    object: Type.Literal('project'),
    id: Type.String(),
    name: Type.String(),
    deliver_always: deliverAlways,
    client_runtime: nullable(clientRuntime),
    created_at: instant,
  },
  { title: 'Project' },
)
const TestClockObject = Type.Object(
  { object: Type.Literal('test_clock'), project_id: Type.String(), offset_ms: Type.Integer() },
  { title: 'TestClock' },
)
const tag = 'Projects'
const errors = [404]

export function projects({ get, post, patch, put, delete: remove }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/projects',
      operationId: 'listProjects',
      tag,
      summary: 'List projects',
      query: closed(listQuery),
      answers: { 200: listOf(ProjectObject) },
    },
    async ({ caller }, { query }) => {
      const page = pageOf(query, idsOf('proj'))
      return listAnswer(await listProjects(pool, caller.workspaceId, page), page, { show, positionOf: ({ id }) => id })
    },
  )

  post(
    {
      path: '/projects',
      operationId: 'createProject',
      tag,
      summary: 'Create a project',
      role: 'admin',
      description: 'It starts without apps, with both environments empty.',
      body: closed({ name }),
      answers: { 201: ProjectObject },
      errors: [409],
    },
    async (change, { body }) => {
      const { project } = await createProject(change.tx, change.caller.workspaceId, body)
      const after = show(project)
      await change.audit('create', 'project', project.id, { after })
      await change.tenancyChanged()
      return { status: 201, body: after }
    },
  )

  get(
    {
      path: '/projects/:id',
      operationId: 'getProject',
      tag,
      summary: 'Get a project',
      params: byId,
      answers: { 200: ProjectObject },
      errors,
    },
    async ({ caller }, { params }) => show(await getProject(pool, caller.workspaceId, params.id)),
  )

  patch(
    {
      path: '/projects/:id',
      operationId: 'updateProject',
      tag,
      summary: 'Change a project',
      role: 'admin',
      params: byId,
      description: 'What is published from then on goes by its settings; what was published stays as it is.',
      body: closed({
        name: Type.Optional(name),
        deliver_always: Type.Optional(deliverAlways),
        client_runtime: Type.Optional(nullable(clientRuntime)),
      }),
      answers: { 200: ProjectObject },
      errors,
    },
    async (change, { params, body }) => {
      if (body.client_runtime) checkRuntime(body.client_runtime)
      const { before, after } = await updateProject(change.tx, change.caller.workspaceId, params.id, {
        name: body.name,
        deliverAlways: body.deliver_always,
        clientRuntime: body.client_runtime,
      })
      await change.audit('update', 'project', params.id, { before: show(before), after: show(after) })
      await change.tenancyChanged()
      return { status: 200, body: show(after) }
    },
  )

  put(
    {
      path: '/projects/:id/test_clock',
      operationId: 'setTestClock',
      tag,
      summary: "Let a test environment's time run ahead",
      description:
        'For trying what comes later: renewals, expiry, resets. It moves access and purchases of the test environment, never back, and nothing in live.',
      params: byId,
      body: closed({ offset_ms: Type.Integer({ minimum: 0, maximum: testClockMsMax }) }),
      answers: { 200: TestClockObject },
      errors: [404, 409],
    },
    async (change, { params, body }) => {
      const scope = change.scope((await getProject(change.tx, change.caller.workspaceId, params.id)).id)
      await setTestClock(change.tx, scope, body.offset_ms)
      const after = { object: 'test_clock', project_id: scope.projectId, offset_ms: body.offset_ms } as const
      await change.audit('set', 'test_clock', scope.projectId, { after })
      await change.catalogueChanged(scope)
      return { status: 200, body: after }
    },
  )

  remove(
    {
      path: '/projects/:id',
      operationId: 'deleteProject',
      tag,
      summary: 'Delete a project',
      description: 'Its apps, their keys and all data of both environments are out of reach from then on.',
      params: byId,
      answers: { 200: deleted('project') },
      errors,
    },
    async (change, { params }) => {
      const project = await deleteProject(change.tx, change.caller.workspaceId, params.id)
      await change.audit('delete', 'project', project.id, { before: show(project) })
      await change.tenancyChanged()
      return { status: 200, body: { object: 'project', id: project.id, deleted: true } }
    },
  )
}

function show(project: Project): Type.Static<typeof ProjectObject> {
  return {
    object: 'project',
    id: project.id,
    name: project.name,
    deliver_always: project.deliverAlways,
    client_runtime: project.clientRuntime,
    created_at: project.createdAt.toISOString(),
  }
}
