import { standardAccountToken } from '../../src/purchases/account-tokens.ts'
import type { Environment } from '../../src/tenancy/index.ts'
import { type AppStore, startAppStore } from '../harness/app-store.ts'
import { aTransaction, dayMs, type Pki, signApple, testPki } from '../harness/apple-pki.ts'
import type { TestService } from '../harness/service.ts'
import type { Answer } from './answers.ts'
import { type App, openProject, type Project } from './project.ts'

export interface StoreWorld extends AsyncDisposable {
  project: Project
  app: App
  pki: Pki
  store: AppStore
  /** The account token of the standard rule. */
  tokenOf: (distinctId: string) => string
  /** A transaction made for the customer: of `com.example.pro`, which gives `pro`, unless told otherwise. */
  transaction: (
    distinctId: string | null,
    more?: Record<string, unknown>,
  ) => Record<string, unknown> & { transactionId: string }
  subscription: (
    distinctId: string | null,
    more?: Record<string, unknown>,
  ) => Record<string, unknown> & { transactionId: string }
  /** Signs a transaction anew and brings it. */
  bring: (distinctId: string, transaction: Record<string, unknown>, app?: App) => Promise<Answer>
  settings: (changes: object) => Promise<void>
  entitled: (distinctId: string, feature: string) => Promise<Answer['body']>
}

/**
 * An iOS app in `test` that trusts a root of its own: `com.example.pro` gives `pro`, `com.example.pack` ten `exports` once,
 * `com.example.monthly` `pro` and a hundred `exports` a month, `com.example.yearly` the same and more.
 */
export async function openStore(
  service: TestService,
  { api = true, environment = 'test' as Environment } = {},
): Promise<StoreWorld> {
  const pki = await testPki()
  const store = await startAppStore(pki)
  const project = await openProject(service)
  const app = await project.app('ios', environment)
  const options = { environment }
  const { account_token_namespace: namespace } = await project.patch(
    `/apps/${app.id}`,
    { bundle_id: 'com.example.app' },
    options,
  )
  const put = (body: object) => service.workspace('PUT', `/apps/${app.id}/store_credentials`, { body, ...options })
  const roots = [pki.root.certificate.toString()]
  if (environment === 'test') await put({ kind: 'appstore_trust', roots })
  if (environment === 'test') await put({ kind: 'endpoints', appstore_api: store.url })
  await put({ kind: 'appstore', ...(api ? store.key : {}), app_apple_id: 1234 })
  await project.feature('pro', { type: 'boolean' }, options)
  await project.feature('exports', {}, options)
  const product = (key: string, type: string, grants: object[], link: object = {}) => {
    const stores = [{ store: 'appstore', product_id: `com.example.${key}`, ...link }]
    return project.post('/products', { project_id: project.id, key, name: key, type, grants, stores }, options)
  }
  await product('pro', 'one_time', [{ feature: 'pro' }])
  await product('pack', 'one_time', [{ feature: 'exports', allowance: 10 }])
  await product('monthly', 'subscription', [
    { feature: 'pro' },
    { feature: 'exports', allowance: 100, interval: 'month' },
  ])
  await product('yearly', 'subscription', [
    { feature: 'pro' },
    { feature: 'exports', allowance: 500, interval: 'month' },
  ])
  await product('season', 'subscription', [{ feature: 'pro' }])
  await product('pass', 'subscription', [{ feature: 'pro' }], { duration: 'P1M', family_sharing: true })

  const tokenOf = (distinctId: string) => standardAccountToken(namespace, environment, distinctId)
  const withToken = (distinctId: string | null) => (distinctId === null ? {} : { appAccountToken: tokenOf(distinctId) })
  return {
    ...{ project, app, pki, store, tokenOf },
    transaction: (distinctId, more = {}) => aTransaction({ ...withToken(distinctId), ...more }),
    subscription: (distinctId, more = {}) =>
      aTransaction({
        ...{ type: 'Auto-Renewable Subscription', productId: 'com.example.monthly', ...withToken(distinctId) },
        ...{ purchaseDate: Date.now() - dayMs, expiresDate: Date.now() + 29 * dayMs, subscriptionGroupIdentifier: 'g' },
        ...more,
      }),
    bring: (distinctId, transaction, through = app) =>
      through.post('/purchase', {
        type: 'appstore',
        distinct_id: distinctId,
        transaction_jwt: signApple(pki, transaction),
      }),
    async settings(changes) {
      await project.patch(`/apps/${app.id}/store_settings`, changes, options)
    },
    async entitled(distinctId, feature) {
      return (await app.post('/entitled', { customerId: distinctId, featureId: feature })).body
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}
