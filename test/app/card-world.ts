import type { TestService } from '../harness/service.ts'
import { type CardStore, startCardStore } from '../harness/stripe.ts'
import type { Answer } from './answers.ts'
import { type App, openProject, type Project } from './project.ts'

export const dayMs = 24 * 3600_000
export const returnTo = 'https://shop.example.com/paid'

export interface CardWorld extends AsyncDisposable {
  project: Project
  app: App
  store: CardStore
  webhook: string
  checkout: (customerId: string, productIds: string[], more?: object) => Promise<Answer>
  /** Opens a page and pays it: the page's id and what it became. Nobody has told the service yet. */
  buy: (
    customerId: string,
    productIds: string[],
    paid?: Parameters<CardStore['pay']>[1],
  ) => Promise<{ session: string; root: string }>
  tell: (type: string, object: string, id?: string) => Promise<number>
  put: (body: object) => Promise<void>
  settings: (changes: object) => Promise<void>
  entitled: (customerId: string, feature?: string) => Promise<boolean>
  balance: (customerId: string, feature?: string) => Promise<number>
}

/**
 * An app in `test` with a Stripe of its own: `monthly` gives `pro` and a hundred `exports` a month, `yearly` `pro` and five
 * hundred, `pack` ten `exports` once, `lifetime` `pro` for good; `unsold` has no price.
 */
export async function openCards(service: TestService): Promise<CardWorld> {
  const store = await startCardStore()
  const project = await openProject(service)
  const app = await project.app('web', 'test')
  const webhook = `${service.url}/webhooks/stripe/${app.id}`
  const put = async (body: object) => {
    const answer = await service.workspace('PUT', `/apps/${app.id}/store_credentials`, { body })
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body))
  }
  await put({ kind: 'endpoints', stripe_api: store.url })
  await put({ kind: 'stripe', secret_key: store.secretKey, webhook_secret: store.webhookSecret })
  await project.patch(`/apps/${app.id}/store_settings`, {
    checkout_return_urls: [returnTo, 'https://shop.example.com/b/'],
  })
  await project.feature('pro', { type: 'boolean' })
  await project.feature('exports')
  const product = (key: string, type: string, grants: object[], isSold = true) =>
    project.post('/products', {
      ...{ project_id: project.id, key, name: key, type, grants },
      stores: isSold ? [{ store: 'stripe', product_id: `price_${key}` }] : [],
    })
  const exports = (allowance: number) => ({ feature: 'exports', allowance, interval: 'month' })
  await product('monthly', 'subscription', [{ feature: 'pro' }, exports(100)])
  await product('yearly', 'subscription', [{ feature: 'pro' }, exports(500)])
  await product('pack', 'one_time', [{ feature: 'exports', allowance: 10 }])
  await product('lifetime', 'one_time', [{ feature: 'pro' }])
  await product('unsold', 'one_time', [{ feature: 'pro' }], false)
  for (const key of ['pack', 'lifetime']) store.sellOnce(`price_${key}`)

  const world: CardWorld = {
    ...{ project, app, store, webhook, put },
    checkout: (customerId, productIds, more = {}) =>
      app.post('/purchase', { type: 'stripe', customerId, productIds, ...more }),
    async buy(customerId, productIds, paid) {
      const { status, body } = await world.checkout(customerId, productIds)
      if (status !== 200) throw new Error(JSON.stringify(body))
      return { session: body.checkout.id, root: store.pay(body.checkout.id, paid) }
    },
    tell: (type, object, id) => store.send(webhook, { type, object, ...(id === undefined ? {} : { id }) }),
    async settings(changes) {
      await project.patch(`/apps/${app.id}/store_settings`, changes)
    },
    async entitled(customerId, feature = 'pro') {
      return (await app.post('/entitled', { customerId, featureId: feature })).body.allowed
    },
    async balance(customerId, feature = 'exports') {
      return (await app.post('/entitled', { customerId, featureId: feature })).body.balance
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
  return world
}
