import Type from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { systemClock } from '../../kernel/clock.ts'
import { keyDaysDefault, keyDaysMax, keyNameCharsMax } from '../../kernel/limits.ts'
import { createSecretKey, listSecretKeys, revokeSecretKey, type SecretKey } from '../../tenancy/index.ts'
import { closed, instant, nullable, nullableString } from '../schema.ts'
import { userOf } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, deleted, id } from './parts.ts'

const properties = {
  object: Type.Literal('api_key'),
  id: Type.String(),
  name: nullableString,
  prefix: Type.Literal('sk_'),
  created_by_user_id: nullableString,
  created_at: instant,
  expires_at: nullable(instant),
  last_used_at: nullable(instant),
  enabled: Type.Boolean({ description: 'False once it has expired.' }),
}
const KeyObject = Type.Object(properties, { title: 'ApiKey' })
const NewKeyObject = Type.Object(
  { ...properties, key: Type.String({ description: 'The secret. Shown once.' }) },
  { title: 'NewApiKey' },
)

const tag = 'API keys'
const by = 'workspace_session'
const role = 'admin'

export function apiKeys({ get, post, delete: remove }: Endpoints, pool: Pool): void {
  post(
    {
      path: '/workspaces/:id/api-keys',
      operationId: 'createApiKey',
      tag,
      summary: 'Create an API key',
      description: 'A secret key with which a backend calls this API. Only its hash is kept.',
      by,
      role,
      plan: true,
      secret: true,
      params: byId,
      body: closed({
        name: Type.String({ minLength: 1, maxLength: keyNameCharsMax, 'x-not-blank': true, 'x-storable': true }),
        expiresInDays: Type.Optional(
          nullable(
            Type.Integer({ minimum: 1, maximum: keyDaysMax, description: `Default ${keyDaysDefault}; null: never.` }),
          ),
        ),
      }),
      answers: { 201: NewKeyObject },
      errors: [409],
    },
    async (change, { body }) => {
      const { name, expiresInDays = keyDaysDefault } = body
      const { created, secret } = await createSecretKey(change.tx, change.caller.workspaceId, {
        userId: userOf(change.caller).id,
        name,
        expiresInDays,
      })
      const after = show(created)
      await change.audit('create', 'api_key', created.id, { after })
      await change.tenancyChanged()
      return { status: 201, body: { ...after, key: secret } }
    },
  )

  get(
    {
      path: '/workspaces/:id/api-keys',
      operationId: 'listApiKeys',
      tag,
      summary: 'List API keys',
      description: 'Without their secrets. Revoked ones are gone from it.',
      by,
      role,
      params: byId,
      query: closed(listQuery),
      answers: { 200: listOf(KeyObject) },
    },
    async ({ caller }, { query }) => {
      const page = pageOf(query, idsOf('key'))
      const keys = await listSecretKeys(pool, caller.workspaceId, page)
      return listAnswer(keys, page, { show, positionOf: (key) => key.id })
    },
  )

  remove(
    {
      path: '/workspaces/:id/api-keys/:key_id',
      operationId: 'revokeApiKey',
      tag,
      summary: 'Revoke an API key',
      description: 'It stops working within a second, for good.',
      by,
      params: closed({ id, key_id: id }),
      answers: { 200: deleted('api_key') },
      errors: [404],
    },
    async (change, { params }) => {
      const key = await revokeSecretKey(change.tx, change.caller.workspaceId, params.key_id)
      await change.audit('revoke', 'api_key', key.id, { before: show(key) })
      await change.tenancyChanged()
      return { status: 200, body: { object: 'api_key', id: key.id, deleted: true } }
    },
  )
}

function show(key: SecretKey): Type.Static<typeof KeyObject> {
  return {
    object: 'api_key',
    id: key.id,
    name: key.name,
    prefix: 'sk_',
    created_by_user_id: key.createdByUserId,
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    enabled: key.expiresAt === null || key.expiresAt.getTime() > systemClock.now(),
  }
}
