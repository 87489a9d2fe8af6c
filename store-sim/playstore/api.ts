import { nowOf } from '../clock/clock.ts'
import { strike } from '../faults.ts'
import { recordOf } from '../http/body.ts'
import type { Reply, Request, Routes } from '../http/router.ts'
import { dayMs } from '../period.ts'
import { googleError, type Refusal } from '../refusal.ts'
import type { Sim } from '../world.ts'
import { findByToken, lastOrder, mainItem, playProductOf } from './app.ts'
import { withPlayBearer } from './oauth.ts'
import { orderOf, productV1, productV2, subscriptionV2, voidedPurchase } from './payloads.ts'
import { revoke } from './periods.ts'
import type { OneTime, PlayApp, Subscription } from './types.ts'
import { cancel, defer } from './verbs.ts'
import { voidOneTime, voidOrder } from './void.ts'

const deadAfterMs = 60 * dayMs
const voidedPageMax = 1000
const voidedReachMs = 30 * dayMs
const base = '/play/androidpublisher/v3/applications/{package}'

/** The Play Developer API, as far as a service that follows purchases needs it. */
export const playApi: Routes = {
  [`GET ${base}/purchases/subscriptionsv2/tokens/{token}`]: withPlayBearer((sim, app, request) => ({
    body: withState(sim, request, subscriptionV2(app, subscriptionAt(sim, app, request))),
  })),

  [`POST ${base}/purchases/subscriptionsv2/tokens/{token}:cancel`]: withPlayBearer((sim, app, request) => {
    const one = subscriptionAt(sim, app, request)
    if (one.state !== 'CANCELED' && one.state !== 'EXPIRED') cancel(sim, app, one, 'developer', at(sim, app))
    return done(sim)
  }),

  [`POST ${base}/purchases/subscriptionsv2/tokens/{token}:revoke`]: withPlayBearer((sim, app, request) => {
    const one = subscriptionAt(sim, app, request)
    if (one.state === 'EXPIRED' || one.state === 'PENDING') throw wrongState()
    revoke(sim, app, one, 'developer', at(sim, app))
    return done(sim)
  }),

  [`POST ${base}/purchases/subscriptionsv2/tokens/{token}:defer`]: withPlayBearer((sim, app, request) => {
    const one = subscriptionAt(sim, app, request)
    const { deferDuration } = (recordOf(request).deferralContext ?? {}) as { deferDuration?: unknown } // checked below
    const seconds = Number(/^(\d+)(?:\.\d+)?s$/.exec(String(deferDuration))?.[1])
    if (!(seconds >= dayMs / 1000)) throw googleError(400, 'Invalid Value', 'INVALID_ARGUMENT')
    if (one.state !== 'ACTIVE') throw wrongState()
    defer(sim, app, one, seconds * 1000, at(sim, app))
    sim.changed()
    const itemExpiryTimeDetails = one.items.map(({ productId, expiresAt }) => ({
      productId,
      expiryTime: new Date(expiresAt ?? 0).toISOString(),
    }))
    return { body: { itemExpiryTimeDetails } }
  }),

  [`POST ${base}/purchases/subscriptions/{product}/tokens/{token}:acknowledge`]: withPlayBearer((sim, app, request) => {
    const one = subscriptionAt(sim, app, request)
    if (!one.items.some(({ productId }) => productId === request.params.product)) throw invalidValue()
    return acknowledge(sim, app, one, one.state !== 'PENDING' && one.state !== 'EXPIRED')
  }),

  [`GET ${base}/purchases/productsv2/tokens/{token}`]: withPlayBearer((sim, app, request) => ({
    body: withState(sim, request, productV2(app, oneTimeAt(sim, app, request))),
  })),

  [`GET ${base}/purchases/products/{product}/tokens/{token}`]: withPlayBearer((sim, app, request) => ({
    body: productV1(oneTimeAt(sim, app, request)),
  })),

  [`POST ${base}/purchases/products/{product}/tokens/{token}:acknowledge`]: withPlayBearer((sim, app, request) => {
    const one = oneTimeAt(sim, app, request)
    return acknowledge(sim, app, one, one.state === 'PURCHASED')
  }),

  [`POST ${base}/purchases/products/{product}/tokens/{token}:consume`]: withPlayBearer((sim, app, request) => {
    const one = oneTimeAt(sim, app, request)
    if (one.consumed || one.state !== 'PURCHASED') throw wrongState()
    one.consumed = true
    one.acknowledgedAt ??= at(sim, app)
    return done(sim)
  }),

  [`GET ${base}/purchases/voidedpurchases`]: withPlayBearer((sim, app, { query }) => {
    const now = at(sim, app)
    const start = Number(query.get('startTime') ?? now - voidedReachMs)
    const end = Number(query.get('endTime') ?? now)
    const max = Math.min(Number(query.get('maxResults') ?? voidedPageMax), voidedPageMax)
    const from = Number(query.get('token')?.replace(/^sim-/, '') ?? query.get('startIndex') ?? 0)
    if ([start, end, max, from].some(Number.isNaN) || start < now - voidedReachMs - dayMs) throw invalidValue()
    const withSubscriptions = query.get('type') === '1'
    const withPartial = query.get('includeQuantityBasedPartialRefund') === 'true'
    const all = app.voided.filter(
      (one) =>
        one.at >= start &&
        one.at <= end &&
        (withSubscriptions || one.kind === 'one_time') &&
        (withPartial || one.quantity === null),
    )
    const page = all.slice(from, from + max)
    const hasMore = from + page.length < all.length
    return {
      body: {
        ...(page.length > 0 ? { voidedPurchases: page.map(voidedPurchase) } : {}),
        ...(hasMore ? { tokenPagination: { nextPageToken: `sim-${from + page.length}` } } : {}),
      },
    }
  }),

  [`GET ${base}/orders/{order}`]: withPlayBearer((_sim, app, { params }) => ({ body: orderAt(app, params.order) })),

  [`GET ${base}/orders:batchGet`]: withPlayBearer((_sim, app, { query }) => ({
    body: { orders: query.getAll('orderIds').map((id) => orderAt(app, id)) },
  })),

  [`POST ${base}/orders/{order}:refund`]: withPlayBearer((sim, app, { params, query }) => {
    const { one, order } = findOrder(app, params.order)
    if (order.state === 'REFUNDED') throw wrongState()
    const now = at(sim, app)
    if ('quantity' in one) voidOneTime(sim, app, one, 'developer', one.quantity, now)
    else if (query.get('revoke') === 'true' && order === lastOrder(one)) revoke(sim, app, one, 'developer', now)
    else voidOrder(sim, app, one, order, 'developer', now)
    return done(sim)
  }),
}

/** On request in a state that nobody has documented. */
function withState(sim: Sim, { path }: Request, purchase: Record<string, unknown>): Record<string, unknown> {
  if (strike(sim.world, path, ['unknown_state']) === undefined) return purchase
  return 'subscriptionState' in purchase
    ? { ...purchase, subscriptionState: 'SUBSCRIPTION_STATE_OF_TOMORROW' }
    : { ...purchase, purchaseStateContext: { purchaseState: 'OF_TOMORROW' } }
}

function subscriptionAt(sim: Sim, app: PlayApp, request: Request): Subscription {
  const one = purchaseAt(sim, app, request)
  if ('quantity' in one) throw invalidValue()
  if (one.expiredAt !== null && at(sim, app) > one.expiredAt + deadAfterMs)
    throw googleError(
      410,
      'The subscription purchase is no longer available for query because it has been expired for too long.',
      'FAILED_PRECONDITION',
      'subscriptionPurchaseNoLongerAvailable',
    )
  return one
}

function oneTimeAt(sim: Sim, app: PlayApp, request: Request): OneTime {
  const one = purchaseAt(sim, app, request)
  if (!('quantity' in one)) throw invalidValue()
  const { product = one.productId } = request.params
  if (one.productId !== product) throw invalidValue()
  return one
}

function purchaseAt(sim: Sim, app: PlayApp, { params, path }: Request): Subscription | OneTime {
  const one = findByToken(app, params.token ?? '')
  const missing = googleError(404, 'The purchase token was not found.', 'NOT_FOUND', 'purchaseTokenNotFound')
  if (one === undefined) {
    const isForeign = sim.world.apps.some(
      (other) => other.store === 'playstore' && findByToken(other, params.token ?? ''),
    )
    throw isForeign
      ? googleError(400, 'The purchase token does not match the package name.', 'INVALID_ARGUMENT')
      : missing
  }
  if (strike(sim.world, path, ['dead_token']) !== undefined) throw deadToken()
  const age = at(sim, app) - one.boughtAt
  const isHidden = sim.world.faults.some(({ kind, seconds = 30 }) => kind === 'not_found' && age < seconds * 1000)
  if (isHidden && strike(sim.world, path, ['not_found']) !== undefined) throw missing
  return one
}

function acknowledge(sim: Sim, app: PlayApp, one: Subscription | OneTime, canBe: boolean): Reply {
  if (one.acknowledgedAt !== null || !canBe) throw wrongState()
  one.acknowledgedAt = at(sim, app)
  return done(sim)
}

function orderAt(app: PlayApp, id: string | undefined) {
  const { one, order } = findOrder(app, id)
  return orderOf(one, order, playProductOf(app, 'quantity' in one ? one.productId : mainItem(one).productId))
}

function findOrder(app: PlayApp, id: string | undefined) {
  for (const one of [...app.subscriptions, ...app.oneTimes]) {
    const order = one.orders.find((each) => each.id === id)
    if (order !== undefined) return { one, order }
  }
  throw googleError(404, 'The order was not found.', 'NOT_FOUND', 'orderNotFound')
}

/** Google answers what worked with nothing, or with an empty object. */
function done(sim: Sim): Reply {
  sim.changed()
  return { body: {} }
}

function at(sim: Sim, app: PlayApp): number {
  return nowOf(app.clock, sim.wall())
}

/** As Google puts it where it does not answer 410. */
function deadToken(): Refusal {
  return googleError(400, 'The purchase token is no longer valid.', 'FAILED_PRECONDITION', 'purchaseTokenNoLongerValid')
}

function invalidValue(): Refusal {
  return googleError(400, 'Invalid Value', 'INVALID_ARGUMENT')
}

function wrongState(): Refusal {
  return googleError(
    400,
    'The purchase is not in a valid state to perform the desired operation.',
    'FAILED_PRECONDITION',
    'invalidPurchaseState',
  )
}
