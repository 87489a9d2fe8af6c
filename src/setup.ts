import { join } from 'node:path'
import type { Config } from './config.ts'
import { createSegment, resolveOrCreate } from './customers/index.ts'
import type { Pool, Tx } from './db/pool.ts'
import { demoExperiences } from './demo-experiences.ts'
import { attachProduct, createFeature, createProduct } from './entitlements/index.ts'
import { systemClock } from './kernel/clock.ts'
import { randomText } from './kernel/ids.ts'
import { wireNames } from './kernel/wire-names.ts'
import { writeSecretFile } from './secret-file.ts'
import {
  createApp,
  createFirstWorkspace,
  createProject,
  createPublishableKey,
  type Environment,
  type Platform,
  type Scope,
  touchTenancy,
} from './tenancy/index.ts'

/** What the first run made: the shape of `first-run.json`. */
export interface FirstRun {
  base_url: string
  workspace_base_url: string
  owner: { email: string; password: string }
  workspace_id: string
  secret_key: string
  project_id?: string
  apps?: { id: string; platform: Platform; keys: Record<Environment, string> }[]
}

export interface SetUpKeys {
  tombstoneKey: Buffer
  sealingKey: Buffer
}

const demoCustomer = 'demo-user'

/**
 * Sets an empty database up, in one transaction; undefined when somebody had done so. `first-run.json` is on disk before
 * the commit: a start killed in between leaves no keys that nobody knows, and one killed before it sets up again.
 */
export async function setUp(
  pool: Pool,
  config: Config,
  { tombstoneKey, sealingKey }: SetUpKeys,
): Promise<FirstRun | undefined> {
  const owner = { email: config.setupEmail, password: config.setupPassword ?? randomText(20) }
  return pool.transaction(async (tx) => {
    const first = await createFirstWorkspace(tx, owner)
    if (!first) return undefined
    const firstRun: FirstRun = {
      base_url: config.publicUrl,
      workspace_base_url: `${config.publicUrl}/v1`,
      owner,
      workspace_id: first.workspaceId,
      secret_key: first.secretKey,
      ...(config.demo ? await createDemo(tx, first.workspaceId, config, { tombstoneKey, sealingKey }) : {}),
    }
    await writeSecretFile(join(config.dataDir, 'first-run.json'), `${JSON.stringify(firstRun, null, 2)}\n`)
    return firstRun
  })
}

async function createDemo(tx: Tx, workspaceId: string, config: Config, { tombstoneKey, sealingKey }: SetUpKeys) {
  const { project, scopes } = await createProject(tx, workspaceId, { name: 'Demo' })
  const apps: NonNullable<FirstRun['apps']> = []
  for (const platform of ['ios', 'android'] as const) {
    const name = `Demo for ${platform === 'ios' ? 'iOS' : 'Android'}`
    const store = platform === 'ios' ? { bundleId: 'com.example.demo' } : { packageName: 'com.example.demo' }
    const app = await createApp(tx, workspaceId, { projectId: project.id, platform, name, ...store })
    const keys = { test: await keyOf(tx, app.id, 'test'), live: await keyOf(tx, app.id, 'live') }
    apps.push({ id: app.id, platform, keys })
  }
  await createCatalogue(tx, scopes.test)
  await createCatalogue(tx, scopes.live)
  for (const scope of [scopes.test, scopes.live]) await demoExperiences(tx, scope, { sealingKey, config })
  await createCustomer(tx, scopes.test, tombstoneKey)
  await touchTenancy(tx)
  return { project_id: project.id, apps }
}

async function keyOf(tx: Tx, appId: string, environment: Environment): Promise<string> {
  return (await createPublishableKey(tx, appId, environment)).key
}

async function createCatalogue(tx: Tx, scope: Scope): Promise<void> {
  await createFeature(tx, scope, { key: 'pro', name: 'Pro', type: 'boolean', published: true })
  await createFeature(tx, scope, { key: 'exports', name: 'Exports', type: 'metered', published: true })
  await createFeature(tx, scope, { key: 'chat', name: 'Chat messages', type: 'metered', published: true })
  await createFeature(tx, scope, {
    key: 'ai_credits',
    name: 'AI credits',
    type: 'creditSystem',
    creditCosts: [{ feature: 'chat', cost: 2 }],
    published: true,
  })
  const where = { property: { key: 'plan', op: 'eq', value: 'pro' } }
  await createSegment(tx, scope, { name: 'On the pro plan', definition: { version: 1, where }, keptDays: Infinity })
  const common = { entity_scoped: false, rollover: null }
  const monthly = { ...common, unlimited: false, interval: 'month' } as const
  const plans = {
    basePlanId: null,
    purchaseOptionId: null,
    offerId: null,
    consumable: false,
    ...{ duration: null, familySharing: false },
  }
  await createProduct(tx, scope, {
    key: 'pro_monthly',
    name: 'Pro, monthly',
    type: 'subscription',
    grants: [
      { ...common, feature: 'pro', allowance: null, unlimited: false, interval: null },
      { ...monthly, feature: 'exports', allowance: 100 },
      { ...monthly, feature: 'ai_credits', allowance: 200 },
    ],
    stores: [
      { ...plans, store: 'appstore', productId: 'com.example.demo.pro_monthly' },
      { ...plans, store: 'playstore', productId: 'pro_monthly', basePlanId: 'monthly' },
    ],
  })
}

/** Somebody who has the Product, so that the printed lines have something to show. */
async function createCustomer(tx: Tx, scope: Scope, tombstoneKey: Buffer): Promise<void> {
  const { customer } = await resolveOrCreate(tx, scope, demoCustomer, { tombstoneKey, now: systemClock.now() })
  await attachProduct(tx, scope, { customerId: customer.id, product: 'pro_monthly', startsAt: null, expiresAt: null })
}

/** What the first start prints, once: the keys, and three lines to paste. */
export function summaryOf(firstRun: FirstRun, { dataDir, namespace }: Config): string {
  const { base_url, workspace_base_url, owner, secret_key, apps } = firstRun
  const rows = [
    ['App API', base_url],
    ['Workspace API', workspace_base_url],
    ['Reference', `${base_url}/docs`],
    ['Owner', `${owner.email}  password ${owner.password}`],
    ['Secret key', secret_key],
    ...(apps ?? []).flatMap(({ platform, keys }) => [
      [`${platform} test key`, keys.test],
      [`${platform} live key`, keys.live],
    ]),
  ]
  const table = rows.map(([name, value]) => `  ${`${name}`.padEnd(17)}${value}`).join('\n')
  const key = apps?.[0]?.keys.test
  const tries =
    key === undefined ? tryWorkspace(firstRun) : tryApp(firstRun, key, wireNames(namespace).environmentHeader)
  return `
Turnpike is running. This is shown once; it is also in ${join(dataDir, 'first-run.json')}

${table}

Try it:

${tries.join('\n\n')}

`
}

function tryApp(firstRun: FirstRun, key: string, environmentHeader: string): string[] {
  const { base_url, workspace_base_url, secret_key } = firstRun
  const event = { apiKey: key, event: 'tour_started', distinct_id: demoCustomer, properties: { $set: { plan: 'pro' } } }
  const query = { apiKey: key, customerId: demoCustomer, featureId: 'exports' }
  const withUuid = JSON.stringify(event).replace(
    '"event"',
    `"uuid":"'$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)'","event"`,
  )
  return [
    `curl -s ${base_url}/event -H 'Content-Type: application/json' -d '${withUuid}'`,
    `curl -s ${base_url}/entitled -H 'Content-Type: application/json' -d '${JSON.stringify(query)}'`,
    `curl -s ${workspace_base_url}/customers/by_distinct_id/${demoCustomer} -H 'Authorization: Bearer ${secret_key}' -H '${environmentHeader}: test'`,
  ]
}

function tryWorkspace({ workspace_base_url, secret_key }: FirstRun): string[] {
  const authorization = `-H 'Authorization: Bearer ${secret_key}'`
  const json = `-H 'Content-Type: application/json'`
  return [
    `curl -s ${workspace_base_url}/projects ${authorization} ${json} -d '{"name":"My app"}'`,
    `curl -s ${workspace_base_url}/projects ${authorization}`,
    `curl -s ${workspace_base_url}/customers ${authorization} ${json} -d '{"distinct_id":"user-1"}'`,
  ]
}
