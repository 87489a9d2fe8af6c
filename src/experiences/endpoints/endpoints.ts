import { randomBytes } from 'node:crypto'
import type { Sql, Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import { webhookEndpointsMax } from '../../kernel/limits.ts'
import { seal, unseal } from '../../kernel/seal.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Announced } from '../announce/announce.ts'
import {
  deleteEndpointRow,
  type EndpointTerms,
  insertEndpoint,
  lockEndpoints,
  selectEndpoint,
  selectTarget,
  updateEndpoint,
  type WebhookEndpoint,
} from './endpoint-store.ts'

/** A changed endpoint; `secret` is told when it is new, and never again. */
export interface EndpointEdit {
  before: WebhookEndpoint
  after: WebhookEndpoint
}

/** 409 `limit_reached` beyond so many of a scope; 400 for an address that nothing can be sent to. */
export async function createEndpoint(
  tx: Tx,
  scope: Scope,
  { name, url, events = [] }: Omit<EndpointTerms, 'events'> & { events?: Announced[] | undefined },
  sealingKey: Buffer,
): Promise<{ endpoint: WebhookEndpoint; secret: string }> {
  checkUrl(url)
  if ((await lockEndpoints(tx, scope)) >= webhookEndpointsMax) {
    throw refuse('conflict', {
      message: `A project has at most ${webhookEndpointsMax} webhook endpoints in each environment.`,
    })
  }
  const publicId = newId('whe')
  const secret = newSecret()
  const sealedSecret = seal(sealingKey, contextOf(scope.scopeId, publicId), secret)
  const [endpoint] = await insertEndpoint(tx, scope, { publicId, name, url, events, sealedSecret })
  return { endpoint: must(endpoint, 'it was inserted'), secret }
}

export async function getEndpoint(
  sql: Sql,
  scopes: Scope[],
  id: string,
  { lock = false } = {},
): Promise<WebhookEndpoint> {
  const endpoint = await selectEndpoint(sql, scopes, id, { lock })
  if (!endpoint) throw refuse('not_found')
  return endpoint
}

export async function editEndpoint(
  tx: Tx,
  scopes: Scope[],
  id: string,
  edit: { [Key in keyof EndpointTerms]?: EndpointTerms[Key] | undefined },
): Promise<EndpointEdit> {
  if (edit.url !== undefined) checkUrl(edit.url)
  const before = await getEndpoint(tx, scopes, id, { lock: true })
  const { name = before.name, url = before.url, events = before.events } = edit
  const [after] = await updateEndpoint(tx, before, { name, url, events, sealedSecret: null })
  return { before, after: must(after, 'it is locked') }
}

/** The secret before signs nothing any more. */
export async function rotateSecret(
  tx: Tx,
  scopes: Scope[],
  id: string,
  sealingKey: Buffer,
): Promise<{ endpoint: WebhookEndpoint; secret: string }> {
  const before = await getEndpoint(tx, scopes, id, { lock: true })
  const secret = newSecret()
  const sealedSecret = seal(sealingKey, contextOf(before.scopeId, before.publicId), secret)
  const [endpoint] = await updateEndpoint(tx, before, { ...before, sealedSecret })
  return { endpoint: must(endpoint, 'it is locked'), secret }
}

/** Journeys that would send to it go on with `failure`. */
export async function deleteEndpoint(tx: Tx, scopes: Scope[], id: string): Promise<WebhookEndpoint> {
  const endpoint = await getEndpoint(tx, scopes, id, { lock: true })
  await deleteEndpointRow(tx, endpoint)
  return endpoint
}

/** Where to send, and what to sign with; undefined: the endpoint was deleted. */
export async function openTarget(
  sql: Sql,
  { scopeId, endpointId }: { scopeId: number; endpointId: string },
  sealingKey: Buffer,
): Promise<{ url: string; secret: string } | undefined> {
  const target = await selectTarget(sql, scopeId, endpointId)
  if (!target) return undefined
  const secret = unseal(sealingKey, contextOf(scopeId, endpointId), target.sealedSecret)
  return { url: target.url, secret: must(secret, 'it was sealed for this endpoint') }
}

/** As receivers' libraries for signed webhooks take it. */
function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** A sealed secret that is copied to another endpoint does not open. */
function contextOf(scopeId: number, publicId: string): string {
  return `webhook-secret ${scopeId} ${publicId}`
}

function checkUrl(text: string): void {
  const url = URL.canParse(text) ? new URL(text) : null
  const isSendable =
    url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && url.hash === ''
  if (isSendable) return
  const message = 'url must be an http or https address without user, password and fragment.'
  throw refuse('invalid_request', { param: 'url', message })
}
