import { type Static, Type } from 'typebox'
import { appNamed } from '../apps.ts'
import { nowOf } from '../clock/clock.ts'
import { serviceAccountFile } from '../pki/keys.ts'
import { refuse } from '../refusal.ts'
import type { Connection, Sim, SimApp, Target } from '../world.ts'
import { callService, type ServiceAnswer } from './call.ts'
import { followClock, hasTestClock } from './test-clock.ts'

const text = Type.String({ minLength: 1, maxLength: 400 })

export const connectShape = Type.Object(
  {
    workspace_base_url: text,
    secret_key: text,
    app_id: text,
    /** Where the stores' notifications reach the service, when that isn't the origin of the Workspace API. */
    webhook_base_url: Type.Optional(text),
    /** The namespace of the service's header names. */
    namespace: Type.Optional(Type.String({ pattern: '^[a-z][a-z0-9-]*$' })),
  },
  { additionalProperties: false },
)

/** Makes a test app of the service believe this simulator: trust, keys, addresses, and where notifications go. */
export async function connect(sim: Sim, request: Static<typeof connectShape>): Promise<SimApp> {
  const workspaceBaseUrl = request.workspace_base_url.replace(/\/+$/, '')
  const namespace = request.namespace ?? 'service'
  const to = { workspaceBaseUrl, secretKey: request.secret_key, environmentHeader: `x-${namespace}-env` }
  const found = await demand(await callService(to, 'GET', `/apps/${request.app_id}`))
  const {
    id,
    project_id: projectId,
    platform,
    bundle_id: bundleId,
    package_name: packageName,
    account_token_namespace: accountTokenNamespace = null,
  } = found
  const store = platform === 'android' ? 'playstore' : 'appstore'
  const name = store === 'appstore' ? bundleId : packageName
  if (platform === 'web' || typeof name !== 'string')
    throw refuse('no_store_app', `${id} has no ${platform === 'android' ? 'package_name' : 'bundle_id'}`, 409)
  const app = appNamed(sim, store, name)
  const origin = (request.webhook_base_url ?? new URL(workspaceBaseUrl).origin).replace(/\/+$/, '')
  app.target = targetOf(sim, `${origin}/webhooks/${store}/${id}`, name)
  for (const credential of credentials(sim, app, app.target))
    await demand(await callService(to, 'PUT', `/apps/${id}/store_credentials`, credential))
  const keys = await callService(to, 'GET', `/apps/${id}/publishable_keys`)
  app.connection = {
    ...to,
    appId: id,
    projectId,
    publishableKey: usableKey(keys),
    accountTokenNamespace,
    clockAheadMs: 0,
    hasTestClock: await hasTestClock({ ...to, projectId }),
  }
  await followClock(sim, app, nowOf(app.clock, sim.wall()))
  sim.changed()
  return app
}

function credentials(sim: Sim, app: SimApp, target: Target): object[] {
  const { world, url } = sim
  const stripe_api = `${url}/stripe`
  if (app.store === 'playstore')
    return [
      { kind: 'endpoints', play_api: `${url}/play`, play_jwks: `${url}/play/oauth2/v3/certs`, stripe_api },
      {
        kind: 'playstore',
        service_account: serviceAccountFile(world.keys, url),
        pubsub_subscription: target.subscription,
        push_audience: target.audience,
        push_email: target.email,
      },
    ]
  const { issuerId, keyId, privateKey } = world.keys.apiKey
  return [
    { kind: 'endpoints', appstore_api: `${url}/appstore`, stripe_api },
    {
      kind: 'appstore_trust',
      roots: [world.keys.chains.genuine.root.certificate],
      xcode_certificates: [world.keys.xcode.certificate],
    },
    { kind: 'appstore', app_apple_id: app.appAppleId, issuer_id: issuerId, key_id: keyId, private_key: privateKey },
  ]
}

function targetOf({ world }: Sim, url: string, name: string): Target {
  return { url, audience: url, email: world.keys.oidc.email, subscription: `projects/store-sim/subscriptions/${name}` }
}

function usableKey({ ok, body }: ServiceAnswer): Connection['publishableKey'] {
  if (!ok || !Array.isArray(body.data)) return null
  const key = body.data.find((one: { revoked_at?: unknown }) => (one.revoked_at ?? null) === null)
  return typeof key?.key === 'string' ? key.key : null
}

async function demand({ ok, status, body }: ServiceAnswer): Promise<ServiceAnswer['body']> {
  if (ok) return body
  throw refuse('service_refused', `the service answered ${status}: ${JSON.stringify(body)}`, 502)
}
