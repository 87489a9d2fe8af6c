import Type from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { logoCharsMax, slugCharsMax } from '../../kernel/limits.ts'
import { createWorkspace, getWorkspace, listWorkspaces, updateWorkspace, type Workspace } from '../../tenancy/index.ts'
import { closed, instant, nullable, nullableString } from '../schema.ts'
import { userOf } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { listOf, wholeList } from './list.ts'
import { byId, name } from './parts.ts'

const WorkspaceObject = Type.Object(
  {
    object: Type.Literal('workspace'),
    id: Type.String(),
    name: Type.String(),
    slug: Type.String(),
    logo: nullableString,
    created_at: instant,
  },
  { title: 'Workspace' },
)

const slug = Type.Optional(
  Type.String({
    minLength: 2,
    maxLength: slugCharsMax,
    pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
    description: 'Unique in this service. Made from the name when left out.',
  }),
)
const logo = Type.Optional(
  nullable(Type.String({ maxLength: logoCharsMax, pattern: '^https://[!-~]+$', description: 'An https address.' })),
)
const tag = 'Workspaces'
const by = 'workspace_session'

export function workspaces({ get, post, patch }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/workspaces',
      operationId: 'listWorkspaces',
      tag,
      summary: 'List workspaces',
      description: 'All of which the user is a member.',
      by: 'session',
      answers: { 200: listOf(WorkspaceObject) },
    },
    async ({ caller }) => wholeList((await listWorkspaces(pool, userOf(caller).id)).map(show)),
  )

  post(
    {
      path: '/workspaces',
      operationId: 'createWorkspace',
      tag,
      summary: 'Create a workspace',
      description: 'The user becomes its owner.',
      by: 'session',
      body: closed({ name, slug }),
      answers: { 201: WorkspaceObject },
      errors: [409],
    },
    async (change, { body }) => {
      const workspace = await createWorkspace(change.tx, userOf(change.caller).id, body)
      const after = show(workspace)
      await change.audit('create', 'workspace', workspace.id, { after, workspaceId: workspace.id })
      return { status: 201, body: after }
    },
  )

  get(
    {
      path: '/workspaces/:id',
      operationId: 'getWorkspace',
      tag,
      summary: 'Get a workspace',
      by,
      params: byId,
      answers: { 200: WorkspaceObject },
    },
    async ({ caller }) => show(await getWorkspace(pool, caller.workspaceId)),
  )

  patch(
    {
      path: '/workspaces/:id',
      operationId: 'updateWorkspace',
      tag,
      summary: 'Change a workspace',
      by,
      role: 'admin',
      params: byId,
      body: closed({ name: Type.Optional(name), slug, logo }),
      answers: { 200: WorkspaceObject },
      errors: [409],
    },
    async (change, { body }) => {
      const { workspaceId } = change.caller
      const { before, after } = await updateWorkspace(change.tx, workspaceId, body)
      await change.audit('update', 'workspace', workspaceId, { before: show(before), after: show(after) })
      return { status: 200, body: show(after) }
    },
  )
}

function show({ id, name, slug, logo, createdAt }: Workspace): Type.Static<typeof WorkspaceObject> {
  return { object: 'workspace', id, name, slug, logo, created_at: createdAt.toISOString() }
}
