import { numberId } from '../ids.ts'
import type { Sim } from '../world.ts'
import { mainItem } from './app.ts'
import type { OneTime, PlayApp, Subscription, Voided } from './types.ts'

const subscriptionTypes = {
  RECOVERED: 1,
  RENEWED: 2,
  CANCELED: 3,
  PURCHASED: 4,
  ON_HOLD: 5,
  IN_GRACE_PERIOD: 6,
  RESTARTED: 7,
  DEFERRED: 9,
  PAUSED: 10,
  PAUSE_SCHEDULE_CHANGED: 11,
  REVOKED: 12,
  EXPIRED: 13,
  ITEMS_CHANGED: 17,
  PRICE_CHANGE_UPDATED: 19,
  PENDING_PURCHASE_CANCELED: 20,
} as const
export type SubscriptionNotice = keyof typeof subscriptionTypes

const oneTimeTypes = { PURCHASED: 1, CANCELED: 2 } as const

/** Writes a real-time developer notification: it says that something happened, the API says what. */
export function notifySubscription(
  sim: Sim,
  app: PlayApp,
  subscription: Subscription,
  notice: SubscriptionNotice,
  at: number,
): void {
  queue(sim, app, `SUBSCRIPTION_${notice}`, at, {
    subscriptionNotification: {
      version: '1.0',
      notificationType: subscriptionTypes[notice],
      purchaseToken: subscription.token,
      subscriptionId: mainItem(subscription).productId,
    },
  })
}

export function notifyOneTime(
  sim: Sim,
  app: PlayApp,
  { token, productId }: OneTime,
  notice: keyof typeof oneTimeTypes,
  at: number,
): void {
  queue(sim, app, `ONE_TIME_PRODUCT_${notice}`, at, {
    oneTimeProductNotification: {
      version: '1.0',
      notificationType: oneTimeTypes[notice],
      purchaseToken: token,
      sku: productId,
    },
  })
}

export function notifyVoided(sim: Sim, app: PlayApp, { token, orderId, kind, quantity }: Voided, at: number): void {
  queue(sim, app, 'VOIDED_PURCHASE', at, {
    voidedPurchaseNotification: {
      purchaseToken: token,
      orderId,
      productType: kind === 'subscription' ? 1 : 2,
      refundType: quantity === null ? 1 : 2,
    },
  })
}

/** Any number, those that Google has not thought of yet included. */
export function notifyNumber(sim: Sim, app: PlayApp, one: Subscription | OneTime, number: number, at: number): void {
  const about = { version: '1.0', notificationType: number, purchaseToken: one.token }
  queue(
    sim,
    app,
    `NUMBER_${number}`,
    at,
    'quantity' in one
      ? { oneTimeProductNotification: { ...about, sku: one.productId } }
      : { subscriptionNotification: { ...about, subscriptionId: mainItem(one).productId } },
  )
}

/** One that is about no purchase. */
export function notifyPlayTest(sim: Sim, app: PlayApp, at: number, name = 'testNotification'): void {
  queue(sim, app, name === 'testNotification' ? 'TEST' : name, at, { [name]: { version: '1.0' } })
}

function queue(sim: Sim, app: PlayApp, label: string, at: number, about: Record<string, unknown>): void {
  app.deliveries.push({
    id: numberId(sim.world, 'message', '9', 12),
    label,
    createdAt: at,
    nextAt: app.target === null ? null : at,
    attempts: [],
    retries: true,
    payload: { version: '1.0', packageName: app.id, eventTimeMillis: String(at), ...about },
  })
}
