import { numberId } from '../ids.ts'
import { addPeriod } from '../period.ts'
import { refuse } from '../refusal.ts'
import type { Sim } from '../world.ts'
import { acknowledgeBy, basePlanOf, mainItem, newOrderId, newToken, playProductOf, purchaseOptionOf } from './app.ts'
import { notifyOneTime, notifySubscription } from './notify.ts'
import type { Item, OneTime, PlayApp, PlayPurchase, Subscription, SubscriptionState } from './types.ts'

const owning: SubscriptionState[] = ['PENDING', 'ACTIVE', 'IN_GRACE_PERIOD', 'ON_HOLD', 'PAUSED', 'CANCELED']

/** What happens when somebody confirms Play's dialog. */
export function buy(sim: Sim, app: PlayApp, purchase: PlayPurchase, at: number): Subscription | OneTime {
  const { type } = playProductOf(app, purchase.productId)
  return type === 'subscription' ? subscribe(sim, app, purchase, at) : buyOnce(sim, app, purchase, at)
}

function subscribe(sim: Sim, app: PlayApp, purchase: PlayPurchase, at: number): Subscription {
  const plan = basePlanOf(app, purchase.productId, purchase.basePlanId)
  const owned = app.subscriptions.find(
    (one) =>
      one.account === purchase.account &&
      one.replacedAt === null &&
      owning.includes(one.state) &&
      one.items.some(({ productId }) => productId === purchase.productId),
  )
  if (owned === undefined) return open(sim, app, purchase, { linkedToken: null, start: at }, at)
  const isTopUp = plan.prepaid === true && mainItem(owned).basePlanId === plan.id
  if (!isTopUp)
    throw refuse('already_owned', `${purchase.account} has ${purchase.productId}; change its plan instead`, 409)
  // A top-up is a purchase of its own that adds its time to what is left.
  const start = Math.max(at, mainItem(owned).expiresAt ?? at)
  return replace(sim, app, owned, open(sim, app, purchase, { linkedToken: owned.token, start }, at), at)
}

export interface Opening {
  linkedToken: string | null
  /** When the paid period begins. */
  start: number
  outOfApp?: Subscription['outOfApp']
}

export function open(sim: Sim, app: PlayApp, purchase: PlayPurchase, opening: Opening, at: number): Subscription {
  const plan = basePlanOf(app, purchase.productId, purchase.basePlanId)
  const isTest = purchase.test ?? true
  const offer = plan.offers?.find(({ id }) => id === purchase.offer)
  if (purchase.offer !== undefined && offer === undefined)
    throw refuse('offer_not_found', `${purchase.productId} has no offer ${purchase.offer}`, 404)
  const addOns = (purchase.addOns ?? []).map((productId) => newItem(productId, basePlanOf(app, productId).id, null))
  const subscription: Subscription = {
    id: numberId(sim.world, 'purchase', 'play_', 6),
    token: newToken(sim, purchase.tokenLength),
    account: purchase.account,
    boughtAt: at,
    isTest,
    accountToken: purchase.accountToken ?? null,
    acknowledgedAt: null,
    acknowledgeBy: null,
    state: 'PENDING',
    items: [newItem(purchase.productId, plan.id, offer?.id ?? null), ...addOns],
    orders: [],
    linkedToken: opening.linkedToken,
    card: 'good',
    autoRenew: plan.prepaid !== true,
    canceled: null,
    graceUntil: null,
    holdUntil: null,
    pause: null,
    replacedAt: null,
    expiredAt: null,
    outOfApp: opening.outOfApp ?? null,
    priceIncrease: null,
    promoCode: purchase.promoCode === true,
  }
  app.subscriptions.push(subscription)
  sim.changed()
  if (purchase.pending !== true) startFirstPeriod(sim, app, subscription, opening.start, at)
  return subscription
}

/** Paid: the first order, owned from now on, to be acknowledged. */
export function startFirstPeriod(sim: Sim, app: PlayApp, subscription: Subscription, start: number, at: number): void {
  const { productId, basePlanId, offerId } = mainItem(subscription)
  const plan = basePlanOf(app, productId, basePlanId)
  const offer = plan.offers?.find(({ id }) => id === offerId)
  subscription.state = 'ACTIVE'
  subscription.acknowledgeBy = acknowledgeBy(app, at, subscription.isTest, plan)
  const until = addPeriod(start, offer?.period ?? plan.period)
  if (subscription.promoCode) for (const item of subscription.items) item.expiresAt = until
  else payPeriod(app, subscription, newOrderId(sim), start, until, at)
  notifySubscription(sim, app, subscription, 'PURCHASED', at)
}

/** One order for all items of the subscription. */
export function payPeriod(
  app: PlayApp,
  subscription: Subscription,
  orderId: string,
  from: number,
  until: number,
  at: number,
): void {
  for (const item of subscription.items) {
    item.expiresAt = until
    item.latestOrderId = orderId
  }
  const { productId, basePlanId } = mainItem(subscription)
  const { priceIncrease } = subscription
  const price = priceIncrease?.applied === true ? priceIncrease.newPrice : basePlanOf(app, productId, basePlanId).price
  subscription.orders.push({ id: orderId, at, productId, price, from, until, state: 'PROCESSED' })
}

/** The old token goes on reading ACTIVE for a while, as Google's do. */
export function replace(sim: Sim, app: PlayApp, old: Subscription, next: Subscription, at: number): Subscription {
  if (next.state === 'PENDING') return next // it replaces nothing before it is paid
  old.replacedAt = at + overlapMs
  old.canceled = { kind: 'replacement', at }
  old.autoRenew = false
  sim.changed()
  notifySubscription(sim, app, old, 'CANCELED', at)
  return next
}
const overlapMs = 60_000

function buyOnce(sim: Sim, app: PlayApp, purchase: PlayPurchase, at: number): OneTime {
  const option = purchaseOptionOf(app, purchase.productId, purchase.purchaseOptionId)
  const owned = app.oneTimes.find(
    (one) =>
      one.account === purchase.account &&
      one.productId === purchase.productId &&
      one.state !== 'CANCELLED' &&
      !one.consumed,
  )
  if (owned !== undefined)
    throw refuse('already_owned', `${purchase.account} has ${purchase.productId}, which was not consumed`, 409)
  if (purchase.offer !== undefined && !option.offers?.includes(purchase.offer))
    throw refuse('offer_not_found', `${purchase.productId} has no offer ${purchase.offer}`, 404)
  const quantity = purchase.quantity ?? 1
  const oneTime: OneTime = {
    id: numberId(sim.world, 'purchase', 'play_', 6),
    token: newToken(sim, purchase.tokenLength),
    account: purchase.account,
    boughtAt: at,
    isTest: purchase.test ?? true,
    accountToken: purchase.accountToken ?? null,
    acknowledgedAt: null,
    acknowledgeBy: null,
    productId: purchase.productId,
    purchaseOptionId: option.id,
    offerId: purchase.offer ?? null,
    quantity,
    refundableQuantity: quantity,
    state: 'PENDING',
    consumed: false,
    completedAt: null,
    orders: [],
  }
  app.oneTimes.push(oneTime)
  sim.changed()
  if (purchase.pending === true) return oneTime
  // Promised, and paid when it is released.
  if (option.kind === 'preorder') oneTime.state = 'PURCHASED'
  else complete(sim, app, oneTime, at, purchase.promoCode === true)
  return oneTime
}

export function complete(sim: Sim, app: PlayApp, oneTime: OneTime, at: number, isFree = false): void {
  const { price } = purchaseOptionOf(app, oneTime.productId, oneTime.purchaseOptionId)
  oneTime.state = 'PURCHASED'
  oneTime.completedAt = at
  oneTime.acknowledgeBy = acknowledgeBy(app, at, oneTime.isTest)
  const order = { at, productId: oneTime.productId, price, from: at, until: null, state: 'PROCESSED' as const }
  if (!isFree) oneTime.orders.push({ id: newOrderId(sim), ...order })
  notifyOneTime(sim, app, oneTime, 'PURCHASED', at)
}

function newItem(productId: string, basePlanId: string, offerId: string | null): Item {
  return { productId, basePlanId, offerId, expiresAt: null, latestOrderId: null, deferredTo: null }
}
