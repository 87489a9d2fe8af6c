import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import {
  announced,
  createEndpoint,
  deleteEndpoint,
  editEndpoint,
  getEndpoint,
  listEndpoints,
  rotateSecret,
  type WebhookEndpoint,
} from '../../experiences/index.ts'
import { webhookUrlCharsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { closed, instant, oneOf } from '../schema.ts'
import { scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, deleted, environment, name, projectId } from './parts.ts'

const properties = {
  object: Type.Literal('webhook_endpoint'),
  id: Type.String(),
  project_id: Type.String(),
  environment,
  name: Type.String(),
  url: Type.String(),
  events: Type.Array(oneOf(...announced)),
  created_at: instant,
  updated_at: instant,
}
const EndpointObject = Type.Object(properties, { title: 'WebhookEndpoint' })
const NewEndpointObject = Type.Object(
  { ...properties, secret: Type.String({ description: 'What webhooks are signed with. Shown once.' }) },
  { title: 'NewWebhookEndpoint' },
)

const url = Type.String({
  minLength: 1,
  maxLength: webhookUrlCharsMax,
  'x-storable': true,
  description: 'http or https, without user, password and fragment.',
})

const events = Type.Optional(
  Type.Array(oneOf(...announced), {
    uniqueItems: true,
    description: 'Changes of Experiences that it is told of. Steps of journeys may call it in any case.',
  }),
)

const tag = 'Webhook endpoints'
const role = 'admin'
const errors = [404, 409]

export function webhookEndpoints(to: Endpoints, services: { pool: Pool; sealingKey: Buffer }): void {
  reads(to, services.pool)
  secrets(to, services.sealingKey)
  changes(to)
}

function reads({ get }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/webhook_endpoints',
      operationId: 'listWebhookEndpoints',
      tag,
      summary: 'List webhook endpoints',
      description: 'Without their secrets.',
      query: closed({ ...listQuery, project_id: projectId }),
      answers: { 200: listOf(EndpointObject) },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, idsOf('whe'))
      const scope = look.scope(query.project_id)
      return listAnswer(await listEndpoints(pool, scope, page), page, {
        show: (endpoint) => show(endpoint, scope),
        positionOf: ({ publicId }) => publicId,
      })
    },
  )

  get(
    {
      path: '/webhook_endpoints/:id',
      operationId: 'getWebhookEndpoint',
      tag,
      summary: 'Get a webhook endpoint',
      params: byId,
      answers: { 200: EndpointObject },
      errors: [404],
    },
    async (look, { params }) => {
      const scopes = look.scopes()
      const endpoint = await getEndpoint(pool, scopes, params.id)
      return show(endpoint, scopeIn(scopes, endpoint))
    },
  )
}

function secrets({ post }: Endpoints, sealingKey: Buffer): void {
  post(
    {
      path: '/webhook_endpoints',
      operationId: 'createWebhookEndpoint',
      tag,
      summary: 'Create a webhook endpoint',
      description: 'Steps `webhook` of Experiences name it by its id. Every request it gets is signed with its secret.',
      role,
      secret: true,
      body: closed({ project_id: projectId, name, url, events }),
      answers: { 201: NewEndpointObject },
      errors,
    },
    async (change, { body }) => {
      const scope = change.scope(body.project_id)
      const { endpoint, secret } = await createEndpoint(change.tx, scope, body, sealingKey)
      const after = show(endpoint, scope)
      await change.audit('create', 'webhook_endpoint', endpoint.publicId, { after })
      return { status: 201, body: { ...after, secret } }
    },
  )

  post(
    {
      path: '/webhook_endpoints/:id/rotate_secret',
      operationId: 'rotateWebhookSecret',
      tag,
      summary: 'Give a webhook endpoint a new secret',
      description: 'From then on every request is signed with it, repeated ones too.',
      role,
      secret: true,
      params: byId,
      answers: { 200: NewEndpointObject },
      errors,
    },
    async (change, { params }) => {
      const scopes = change.scopes()
      const { endpoint, secret } = await rotateSecret(change.tx, scopes, params.id, sealingKey)
      const after = show(endpoint, scopeIn(scopes, endpoint))
      await change.audit('rotate_secret', 'webhook_endpoint', endpoint.publicId, { after })
      return { status: 200, body: { ...after, secret } }
    },
  )
}

function changes({ patch, delete: remove }: Endpoints): void {
  patch(
    {
      path: '/webhook_endpoints/:id',
      operationId: 'updateWebhookEndpoint',
      tag,
      summary: 'Change a webhook endpoint',
      role,
      params: byId,
      body: closed({ name: Type.Optional(name), url: Type.Optional(url), events }),
      answers: { 200: EndpointObject },
      errors: [404],
    },
    async (change, { params, body }) => {
      const scopes = change.scopes()
      const { before, after } = await editEndpoint(change.tx, scopes, params.id, body)
      const scope = scopeIn(scopes, after)
      const states = { before: show(before, scope), after: show(after, scope) }
      await change.audit('update', 'webhook_endpoint', after.publicId, states)
      return { status: 200, body: states.after }
    },
  )

  remove(
    {
      path: '/webhook_endpoints/:id',
      operationId: 'deleteWebhookEndpoint',
      tag,
      summary: 'Delete a webhook endpoint',
      description: 'Journeys that would send to it go on with `failure`.',
      params: byId,
      answers: { 200: deleted('webhook_endpoint') },
      errors: [404],
    },
    async (change, { params }) => {
      const scopes = change.scopes()
      const endpoint = await deleteEndpoint(change.tx, scopes, params.id)
      const before = show(endpoint, scopeIn(scopes, endpoint))
      await change.audit('delete', 'webhook_endpoint', endpoint.publicId, { before })
      return { status: 200, body: { object: 'webhook_endpoint', id: endpoint.publicId, deleted: true } }
    },
  )
}

function show(endpoint: WebhookEndpoint, scope: Scope): Static<typeof EndpointObject> {
  return {
    object: 'webhook_endpoint',
    id: endpoint.publicId,
    project_id: scope.projectId,
    environment: scope.environment,
    name: endpoint.name,
    url: endpoint.url,
    events: endpoint.events,
    created_at: endpoint.createdAt.toISOString(),
    updated_at: endpoint.updatedAt.toISOString(),
  }
}
