import { randomBytes } from 'node:crypto'
import { callService, type ServiceAnswer } from '../service/call.ts'
import type { Store } from '../world.ts'

/** A service to play on. */
export interface Service {
  workspaceBaseUrl: string
  secretKey: string
  namespace: string
}

/** A project made for one scenario, with an app of its own, connected to the simulator. */
export interface Stage {
  followsClock: boolean
  /** Bundle id or package name. */
  name: string
  store: Store
  projectId: string
  keys: { test: string; live: string }
  origin: string
  call: (method: string, path: string, body?: object) => Promise<ServiceAnswer['body']>
}

/** Beside the simulator's first catalogue: what each of its products grants. */
const features = [
  { key: 'pro', name: 'Pro', type: 'boolean' },
  { key: 'premium', name: 'Premium', type: 'boolean' },
  { key: 'coins', name: 'Coins', type: 'metered' },
]
const boolean = (feature: string) => ({ feature, allowance: null, unlimited: false, interval: null })
const apple = (product: string) => ({ store: 'appstore', product_id: `com.example.demo.${product}` })
const play = (product_id: string, base_plan_id?: string) => ({ store: 'playstore', product_id, base_plan_id })
const products = [
  {
    key: 'pro',
    type: 'subscription',
    grants: [boolean('pro')],
    stores: [
      ...['pro_monthly', 'plus_monthly', 'pro_yearly'].map(apple),
      play('pro_monthly', 'monthly'),
      play('pro_monthly', 'prepaid-month'),
      play('pro_yearly', 'yearly'),
    ],
  },
  {
    key: 'premium',
    type: 'subscription',
    grants: [boolean('pro'), boolean('premium')],
    stores: [apple('premium_monthly'), play('premium_monthly', 'monthly')],
  },
  {
    key: 'coins',
    type: 'one_time',
    grants: [{ feature: 'coins', allowance: 100, unlimited: false, interval: null }],
    stores: [apple('coins_100'), { ...play('coins_100'), consumable: true }],
  },
  { key: 'lifetime', type: 'one_time', grants: [boolean('pro')], stores: [apple('lifetime'), play('lifetime')] },
]

export async function setStage(sim: string, service: Service, store: Store, settings: object = {}): Promise<Stage> {
  const environmentHeader = `x-${service.namespace}-env`
  const call = async (method: string, path: string, body?: object, environment = 'test') => {
    const to = { ...service, environmentHeader, environment }
    const answer = await callService(to, method, path, body)
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const name = `com.example.sim.${randomBytes(4).toString('hex')}`
  const { id: projectId } = await call('POST', '/projects', { name })
  const platform =
    store === 'appstore' ? { platform: 'ios', bundle_id: name } : { platform: 'android', package_name: name }
  const { id: appId } = await call('POST', '/apps', { project_id: projectId, name, ...platform })
  const keys = { test: '', live: '' }
  for (const environment of ['test', 'live'] as const)
    keys[environment] = (await call('POST', `/apps/${appId}/publishable_keys`, {}, environment)).key
  for (const feature of features) await call('POST', '/features', { project_id: projectId, ...feature })
  for (const product of products)
    await call('POST', '/products', { project_id: projectId, name: product.key, ...product })
  const about = await ask(sim, 'POST', '/sim/connect', {
    workspace_base_url: service.workspaceBaseUrl,
    secret_key: service.secretKey,
    app_id: appId,
    namespace: service.namespace,
  })
  if (Object.keys(settings).length > 0) await call('PATCH', `/apps/${appId}/store_settings`, settings)
  return {
    followsClock: about.service_follows_clock,
    name,
    store,
    projectId,
    keys,
    origin: new URL(service.workspaceBaseUrl).origin,
    call,
  }
}

/** The simulator itself, over HTTP like everybody. */
// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
export async function ask(sim: string, method: string, path: string, body?: object): Promise<any> {
  const response = await fetch(`${sim}${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return JSON.parse(text)
}
