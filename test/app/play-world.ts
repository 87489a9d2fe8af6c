import { randomText } from '../../src/kernel/ids.ts'
import { playAccountToken } from '../../src/purchases/account-tokens.ts'
import { type PlayStore, pushEmail, type SoldToken, startPlayStore } from '../harness/play-store.ts'
import type { TestService } from '../harness/service.ts'
import type { Answer } from './answers.ts'
import { type App, openProject, type Project } from './project.ts'

export const packageName = 'com.example.app'
export const dayMs = 24 * 3600_000

export interface PlayWorld extends AsyncDisposable {
  project: Project
  app: App
  store: PlayStore
  webhook: string
  /** A token for a purchase of the customer's, of the monthly subscription unless told otherwise. */
  subscribe: (distinctId: string | null, more?: Subscribed) => string
  buy: (
    distinctId: string | null,
    productId: string,
    more?: Record<string, unknown>,
    whole?: Record<string, unknown>,
  ) => string
  /** Changes what the store shows of a token. */
  change: (token: string, change: Record<string, unknown>) => void
  bring: (distinctId: string, token: string, more?: object) => Promise<Answer>
  /** Tells the service that something happened to a token, and gives the answer's status. */
  notify: (token: string, kind?: SoldToken['kind'], messageId?: string) => Promise<number>
  settings: (changes: object) => Promise<void>
  entitled: (distinctId: string, feature?: string) => Promise<boolean>
  balance: (distinctId: string, feature?: string) => Promise<number>
}

export interface Subscribed {
  productId?: string
  basePlanId?: string
  offerId?: string
  state?: string
  from?: number
  until?: number
  order?: string | null
  whole?: Record<string, unknown>
  line?: Record<string, unknown>
}

const iso = (at: number) => new Date(at).toISOString()

/**
 * An Android app in `test` with a Google Play of its own: `monthly` gives `pro` and a hundred `exports` a month, `yearly`
 * `pro` and five hundred, `pack` ten `exports` once and is consumable, `lifetime` `pro` for good.
 */
export async function openPlay(service: TestService): Promise<PlayWorld> {
  const store = await startPlayStore(packageName)
  const project = await openProject(service)
  const app = await project.app('android', 'test')
  await project.patch(`/apps/${app.id}`, { package_name: packageName })
  const webhook = `${service.url}/webhooks/playstore/${app.id}`
  const put = async (body: object) => {
    const answer = await service.workspace('PUT', `/apps/${app.id}/store_credentials`, { body })
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body))
  }
  await put({ kind: 'endpoints', play_api: store.url, play_jwks: `${store.url}/certs` })
  await put({
    ...{ kind: 'playstore', service_account: store.serviceAccount },
    ...{ pubsub_subscription: 'projects/p/subscriptions/play', push_audience: webhook, push_email: pushEmail },
  })
  await project.feature('pro', { type: 'boolean' })
  await project.feature('exports')
  const product = (key: string, type: string, grants: object[], link: object = {}) =>
    project.post('/products', {
      ...{ project_id: project.id, key, name: key, type, grants },
      stores: [{ store: 'playstore', product_id: key, ...link }],
    })
  await product('monthly', 'subscription', [
    { feature: 'pro' },
    { feature: 'exports', allowance: 100, interval: 'month' },
  ])
  await product('yearly', 'subscription', [
    { feature: 'pro' },
    { feature: 'exports', allowance: 500, interval: 'month' },
  ])
  await product('pack', 'one_time', [{ feature: 'exports', allowance: 10 }], { consumable: true })
  await product('lifetime', 'one_time', [{ feature: 'pro' }])

  const world: PlayWorld = {
    ...{ project, app, store, webhook },
    subscribe(distinctId, more = {}) {
      const token = `token-${randomText(24)}`
      const {
        productId = 'monthly',
        basePlanId = 'base',
        offerId,
        state = 'ACTIVE',
        order = `GPA.${randomText(8)}`,
      } = more
      const { from = Date.now() - dayMs, until = Date.now() + 29 * dayMs } = more
      const body = {
        ...{ subscriptionState: `SUBSCRIPTION_STATE_${state}`, startTime: iso(from), testPurchase: {} },
        ...accountOf(distinctId),
        lineItems: [
          {
            ...{ productId, expiryTime: iso(until), autoRenewingPlan: { autoRenewEnabled: true } },
            ...(order === null ? {} : { latestSuccessfulOrderId: order }),
            offerDetails: { basePlanId, ...(offerId === undefined ? {} : { offerId }) },
            ...more.line,
          },
        ],
        ...more.whole,
      }
      store.sold.set(token, { kind: 'subscription', body, acknowledged: false, consumed: false })
      return token
    },
    buy(distinctId, productId, more = {}, whole = {}) {
      const token = `token-${randomText(24)}`
      const body = {
        ...{ purchaseStateContext: { purchaseState: 'PURCHASED' }, testPurchaseContext: { fopType: 'TEST' } },
        ...{ orderId: `GPA.${randomText(8)}`, purchaseCompletionTime: iso(Date.now() - 1000) },
        ...(distinctId === null ? {} : { obfuscatedExternalAccountId: playAccountToken(distinctId) }),
        productLineItem: [{ productId, productOfferDetails: { purchaseOptionId: 'buy', quantity: 1, ...more } }],
        ...whole,
      }
      store.sold.set(token, { kind: 'one_time', body, acknowledged: false, consumed: false })
      return token
    },
    change(token, change) {
      const sold = store.sold.get(token)
      if (!sold) throw new Error('no such token')
      sold.body = { ...sold.body, ...change }
    },
    bring: (distinctId, token, more = {}) =>
      app.post('/purchase', { type: 'playstore', distinct_id: distinctId, purchase_token: token, ...more }),
    notify(token, kind = 'subscription', messageId) {
      const about =
        kind === 'subscription'
          ? { subscriptionNotification: { version: '1.0', notificationType: 4, purchaseToken: token } }
          : { oneTimeProductNotification: { version: '1.0', notificationType: 1, purchaseToken: token, sku: 'x' } }
      const data = { version: '1.0', packageName, eventTimeMillis: String(Date.now()), ...about }
      return store.push(webhook, data, messageId === undefined ? {} : { messageId })
    },
    async settings(changes) {
      await project.patch(`/apps/${app.id}/store_settings`, changes)
    },
    async entitled(distinctId, feature = 'pro') {
      return (await app.post('/entitled', { customerId: distinctId, featureId: feature })).body.allowed
    },
    async balance(distinctId, feature = 'exports') {
      return (await app.post('/entitled', { customerId: distinctId, featureId: feature })).body.balance
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
  return world
}

export function accountOf(distinctId: string | null) {
  if (distinctId === null) return {}
  return { externalAccountIdentifiers: { obfuscatedExternalAccountId: playAccountToken(distinctId) } }
}

/** The one line item of a subscription, as it will be. */
export function lineOf(productId: string, until: number, order: string, more: object = {}) {
  return {
    lineItems: [
      {
        ...{ productId, expiryTime: iso(until), latestSuccessfulOrderId: order },
        ...{ autoRenewingPlan: { autoRenewEnabled: true }, offerDetails: { basePlanId: 'base' } },
        ...more,
      },
    ],
  }
}
