import { type Static, Type } from 'typebox'
import { addPeriod, dayMs } from '../period.ts'
import { refuse } from '../refusal.ts'
import type { Sim } from '../world.ts'
import { basePlanOf, lastOrder, mainItem } from './app.ts'
import { complete, open, replace, startFirstPeriod } from './buy.ts'
import { notifyNumber, notifyOneTime, notifySubscription } from './notify.ts'
import { expire, failToRenew, hold, renew, resume, revoke } from './periods.ts'
import type { OneTime, PlayApp, PlayPurchase, Subscription, SubscriptionState } from './types.ts'
import { voidOneTime, voidOrder } from './void.ts'

export const playVerbShape = Type.Object(
  {
    productId: Type.Optional(Type.String()),
    basePlanId: Type.Optional(Type.String()),
    accountToken: Type.Optional(Type.String()),
    mode: Type.Optional(Type.Enum(['full', 'quantity'])),
    quantity: Type.Optional(Type.Integer({ minimum: 1 })),
    /** The order to refund, where it isn't the latest. */
    order: Type.Optional(Type.String()),
    days: Type.Optional(Type.Integer({ minimum: 1, maximum: 365 })),
    price: Type.Optional(Type.String({ pattern: '^\\d+$' })),
    accepted: Type.Optional(Type.Boolean()),
    in_app: Type.Optional(Type.Boolean()),
    pending: Type.Optional(Type.Boolean()),
    /** Of `resubscribe`: another purchase that the new one names as replaced too, as no store should. */
    linked: Type.Optional(Type.String()),
    /** Of `notify`. */
    number: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000 })),
  },
  { additionalProperties: false },
)
type VerbBody = Static<typeof playVerbShape>

interface Call<T> {
  sim: Sim
  app: PlayApp
  one: T
  at: number
  body: VerbBody
}
type SubscriptionCall = Call<Subscription>

const held: SubscriptionState[] = ['ACTIVE', 'IN_GRACE_PERIOD']

/** Verbs that end a period end it now. Those that make a new purchase answer with it. */
export const subscriptionVerbs: Record<string, (call: SubscriptionCall) => Subscription | undefined> = {
  renew: ({ sim, app, one, at }) => {
    demand(one, held)
    renew(sim, app, one, at)
    return undefined
  },
  'fail-billing': ({ one }) => {
    one.card = 'declined'
    return undefined
  },
  'enter-grace': ({ sim, app, one, at }) => {
    demand(one, ['ACTIVE'])
    if (basePlanOf(app, mainItem(one).productId, mainItem(one).basePlanId).grace === undefined)
      throw refuse('no_grace', `${mainItem(one).basePlanId} has no grace period`, 409)
    cut(one, at)
    failToRenew(sim, app, one, at)
    return undefined
  },
  hold: ({ sim, app, one, at }) => {
    demand(one, held)
    cut(one, at)
    hold(sim, app, one, at)
    return undefined
  },
  recover: ({ sim, app, one, at }) => {
    one.card = 'good'
    if (one.state === 'IN_GRACE_PERIOD') renew(sim, app, one, at)
    if (one.state === 'ON_HOLD') renew(sim, app, one, at, 'RECOVERED')
    return undefined
  },
  cancel: ({ sim, app, one, at }) => {
    if (one.state === 'PENDING') {
      one.state = 'PENDING_PURCHASE_CANCELED'
      notifySubscription(sim, app, one, 'PENDING_PURCHASE_CANCELED', at)
      return undefined
    }
    demand(one, [...held, 'ON_HOLD', 'PAUSED'])
    cancel(sim, app, one, 'user', at)
    return undefined
  },
  restart: ({ sim, app, one, at }) => {
    demand(one, ['CANCELED'])
    one.state = 'ACTIVE'
    one.autoRenew = true
    one.canceled = null
    notifySubscription(sim, app, one, 'RESTARTED', at)
    return undefined
  },
  pause: ({ sim, app, one, at, body }) => {
    demand(one, ['ACTIVE'])
    const from = mainItem(one).expiresAt ?? at
    one.pause = { from, until: body.days === undefined ? addPeriod(from, 'P1M') : from + body.days * dayMs }
    notifySubscription(sim, app, one, 'PAUSE_SCHEDULE_CHANGED', at)
    return undefined
  },
  resume: ({ sim, app, one, at }) => {
    if (one.pause === null) throw refuse('wrong_state', `${one.id} is not paused`, 409)
    if (one.state === 'PAUSED') resume(sim, app, one, at)
    else {
      one.pause = null
      notifySubscription(sim, app, one, 'PAUSE_SCHEDULE_CHANGED', at)
    }
    return undefined
  },
  expire: ({ sim, app, one, at }) => {
    demand(one, [...held, 'CANCELED', 'ON_HOLD', 'PAUSED'])
    one.canceled ??= { kind: 'system', at }
    expire(sim, app, one, at)
    return undefined
  },
  refund: ({ sim, app, one, at, body }) => {
    if (body.mode === 'quantity') throw refuse('invalid_request', 'mode: a subscription is refunded by order')
    const order = body.order === undefined ? lastOrder(one) : one.orders.find(({ id }) => id === body.order)
    if (order === undefined) throw refuse('order_not_found', `${one.id} has no order ${body.order ?? 'yet'}`, 404)
    voidOrder(sim, app, one, order, 'user', at)
    return undefined
  },
  revoke: ({ sim, app, one, at }) => {
    demand(one, [...held, 'CANCELED', 'ON_HOLD', 'PAUSED'])
    revoke(sim, app, one, 'developer', at)
    return undefined
  },
  upgrade: (call) => changePlan(call, false),
  downgrade: (call) => changePlan(call, true),
  defer: ({ sim, app, one, at, body }) => {
    demand(one, ['ACTIVE'])
    defer(sim, app, one, (body.days ?? 30) * dayMs, at)
    return undefined
  },
  resubscribe: ({ sim, app, one, at, body }) => {
    demand(one, ['EXPIRED'])
    const { productId, basePlanId } = mainItem(one)
    const purchase = { account: one.account, productId, basePlanId, test: one.isTest }
    // In the app the device names the account again; in Play's own app only the expired purchase tells whose it is.
    if (body.in_app ?? true)
      return open(sim, app, { ...purchase, ...tokenOf(one, body) }, { linkedToken: null, start: at }, at)
    const outOfApp = { token: one.token, accountToken: one.accountToken }
    const linkedToken = app.subscriptions.find(({ id }) => id === body.linked)?.token ?? null
    return open(sim, app, purchase, { linkedToken, start: at, outOfApp }, at)
  },
  'price-increase': ({ sim, app, one, at, body }) => {
    const { price } = basePlanOf(app, mainItem(one).productId, mainItem(one).basePlanId)
    const units = body.price ?? String(Number(price.units) + 2)
    one.priceIncrease = { newPrice: { ...price, units }, accepted: body.accepted ?? false, applied: false }
    notifySubscription(sim, app, one, 'PRICE_CHANGE_UPDATED', at)
    return undefined
  },
  notify: tellNumber,
  'complete-pending': ({ sim, app, one, at }) => {
    demand(one, ['PENDING'])
    startFirstPeriod(sim, app, one, at, at)
    const old = app.subscriptions.find(({ token }) => token === one.linkedToken)
    if (old !== undefined) replace(sim, app, old, one, at)
    return undefined
  },
}

export const oneTimeVerbs: Record<string, (call: Call<OneTime>) => undefined> = {
  refund: ({ sim, app, one, at, body }) => {
    if (one.state !== 'PURCHASED') throw refuse('wrong_state', `${one.id} is ${one.state}`, 409)
    const quantity = body.mode === 'quantity' ? (body.quantity ?? 1) : one.quantity
    voidOneTime(sim, app, one, 'user', quantity, at)
  },
  revoke: ({ sim, app, one, at }) => {
    voidOneTime(sim, app, one, 'developer', one.quantity, at)
  },
  cancel: ({ sim, app, one, at }) => {
    if (one.state !== 'PENDING') throw refuse('wrong_state', `${one.id} is ${one.state}, not PENDING`, 409)
    one.state = 'CANCELLED'
    notifyOneTime(sim, app, one, 'CANCELED', at)
  },
  notify: tellNumber,
  /** Of a preorder: it is paid now. */
  release: ({ sim, app, one, at }) => {
    if (one.state !== 'PURCHASED' || one.completedAt !== null)
      throw refuse('wrong_state', `${one.id} is no preorder that waits`, 409)
    complete(sim, app, one, at)
  },
  'complete-pending': ({ sim, app, one, at }) => {
    if (one.state !== 'PENDING') throw refuse('wrong_state', `${one.id} is ${one.state}, not PENDING`, 409)
    complete(sim, app, one, at)
  },
}

function tellNumber({ sim, app, one, at, body }: Call<Subscription | OneTime>): undefined {
  if (body.number === undefined) throw refuse('invalid_request', 'number: says what to tell')
  notifyNumber(sim, app, one, body.number, at)
}

export function cancel(sim: Sim, app: PlayApp, one: Subscription, kind: 'user' | 'developer', at: number): void {
  const hadAccess = held.includes(one.state)
  one.autoRenew = false
  one.pause = null
  one.canceled = { kind, at }
  notifySubscription(sim, app, one, 'CANCELED', at)
  if (hadAccess) one.state = 'CANCELED'
  else expire(sim, app, one, at)
}

export function defer(sim: Sim, app: PlayApp, one: Subscription, byMs: number, at: number): void {
  for (const item of one.items) if (item.expiresAt !== null) item.expiresAt += byMs
  const order = lastOrder(one)
  if (order?.until != null) order.until += byMs
  notifySubscription(sim, app, one, 'DEFERRED', at)
}

/** Always a new token that names the old one. Deferred: the old item stays until the period ends. */
function changePlan({ sim, app, one, at, body }: SubscriptionCall, isDeferred: boolean): Subscription {
  demand(one, [...held, 'CANCELED'])
  if (one.acknowledgedAt === null)
    throw refuse('not_acknowledged', `Play changes no plan before ${one.id} is acknowledged`, 409)
  if (body.productId === undefined && body.basePlanId === undefined)
    throw refuse('invalid_request', 'productId or basePlanId: says what to change to')
  const before = mainItem(one)
  const productId = body.productId ?? before.productId
  const { id: basePlanId } = basePlanOf(app, productId, body.basePlanId)
  const purchase: PlayPurchase = {
    account: one.account,
    productId,
    basePlanId,
    test: one.isTest,
    ...tokenOf(one, body),
    ...(body.pending === undefined ? {} : { pending: body.pending }),
  }
  const next = open(sim, app, purchase, { linkedToken: one.token, start: at }, at)
  if (isDeferred && next.state === 'ACTIVE') {
    const after = mainItem(next)
    next.items = [
      { ...before, deferredTo: productId },
      { ...after, expiresAt: null, latestOrderId: null },
    ]
    next.orders = one.orders.slice(-1)
  }
  return replace(sim, app, one, next, at)
}

function tokenOf({ accountToken }: Subscription, body: VerbBody): { accountToken?: string } {
  const token = body.accountToken ?? accountToken
  return token === null ? {} : { accountToken: token }
}

function cut(one: Subscription, at: number): void {
  for (const item of one.items) if (item.expiresAt !== null) item.expiresAt = Math.min(item.expiresAt, at)
}

function demand(one: Subscription, allowed: SubscriptionState[]): void {
  if (one.replacedAt !== null) throw refuse('replaced', `${one.id} was replaced by another purchase`, 409)
  if (allowed.includes(one.state)) return
  throw refuse('wrong_state', `${one.id} is ${one.state}; that takes one that is ${allowed.join(' or ')}`, 409)
}
