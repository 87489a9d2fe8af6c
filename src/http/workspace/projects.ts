import Type from 'typebox'
import type { Pool } from '../../db/pool.ts'
import {
  createProject,
  deleteProject,
  getProject,
  listProjects,
  type Project,
  updateProject,
} from '../../tenancy/index.ts'
import { closed, instant } from '../schema.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, deleted, name } from './parts.ts'

const ProjectObject = Type.Object(
  { object: Type.Literal('project'), id: Type.String(), name: Type.String(), created_at: instant },
  { title: 'Project' },
)
const tag = 'Projects'
const errors = [404]

export function projects({ get, post, patch, delete: remove }: Endpoints, pool: Pool): void {
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
      body: closed({ name: Type.Optional(name) }),
      answers: { 200: ProjectObject },
      errors,
    },
    async (change, { params, body }) => {
      const { before, after } = await updateProject(change.tx, change.caller.workspaceId, params.id, body)
      await change.audit('update', 'project', params.id, { before: show(before), after: show(after) })
      await change.tenancyChanged()
      return { status: 200, body: show(after) }
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
  return { object: 'project', id: project.id, name: project.name, created_at: project.createdAt.toISOString() }
}
