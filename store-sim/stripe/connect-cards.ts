import type { Static } from 'typebox'
import { refuse } from '../refusal.ts'
import { callService, type ServiceAnswer } from '../service/call.ts'
import type { connectShape } from '../service/connect.ts'
import type { Sim } from '../world.ts'
import { type CardConnection, cardsOf } from './cards.ts'

export interface ConnectedCards {
  platform: string
  stripe_api: string
  stripe_webhook: string
}

/** Makes a test app of the service sell by this simulator's Stripe: keys, address, and a place to return to where it has none. */
export async function connectCards(sim: Sim, request: Static<typeof connectShape>): Promise<ConnectedCards> {
  const workspaceBaseUrl = request.workspace_base_url.replace(/\/+$/, '')
  const environmentHeader = `x-${request.namespace ?? 'service'}-env`
  const to = { workspaceBaseUrl, secretKey: request.secret_key, environmentHeader }
  const ask = async (method: string, path: string, body?: object) => demand(await callService(to, method, path, body))
  const at = `/apps/${request.app_id}`
  const { id, platform, project_id: projectId } = await ask('GET', at)
  const { held, endpoints } = cardsOf(sim)

  // One record for all stores: the addresses of the others stay.
  const { data } = await ask('GET', `${at}/store_credentials`)
  const known = data.find(({ kind }: { kind: string }) => kind === 'endpoints')?.fields ?? {}
  await ask('PUT', `${at}/store_credentials`, { ...known, kind: 'endpoints', stripe_api: `${sim.url}/stripe` })
  const { secretKey: secret_key, webhookSecret: webhook_secret } = held
  await ask('PUT', `${at}/store_credentials`, { kind: 'stripe', secret_key, webhook_secret })
  const { checkout_return_urls: returns } = await ask('GET', `${at}/store_settings`)
  if (returns.length === 0) {
    // Not on this machine it is no address to return to: whoever connects it names one.
    await callService(to, 'PATCH', `${at}/store_settings`, { checkout_return_urls: [`${sim.url}/stripe/`] })
  }
  const origin = (request.webhook_base_url ?? new URL(workspaceBaseUrl).origin).replace(/\/+$/, '')
  const connection: CardConnection = { ...to, projectId }
  endpoints[id] = { url: `${origin}/webhooks/stripe/${id}`, connection }
  sim.changed()
  return { platform, stripe_api: `${sim.url}/stripe`, stripe_webhook: endpoints[id].url }
}

async function demand({ ok, status, body }: ServiceAnswer): Promise<ServiceAnswer['body']> {
  if (ok) return body
  throw refuse('service_refused', `the service answered ${status}: ${JSON.stringify(body)}`, 502)
}
