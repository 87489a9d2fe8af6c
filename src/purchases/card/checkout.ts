import { hash } from 'node:crypto'
import { resolveOrCreate, wireCustomerId } from '../../customers/index.ts'
import { getProduct, type ProductRecord, selectLedgerClock } from '../../entitlements/index.ts'
import { Refusal, refuse } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import { checkoutOpeningMsMax, storeVerdictMsMax } from '../../kernel/limits.ts'
import type { AppScope, Environment } from '../../tenancy/index.ts'
import { insertBinding } from '../claim-store.ts'
import { type PurchaseServices, settle } from '../purchase.ts'
import { refusePurchase } from '../refuse.ts'
import type { Ms, Refused, StoreApp } from '../types.ts'
import type { CardAnswer, CardApi, Query } from './api.ts'
import { completeCheckout, keepPage, lockCheckout, renewCheckout } from './checkout-store.ts'
import { textIn, timeIn } from './fields.ts'
import { notAnswered, unavailable } from './not-answered.ts'
import { allowedReturn } from './return-url.ts'

export interface CheckoutCommand {
  scope: AppScope
  distinctId: string
  /** Ids or keys of Products, each once or more often. */
  productIds: string[]
  successUrl?: string | undefined
  cancelUrl?: string | undefined
  idempotencyKey?: string | undefined
}

/** A page to pay on. Nothing is attached yet. */
export interface CheckoutAnswer {
  customerId: string
  replay: boolean
  checkout: { id: string; url: string; expiresAt: Ms }
}

export type CheckoutServices = Pick<
  PurchaseServices,
  'pool' | 'clock' | 'loadStoreApp' | 'guard' | 'whois' | 'tombstoneKey'
> & { cardApi: CardApi }

interface Sold {
  product: ProductRecord
  priceId: string
}

/**
 * Opens a page where a customer pays by card. The same command has the same page while that can be paid; with an
 * `idempotencyKey` also after it was. Throws `customer_deleted`, `invalid_request` and the errors of purchases.
 */
export function createCheckout(services: CheckoutServices): (command: CheckoutCommand) => Promise<CheckoutAnswer> {
  return async (command) => {
    const { pool, loadStoreApp } = services
    const { scope, distinctId } = command
    const { customerId } = await services.whois({ scope, distinctId })
    const app = await loadStoreApp(pool, scope, scope.appId)
    const returns = returnsOf(app, command)
    await guard(services, command, customerId)
    const sold = await soldBy(services, app, command.productIds)
    const opened = await open(services, app, { command, sold, returns })
    if (opened.page) return { customerId: opened.customerId, replay: true, checkout: opened.page }

    const form = formOf(app, { ...opened, sold, returns })
    const answer = await services.cardApi.post(app, '/v1/checkout/sessions', form, {
      key: hash('sha256', `${opened.commandHash} ${opened.publicId}`),
      signal: AbortSignal.timeout(storeVerdictMsMax),
    })
    // Stripe repeats for a day what it said to a key, refusals and its own failures too: the next try has another one.
    if (answer.kind === 'declined' || (answer.kind === 'silent' && answer.answered)) {
      await completeCheckout(pool, scope, opened.publicId, services.clock.now())
    }
    const page = pageOf(answer, scope.environment)
    await keepPage(pool, scope, opened.publicId, page)
    return { customerId: opened.customerId, replay: !opened.isNew, checkout: page }
  }
}

interface Returns {
  success: string
  cancel: string | null
}

/** Where the page sends people back to. Throws for an app that takes no cards, and for addresses that are not on its list. */
function returnsOf(app: StoreApp, { successUrl, cancelUrl }: CheckoutCommand): Returns {
  const { checkoutReturnUrls } = app.settings
  const [usual] = checkoutReturnUrls
  if (!app.credentials.stripe || usual === undefined) throw refusePurchase('stripe', notConfigured)
  const allowed = (param: string, text: string) => {
    const url = allowedReturn(text, checkoutReturnUrls, app.scope.environment)
    if (url !== null) return url
    const message = 'is not an address that the app lets people return to'
    throw refuse('invalid_request', { param, message: `${param} ${message}`, issues: [{ path: param, message }] })
  }
  return {
    success: successUrl === undefined ? usual : allowed('successUrl', successUrl),
    cancel: cancelUrl === undefined ? null : allowed('cancelUrl', cancelUrl),
  }
}

const notConfigured: Refused = { kind: 'refused', suffix: 'unsupported', detail: 'not_configured' }

async function guard(
  { guard: { enter } }: CheckoutServices,
  { scope, distinctId, productIds }: CheckoutCommand,
  customerId: string | undefined,
): Promise<void> {
  const whose = `${scope.scopeId} ${customerId ?? distinctId}`
  const waitS = enter(hash('sha256', `checkout ${whose} ${productIds.join(' ')}`), whose)
  if (waitS > 0) throw refusePurchase('stripe', unavailable('rate_limited', waitS))
}

/** Each Product by its price in Stripe. Throws for one that is unknown, archived, or not sold by card. */
async function soldBy({ pool }: CheckoutServices, { scope }: StoreApp, productIds: string[]): Promise<Sold[]> {
  const sold: Sold[] = []
  for (const id of productIds) {
    const product = await getProduct(pool, [scope], id).catch((error: unknown) => {
      if (error instanceof Refusal && error.code === 'not_found') return null
      throw error
    })
    const link = product?.stores.find(({ store }) => store === 'stripe')
    if (product?.status !== 'active' || !link) {
      throw refusePurchase('stripe', { kind: 'refused', suffix: 'invalid', detail: 'no Product that is sold by card' })
    }
    sold.push({ product, priceId: link.productId })
  }
  return sold
}

interface Opened {
  customerId: string
  commandHash: string
  publicId: string
  isNew: boolean
  /** That can still be used. */
  page: CheckoutAnswer['checkout'] | null
}

/** Whose the page is, is written before there is one: whatever is paid on it finds its customer. */
async function open(
  services: CheckoutServices,
  app: StoreApp,
  { command, sold, returns }: { command: CheckoutCommand; sold: Sold[]; returns: Returns },
): Promise<Opened> {
  const { scope, appId } = app
  const { distinctId, idempotencyKey } = command
  const opened = await settle(services.pool, async (tx): Promise<Opened> => {
    const ledgerNow = await selectLedgerClock(tx, scope)
    const options = { tombstoneKey: services.tombstoneKey, now: ledgerNow }
    const { customer } = await resolveOrCreate(tx, scope, distinctId, options)
    const now = services.clock.now()
    const prices = sold.map(({ product, priceId }) => [product.publicId, priceId])
    const words = [scope.scopeId, appId, customer.id, prices, returns.success, returns.cancel, idempotencyKey ?? null]
    const commandHash = hash('sha256', JSON.stringify(words))
    const place = { appId, commandHash, publicId: newId('chk'), now }
    const { checkout, isNew } = await lockCheckout(tx, scope, place)
    const { page, completedAt, createdAt } = checkout
    // Stripe remembers idempotency keys for a day: until then the same page is asked for again.
    const isUsable = page
      ? page.expiresAt > now && (completedAt === null || idempotencyKey !== undefined)
      : isNew || (completedAt === null && now - createdAt < checkoutOpeningMsMax)
    const whose = { customerId: customer.id, commandHash }
    if (isUsable && !isNew) return { ...whose, publicId: checkout.publicId, isNew: false, page }
    if (!isNew) await renewCheckout(tx, scope, place)
    const binding = { appId, store: 'stripe', value: place.publicId, customerId: customer.id } as const
    await insertBinding(tx, scope, { ...binding, source: 'checkout', now: ledgerNow })
    return { ...whose, publicId: place.publicId, isNew: true, page: null }
  })
  if ('kind' in opened) throw refusePurchase('stripe', opened)
  return opened
}

function formOf(
  { scope, appId }: StoreApp,
  { customerId, publicId, sold, returns }: Pick<Opened, 'customerId' | 'publicId'> & { sold: Sold[]; returns: Returns },
): Query {
  const isSubscription = sold.some(({ product }) => product.type === 'subscription')
  const metadata: [string, string][] = [
    ...([
      ['project', scope.projectId],
      ['app', appId],
      ['environment', scope.environment],
      ['checkout', publicId],
    ] as [string, string][]),
    ...sold.map(({ product }, i): [string, string] => [`product_${i}`, product.publicId]),
  ]
  // A subscription and a payment carry it too: what happens to them later is told without the page.
  const carrier = isSubscription ? 'subscription_data' : 'payment_intent_data'
  return [
    ['mode', isSubscription ? 'subscription' : 'payment'],
    ['success_url', returns.success],
    ...(returns.cancel === null ? [] : [['cancel_url', returns.cancel] as const]),
    ['client_reference_id', wireCustomerId(customerId)],
    ...sold.flatMap(({ priceId }, i): [string, string][] => [
      [`line_items[${i}][price]`, priceId],
      [`line_items[${i}][quantity]`, '1'],
    ]),
    ...metadata.map(([name, value]) => [`metadata[${name}]`, value] as const),
    ...metadata.map(([name, value]) => [`${carrier}[metadata][${name}]`, value] as const),
  ]
}

function pageOf(answer: CardAnswer, environment: Environment): CheckoutAnswer['checkout'] {
  if (answer.kind === 'declined') {
    throw refusePurchase('stripe', { kind: 'refused', suffix: 'invalid', detail: `declined: ${answer.word}` })
  }
  if (answer.kind !== 'ok') throw refusePurchase('stripe', notAnswered(answer))
  const { url } = answer.body
  const [id, expiresAt] = [textIn(answer.body, 'id'), timeIn(answer.body, 'expires_at')]
  if (id === null || expiresAt === null || !isPageUrl(url, environment)) {
    throw refusePurchase('stripe', unavailable('an answer that is no page'))
  }
  return { id, url, expiresAt }
}

/** In test also one of whatever stands in for Stripe. */
function isPageUrl(url: unknown, environment: Environment): url is string {
  const protocol = typeof url === 'string' ? URL.parse(url)?.protocol : undefined
  return protocol === 'https:' || (protocol === 'http:' && environment === 'test')
}
