import Type from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { storeIdCharsMax } from '../../kernel/limits.ts'
import { type App, createApp, deleteApp, getApp, listApps, updateApp } from '../../tenancy/index.ts'
import { closed, instant, nullable, nullableString, oneOf } from '../schema.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, deleted, name, projectId } from './parts.ts'

const platform = oneOf('ios', 'android', 'web')

const AppObject = Type.Object(
  {
    object: Type.Literal('app'),
    id: Type.String(),
    project_id: Type.String(),
    platform,
    name: Type.String(),
    bundle_id: nullableString,
    package_name: nullableString,
    account_token_namespace: Type.String({
      format: 'uuid',
      description: 'Namespace of the account tokens that the app gives to store purchases.',
    }),
    created_at: instant,
    last_connected_at: nullable(instant),
  },
  { title: 'App' },
)

const storeId = Type.Optional(
  nullable(Type.String({ minLength: 1, maxLength: storeIdCharsMax, 'x-trimmed': true, 'x-storable': true })),
)
const tag = 'Apps'
const errors = [404]

export function apps({ get, post, patch, delete: remove }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/apps',
      operationId: 'listApps',
      tag,
      summary: 'List apps',
      description: 'Of one project, or of the whole workspace.',
      query: closed({ ...listQuery, project_id: projectId }),
      answers: { 200: listOf(AppObject) },
      errors,
    },
    async (look, { query }) => {
      const { workspaceId, environment } = look.caller
      const page = pageOf(query, idsOf('app'))
      const project = query.project_id === undefined ? null : look.scope(query.project_id).projectId
      const found = await listApps(pool, workspaceId, environment, { projectId: project, page })
      return listAnswer(found, page, { show, positionOf: ({ id }) => id })
    },
  )

  post(
    {
      path: '/apps',
      operationId: 'createApp',
      tag,
      summary: 'Create an app',
      role: 'admin',
      description: 'One platform of a project. It starts without keys.',
      body: closed({ project_id: projectId, platform, name, bundle_id: storeId, package_name: storeId }),
      answers: { 201: AppObject },
      errors: [404, 409],
    },
    async (change, { body }) => {
      const { workspaceId } = change.caller
      const app = await createApp(change.tx, workspaceId, {
        projectId: change.scope(body.project_id).projectId,
        platform: body.platform,
        name: body.name,
        bundleId: body.bundle_id,
        packageName: body.package_name,
      })
      await change.audit('create', 'app', app.id, { after: show(app) })
      await change.tenancyChanged()
      return { status: 201, body: show(app) }
    },
  )

  get(
    {
      path: '/apps/:id',
      operationId: 'getApp',
      tag,
      summary: 'Get an app',
      params: byId,
      answers: { 200: AppObject },
      errors,
    },
    async ({ caller }, { params }) => show(await getApp(pool, caller.workspaceId, caller.environment, params.id)),
  )

  patch(
    {
      path: '/apps/:id',
      operationId: 'updateApp',
      tag,
      summary: 'Change an app',
      role: 'admin',
      description: 'The platform and the project never change.',
      params: byId,
      body: closed({ name: Type.Optional(name), bundle_id: storeId, package_name: storeId }),
      answers: { 200: AppObject },
      errors,
    },
    async (change, { params, body }) => {
      const { workspaceId, environment } = change.caller
      const { before, after } = await updateApp(change.tx, workspaceId, environment, params.id, {
        name: body.name,
        bundleId: body.bundle_id,
        packageName: body.package_name,
      })
      await change.audit('update', 'app', params.id, { before: show(before), after: show(after) })
      await change.tenancyChanged()
      return { status: 200, body: show(after) }
    },
  )

  remove(
    {
      path: '/apps/:id',
      operationId: 'deleteApp',
      tag,
      summary: 'Delete an app',
      description: 'Its keys stop working within a second.',
      params: byId,
      answers: { 200: deleted('app') },
      errors,
    },
    async (change, { params }) => {
      const { workspaceId, environment } = change.caller
      const app = await deleteApp(change.tx, workspaceId, environment, params.id)
      await change.audit('delete', 'app', app.id, { before: show(app) })
      await change.tenancyChanged()
      return { status: 200, body: { object: 'app', id: app.id, deleted: true } }
    },
  )
}

function show(app: App): Type.Static<typeof AppObject> {
  return {
    object: 'app',
    id: app.id,
    project_id: app.projectId,
    platform: app.platform,
    name: app.name,
    bundle_id: app.bundleId,
    package_name: app.packageName,
    account_token_namespace: app.accountTokenNamespace,
    created_at: app.createdAt.toISOString(),
    last_connected_at: app.lastConnectedAt?.toISOString() ?? null,
  }
}
