import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import {
  activateKey,
  createKey,
  getKey,
  importKey,
  type KeyEdit,
  listKeys,
  type SigningKey,
  withdrawKey,
} from '../../experiences/index.ts'
import { refuse } from '../../kernel/errors.ts'
import { signingKeyIdCharsMax, targetAppsMax } from '../../kernel/limits.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import { selectPinned } from '../../profiles/index.ts'
import { getApp, type Scope } from '../../tenancy/index.ts'
import { closed, instant, oneOf } from '../schema.ts'
import { scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, environment, id, projectId } from './parts.ts'
import type { Answer, Change } from './route.ts'

const SigningKeyObject = Type.Object(
  {
    object: Type.Literal('signing_key'),
    id: Type.String(),
    project_id: Type.String(),
    environment,
    key_id: Type.String({ description: 'As releases name it.' }),
    public_key: Type.String({ description: 'Base64.' }),
    status: oneOf('staged', 'active', 'retired', 'revoked'),
    can_sign: Type.Boolean({ description: 'False: it was imported without a seed.' }),
    signs_for: Type.Array(Type.String(), {
      description: 'Ids of apps; `*` for every app that no other key is named for.',
    }),
    created_at: instant,
  },
  { title: 'SigningKey' },
)

const keyId = Type.String({
  minLength: 1,
  maxLength: signingKeyIdCharsMax,
  'x-storable': true,
  'x-trimmed': true,
  description: 'As releases name it. It belongs to this key for ever.',
})
const bytes32 = (description: string) =>
  Type.String({ pattern: '^[A-Za-z0-9+/]*={0,2}$', maxLength: 128, description: `${description}: 32 bytes in base64.` })

const tag = 'Signing keys'
const errors = [404, 409]

export function signingKeys(to: Endpoints, services: { pool: Pool; sealingKey: Buffer; names: WireNames }): void {
  const { pool, sealingKey } = services
  reads(to, pool)
  additions(to, sealingKey)
  changes(to, services)
}

function reads({ get }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/signing_keys',
      operationId: 'listSigningKeys',
      tag,
      summary: 'List signing keys',
      query: closed({ ...listQuery, project_id: projectId }),
      answers: { 200: listOf(SigningKeyObject) },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, idsOf('skey'))
      const scope = look.scope(query.project_id)
      return listAnswer(await listKeys(pool, scope, page), page, {
        show: (key) => show(key, scope),
        positionOf: ({ publicId }) => publicId,
      })
    },
  )

  get(
    {
      path: '/signing_keys/:id',
      operationId: 'getSigningKey',
      tag,
      summary: 'Get a signing key',
      params: byId,
      answers: { 200: SigningKeyObject },
      errors: [404],
    },
    async (look, { params }) => {
      const scopes = look.scopes()
      const key = await getKey(pool, scopes, params.id)
      return show(key, scopeIn(scopes, key))
    },
  )
}

function additions({ post }: Endpoints, sealingKey: Buffer): void {
  post(
    {
      path: '/signing_keys',
      operationId: 'createSigningKey',
      tag,
      summary: 'Create a signing key',
      description:
        'It is `staged`: clients can find it, nothing is signed with it before it is activated. Its secret never leaves the service.',
      role: 'admin',
      body: closed({ project_id: projectId, key_id: Type.Optional(keyId) }),
      answers: { 201: SigningKeyObject },
      errors,
    },
    async (change, { body }) => {
      const scope = change.scope(body.project_id)
      return added(change, scope, 'create', await createKey(change.tx, scope, { keyId: body.key_id, sealingKey }))
    },
  )

  post(
    {
      path: '/signing_keys/import',
      operationId: 'importSigningKey',
      tag,
      summary: 'Import a signing key',
      description:
        'For clients that carry the key already: the seed to sign with it, or only the public key. Weak keys are refused with `key_weak`, printed test seeds in live with `key_is_public`.',
      role: 'admin',
      body: closed({
        project_id: projectId,
        key_id: keyId,
        seed: Type.Optional(bytes32('The secret')),
        public_key: Type.Optional(bytes32('The public key')),
      }),
      answers: { 201: SigningKeyObject },
      errors,
    },
    async (change, { body }) => {
      const scope = change.scope(body.project_id)
      const material = { keyId: body.key_id, seed: decoded(body.seed), publicKey: decoded(body.public_key) }
      return added(change, scope, 'import', await importKey(change.tx, scope, material, sealingKey))
    },
  )
}

function changes({ post }: Endpoints, services: { sealingKey: Buffer; names: WireNames }): void {
  post(
    {
      path: '/signing_keys/:id/activate',
      operationId: 'activateSigningKey',
      tag,
      summary: 'Sign with a key',
      description:
        'For all apps, or for those named. A key that then signs for no app is `retired` and goes on verifying. Activate a key only for apps whose clients hold it.',
      role: 'admin',
      params: byId,
      body: closed({
        app_ids: Type.Optional(Type.Array(id, { minItems: 1, maxItems: targetAppsMax, uniqueItems: true })),
      }),
      answers: { 200: SigningKeyObject },
      errors,
    },
    async (change, { params, body }) => {
      const scopes = change.scopes()
      const { scopeId } = await getKey(change.tx, scopes, params.id)
      for (const appId of body.app_ids ?? []) await checkApp(change, scopeIn(scopes, { scopeId }), appId)
      const resigning = { ...services, pinned: selectPinned }
      return edited(change, 'activate', await activateKey(change.tx, scopes, params.id, body.app_ids ?? '*', resigning))
    },
  )

  post(
    {
      path: '/signing_keys/:id/retire',
      operationId: 'retireSigningKey',
      tag,
      summary: 'Retire a signing key',
      description: 'It goes on verifying. 409 while it signs for an app.',
      role: 'admin',
      params: byId,
      answers: { 200: SigningKeyObject },
      errors,
    },
    async (change, { params }) =>
      edited(change, 'retire', await withdrawKey(change.tx, change.scopes(), params.id, 'retired')),
  )

  post(
    {
      path: '/signing_keys/:id/revoke',
      operationId: 'revokeSigningKey',
      tag,
      summary: 'Revoke a signing key',
      description: 'It can no longer be discovered and never signs again. 409 while it signs for an app.',
      role: 'admin',
      params: byId,
      answers: { 200: SigningKeyObject },
      errors,
    },
    async (change, { params }) =>
      edited(change, 'revoke', await withdrawKey(change.tx, change.scopes(), params.id, 'revoked')),
  )
}

/** Throws `not_found`, for an app of another project too. */
async function checkApp(change: Change, scope: Scope, appId: string): Promise<void> {
  const app = await getApp(change.tx, scope.workspaceId, scope.environment, appId)
  if (app.projectId !== scope.projectId) throw refuse('not_found', { param: 'app_ids' })
}

async function added(change: Change, scope: Scope, action: string, key: SigningKey): Promise<Answer> {
  const after = show(key, scope)
  await change.audit(action, 'signing_key', key.publicId, { after })
  return { status: 201, body: after }
}

async function edited(change: Change, action: string, { before, after, scope }: KeyEdit): Promise<Answer> {
  const states = { before: show(before, scope), after: show(after, scope) }
  await change.audit(action, 'signing_key', after.publicId, states)
  await change.catalogueChanged(scope)
  return { status: 200, body: states.after }
}

function decoded(base64: string | undefined): Buffer | undefined {
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64')
}

function show(key: SigningKey, scope: Scope): Static<typeof SigningKeyObject> {
  return {
    object: 'signing_key',
    id: key.publicId,
    project_id: scope.projectId,
    environment: scope.environment,
    key_id: key.keyId,
    public_key: key.publicKey.toString('base64'),
    status: key.status,
    can_sign: key.canSign,
    signs_for: key.usedBy,
    created_at: key.createdAt.toISOString(),
  }
}
