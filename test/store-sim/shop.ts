import assert from 'node:assert/strict'
import { after } from 'node:test'
import { must } from '../../src/kernel/assert.ts'
import { randomText } from '../../src/kernel/ids.ts'
import type { Answer } from '../app/answers.ts'
import { type App, clientOf, eventually, openProject, type Project } from '../app/project.ts'
import { startService, type TestService } from '../harness/service.ts'
import { appleProducts, playProducts, productsOfService } from './shop-catalogue.ts'
import { type Body, openSim, type Simulator } from './sim.ts'

export type Store = 'appstore' | 'playstore'

/** The service and the simulator of one file: what one knows of the other goes over HTTP. */
export interface Shop {
  service: TestService
  sim: Simulator
  /** An app of its own project, sold in the simulator and connected to it; its time runs with the wall’s. */
  open: (store: Store) => Promise<Counter>
  /** The faults of both stores from now on; none: they work. */
  faults: (...faults: object[]) => Promise<void>
  /** No notification reaches the service meanwhile. */
  silently: <T>(work: () => Promise<T>) => Promise<T>
  /** Whatever the stores told is done, and whatever they are to be told is. */
  settled: () => Promise<void>
  /** How often the stores were called at paths like this since the log stood at `after`. */
  calls: (path: RegExp, after: number) => Promise<number>
  logged: () => Promise<number>
}

/** Where things are sold: one app. */
export interface Counter {
  store: Store
  project: Project
  app: App
  /** The same app with a key of live. */
  live: App
  /** Bundle id or package name. */
  name: string
  /** Bought for the customer by a store account of the same name; `customer: undefined` names nobody. */
  buy: (who: string, purchase: object) => Promise<Body>
  verb: (held: Body, verb: string, body?: object) => Promise<Body>
  bring: (who: string, held: Body, more?: object) => Promise<Answer>
  entitled: (who: string, feature?: string) => Promise<boolean>
  balance: (who: string, feature?: string) => Promise<number>
  /** What the workspace has of the customer, who is not made by asking. */
  shown: (who: string) => Promise<Body[]>
  isKnown: (who: string) => Promise<boolean>
  settings: (changes: object) => Promise<void>
  credentials: (body: object) => Promise<void>
  move: (by: string) => Promise<void>
  /** The service's clock alone: so much ahead of the wall. */
  setClock: (offsetMs: number) => Promise<void>
  /** Play: as an app does it by itself. */
  acknowledge: (held: Body) => Promise<void>
  /** What the customer has was not read from the store lately. */
  unread: (who: string) => Promise<void>
  /** Says beforehand whose the account token is, so that a store can attach what nobody brings. */
  bind: (who: string, value: string) => Promise<void>
}

export async function openShop(): Promise<Shop> {
  const service = await startService()
  const sim = await openSim({ clock: 'real' })
  after(async () => {
    await sim[Symbol.asyncDispose]()
    await service[Symbol.asyncDispose]()
  })
  const faults = (...list: object[]) => sim.control('PUT', '/sim/faults', { faults: list })
  const log = async (from: number): Promise<Body[]> => (await sim.control('GET', `/sim/log?after=${from}`)).log
  const shop: Shop = {
    ...{ service, sim, faults },
    open: (store) => openCounter(shop, store),
    async silently(work) {
      await faults({ kind: 'drop', path: '/notify/*' })
      try {
        return await work()
      } finally {
        await faults()
      }
    },
    async settled() {
      await eventually(async () => {
        const [row] = await service.pool.query<{ waiting: number }>(
          `select (select count(*) from store_inbox where status = 'waiting')::int
             + (select count(*) from store_outbox where status = 'waiting')::int as waiting`,
        )
        return row?.waiting === 0
      }, 30_000)
    },
    calls: async (path, from) =>
      (await log(from)).filter(({ kind, what }) => kind === 'call' && path.test(what)).length,
    logged: async () => (await log(0)).at(-1)?.n ?? 0,
  }
  return shop
}

async function openCounter({ service, sim }: Shop, store: Store): Promise<Counter> {
  const project = await openProject(service)
  const isApple = store === 'appstore'
  const name = `com.example.${randomText(8)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, 'x')}`
  const app = await project.app(isApple ? 'ios' : 'android')
  await project.patch(`/apps/${app.id}`, isApple ? { bundle_id: name } : { package_name: name })
  const { key } = await project.post(`/apps/${app.id}/publishable_keys`, {}, { environment: 'live' })
  const live: App = { ...app, environment: 'live', ...clientOf(service.url, key) }
  await project.feature('pro', { type: 'boolean' })
  await project.feature('exports')
  for (const product of productsOfService) await project.post('/products', { project_id: project.id, ...product })
  await sim.control('POST', '/sim/connect', {
    ...{ workspace_base_url: `${service.url}/v1`, secret_key: service.secretKey, app_id: app.id },
  })
  const products = isApple ? appleProducts : playProducts
  await sim.control('PUT', `/sim/${store}/products`, { app: name, products })
  const found = async (who: string): Promise<Body> =>
    (await project.get(`/customers?project_id=${project.id}&distinct_id=${encodeURIComponent(who)}`)).data[0]
  const shown = async (who: string): Promise<Body[]> => {
    const customer = await found(who)
    return customer === undefined ? [] : (await project.get(`/customers/${customer.id}/purchases`)).data
  }
  return {
    ...{ store, project, app, live, name, shown },
    buy: (who, purchase) =>
      sim.control('POST', `/sim/${store}/purchases`, { app: name, account: who, customer: who, ...purchase }),
    verb: (held, verb, body = {}) => sim.verb(held, verb, body),
    bring: (who, held, more = {}) => app.post('/purchase', { distinct_id: who, ...held.purchase, ...more }),
    entitled: async (who, feature = 'pro') =>
      (await app.post('/entitled', { customerId: who, featureId: feature })).body.allowed,
    balance: async (who, feature = 'exports') =>
      (await app.post('/entitled', { customerId: who, featureId: feature })).body.balance ?? 0,
    isKnown: async (who) => (await found(who)) !== undefined,
    settings: (changes) => project.patch(`/apps/${app.id}/store_settings`, changes),
    async credentials(body) {
      const { status, body: answer } = await service.workspace('PUT', `/apps/${app.id}/store_credentials`, { body })
      assert.ok(status < 300, JSON.stringify(answer))
    },
    move: (by) => sim.control('POST', '/sim/clock', { app: name, by }),
    async setClock(offset_ms) {
      const { status, body } = await service.workspace('PUT', `/projects/${project.id}/test_clock`, {
        body: { offset_ms },
      })
      assert.ok(status < 300, JSON.stringify(body))
    },
    async acknowledge({ purchase, purchaseToken }) {
      const kind = purchase.product_type === 'subscription' ? 'subscriptions' : 'products'
      const path = `/purchases/${kind}/${purchase.product_id}/tokens/${purchaseToken}:acknowledge`
      const { status } = await sim.play('POST', path, {}, name)
      assert.ok(status === 200 || status === 400, 'it is acknowledged, or was')
    },
    async unread(who) {
      for (const { id } of await shown(who))
        await service.pool.query('update store_lineage set last_read_at_ms = 0 where public_id = $1', [id])
    },
    async bind(who, value) {
      const customer = await project.customer(who)
      await project.post(`/customers/${customer}/checkout_bindings`, { app_id: app.id, value })
    },
  }
}

const statuses: Record<string, number> = {
  ...{ invalid: 400, owner_unverified: 400, unsupported: 400, conflict: 409 },
  ...{ reconciliation_retryable: 503, unavailable: 503, limited: 429 },
}
const prefixes = { appstore: 'app_store_purchase_', playstore: 'android_store_purchase_' }

/** `given`, `replay`, or the suffix of the refusal with its detail: `unsupported expired`. */
export function assertAnswer({ store }: Pick<Counter, 'store'>, answer: Answer, expected: string, about = ''): void {
  const { status, body } = answer
  const said = `${about}: ${status} ${JSON.stringify(body)}`
  if (expected === 'given' || expected === 'replay') {
    assert.deepEqual([status, body.success, body.idempotent_replay], [200, true, expected === 'replay'], said)
    return
  }
  const [suffix = '', detail] = expected.split(' ')
  const code = prefixes[store] + (suffix === 'limited' ? 'unavailable' : suffix)
  assert.deepEqual([status, body.code, body.detail], [must(statuses[suffix], suffix), code, detail], said)
  const isTemporary = status === 503 || status === 429
  assert.equal(answer.headers.has('retry-after'), isTemporary, said)
}

let people = 0
export const someone = (): string => `row-${++people}`
