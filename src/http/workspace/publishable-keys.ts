import Type from 'typebox'
import type { Pool } from '../../db/pool.ts'
import {
  createPublishableKey,
  getApp,
  listPublishableKeys,
  lockApp,
  type PublishableKey,
  revokePublishableKey,
} from '../../tenancy/index.ts'
import { closed, instant, nullable } from '../schema.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, deleted, environment, id } from './parts.ts'

const KeyObject = Type.Object(
  {
    object: Type.Literal('publishable_key'),
    id: Type.String(),
    app_id: Type.String(),
    environment,
    key: Type.String({ description: 'No secret: apps carry it.' }),
    enabled: Type.Boolean(),
    created_at: instant,
    revoked_at: nullable(instant),
    last_used_at: nullable(instant),
  },
  { title: 'PublishableKey' },
)
const tag = 'Publishable keys'

export function publishableKeys({ get, post, delete: remove }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/apps/:id/publishable_keys',
      operationId: 'listPublishableKeys',
      tag,
      summary: "List an app's publishable keys",
      description: 'Of one environment, revoked ones included.',
      params: byId,
      query: closed(listQuery),
      answers: { 200: listOf(KeyObject) },
      errors: [404],
    },
    async ({ caller }, { params, query }) => {
      const page = pageOf(query, idsOf('key'))
      const app = await getApp(pool, caller.workspaceId, caller.environment, params.id)
      const keys = await listPublishableKeys(pool, app.id, caller.environment, page)
      return listAnswer(keys, page, { show, positionOf: (key) => key.id })
    },
  )

  post(
    {
      path: '/apps/:id/publishable_keys',
      operationId: 'createPublishableKey',
      tag,
      summary: 'Create a publishable key',
      role: 'admin',
      description: 'It selects this app and the environment of this request.',
      params: byId,
      answers: { 201: KeyObject },
      errors: [404, 409],
    },
    async (change, { params }) => {
      const { workspaceId, environment } = change.caller
      const app = await lockApp(change.tx, workspaceId, environment, params.id)
      const key = await createPublishableKey(change.tx, app.id, environment)
      await change.audit('create', 'publishable_key', key.id, { after: show(key) })
      await change.tenancyChanged()
      return { status: 201, body: show(key) }
    },
  )

  remove(
    {
      path: '/apps/:id/publishable_keys/:key_id',
      operationId: 'revokePublishableKey',
      tag,
      summary: 'Revoke a publishable key',
      description: 'It stops working within a second, for good. It stays in the list.',
      params: closed({ id, key_id: id }),
      answers: { 200: deleted('publishable_key') },
      errors: [404],
    },
    async (change, { params }) => {
      const { workspaceId, environment } = change.caller
      const app = await lockApp(change.tx, workspaceId, environment, params.id)
      const key = await revokePublishableKey(change.tx, app.id, environment, params.key_id)
      await change.audit('revoke', 'publishable_key', key.id, { before: show(key) })
      await change.tenancyChanged()
      return { status: 200, body: { object: 'publishable_key', id: key.id, deleted: true } }
    },
  )
}

function show(key: PublishableKey): Type.Static<typeof KeyObject> {
  return {
    object: 'publishable_key',
    id: key.id,
    app_id: key.appId,
    environment: key.environment,
    key: key.key,
    enabled: key.revokedAt === null,
    created_at: key.createdAt.toISOString(),
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  }
}
