import { basePlanOf, lastOrder, mainItem, purchaseOptionOf } from './app.ts'
import type { BasePlan, Item, OneTime, Order, PlayApp, PlayProduct, Subscription, Voided } from './types.ts'

const region = 'US'

/** SubscriptionPurchaseV2, as of this moment. */
export function subscriptionV2(app: PlayApp, one: Subscription): Record<string, unknown> {
  const isOwned = one.state !== 'PENDING' && one.state !== 'PENDING_PURCHASE_CANCELED'
  return {
    kind: 'androidpublisher#subscriptionPurchaseV2',
    regionCode: region,
    ...(isOwned ? { startTime: iso(one.boughtAt) } : {}),
    subscriptionState: `SUBSCRIPTION_STATE_${one.state}`,
    ...(isOwned && lastOrder(one) !== undefined ? { latestOrderId: lastOrder(one)?.id } : {}),
    ...(one.linkedToken === null ? {} : { linkedPurchaseToken: one.linkedToken }),
    ...(one.state === 'PAUSED' && one.pause !== null
      ? { pausedStateContext: { autoResumeTime: iso(one.pause.until) } }
      : {}),
    ...(isCanceled(one) ? { canceledStateContext: canceledContext(one) } : {}),
    ...(one.isTest ? { testPurchase: {} } : {}),
    acknowledgementState: acknowledgement(one),
    ...(one.accountToken === null
      ? {}
      : { externalAccountIdentifiers: { obfuscatedExternalAccountId: one.accountToken } }),
    ...(one.outOfApp !== null && one.acknowledgedAt === null
      ? { outOfAppPurchaseContext: outOfApp(one.outOfApp) }
      : {}),
    lineItems: one.items.map((item) => lineItem(app, one, item)),
    etag: String(one.orders.length) + String(mainItem(one).expiresAt),
  }
}

function lineItem(app: PlayApp, one: Subscription, item: Item): Record<string, unknown> {
  const plan = basePlanOf(app, item.productId, item.basePlanId)
  return {
    productId: item.productId,
    ...(item.expiresAt === null ? {} : { expiryTime: iso(item.expiresAt) }),
    ...(item.latestOrderId === null ? {} : { latestSuccessfulOrderId: item.latestOrderId }),
    ...(plan.prepaid === true ? { prepaidPlan: prepaidPlan(item) } : { autoRenewingPlan: renewingPlan(one, plan) }),
    ...(one.promoCode && item.latestOrderId === null && item.expiresAt !== null
      ? { signupPromotion: { oneTimeCode: {} } }
      : {}),
    ...(item.deferredTo === null ? {} : { deferredItemReplacement: { productId: item.deferredTo } }),
    offerDetails: { basePlanId: item.basePlanId, ...(item.offerId === null ? {} : { offerId: item.offerId }) },
  }
}

function prepaidPlan({ expiresAt }: Item) {
  return expiresAt === null ? {} : { allowExtendAfterTime: iso(expiresAt) }
}

function renewingPlan({ autoRenew, priceIncrease }: Subscription, { price }: BasePlan) {
  return {
    autoRenewEnabled: autoRenew,
    recurringPrice: priceIncrease?.applied === true ? priceIncrease.newPrice : price,
    ...(priceIncrease === null
      ? {}
      : {
          priceChangeDetails: {
            newPrice: priceIncrease.newPrice,
            priceChangeMode: 'PRICE_INCREASE',
            priceChangeState: priceIncrease.applied ? 'APPLIED' : priceIncrease.accepted ? 'CONFIRMED' : 'OUTSTANDING',
          },
        }),
  }
}

function isCanceled({ state, canceled, replacedAt }: Subscription): boolean {
  return (
    canceled !== null && (state === 'CANCELED' || state === 'EXPIRED') && (replacedAt === null || state === 'EXPIRED')
  )
}

function canceledContext({ canceled }: Subscription): Record<string, unknown> {
  switch (canceled?.kind) {
    case 'user':
      return { userInitiatedCancellation: { cancelTime: iso(canceled.at) } }
    case 'developer':
      return { developerInitiatedCancellation: {} }
    case 'replacement':
      return { replacementCancellation: {} }
    case 'system':
    case undefined:
      return { systemInitiatedCancellation: {} }
  }
}

function outOfApp({ token, accountToken }: NonNullable<Subscription['outOfApp']>) {
  return {
    expiredPurchaseToken: token,
    ...(accountToken === null
      ? {}
      : { expiredExternalAccountIdentifiers: { obfuscatedExternalAccountId: accountToken } }),
  }
}

/** ProductPurchaseV2. */
export function productV2(app: PlayApp, one: OneTime): Record<string, unknown> {
  const option = purchaseOptionOf(app, one.productId, one.purchaseOptionId)
  return {
    kind: 'androidpublisher#productPurchaseV2',
    productLineItem: [
      {
        productId: one.productId,
        productOfferDetails: {
          purchaseOptionId: one.purchaseOptionId,
          ...(one.offerId === null ? {} : { offerId: one.offerId }),
          ...(option.kind === 'rent' ? { rentOfferDetails: {} } : {}),
          ...(option.kind === 'preorder' ? { preorderOfferDetails: {} } : {}),
          quantity: one.quantity,
          refundableQuantity: one.refundableQuantity,
          consumptionState: one.consumed ? 'CONSUMPTION_STATE_CONSUMED' : 'CONSUMPTION_STATE_YET_TO_BE_CONSUMED',
        },
      },
    ],
    purchaseStateContext: { purchaseState: one.state },
    ...(one.isTest ? { testPurchaseContext: { fopType: 'TEST' } } : {}),
    ...(lastOrder(one) === undefined ? {} : { orderId: lastOrder(one)?.id }),
    ...(one.accountToken === null ? {} : { obfuscatedExternalAccountId: one.accountToken }),
    regionCode: region,
    ...(one.completedAt === null ? {} : { purchaseCompletionTime: iso(one.completedAt) }),
    acknowledgementState: acknowledgement(one),
  }
}

/** ProductPurchase, the older reading. */
export function productV1(one: OneTime): Record<string, unknown> {
  return {
    kind: 'androidpublisher#productPurchase',
    purchaseTimeMillis: String(one.completedAt ?? one.boughtAt),
    purchaseState: { PURCHASED: 0, CANCELLED: 1, PENDING: 2 }[one.state],
    consumptionState: one.consumed ? 1 : 0,
    ...(lastOrder(one) === undefined ? {} : { orderId: lastOrder(one)?.id }),
    ...(one.isTest ? { purchaseType: 0 } : {}),
    acknowledgementState: one.acknowledgedAt === null ? 0 : 1,
    productId: one.productId,
    quantity: one.quantity,
    refundableQuantity: one.refundableQuantity,
    ...(one.accountToken === null ? {} : { obfuscatedExternalAccountId: one.accountToken }),
    regionCode: region,
  }
}

export function voidedPurchase(one: Voided): Record<string, unknown> {
  return {
    kind: 'androidpublisher#voidedPurchase',
    purchaseToken: one.token,
    purchaseTimeMillis: String(one.purchasedAt),
    voidedTimeMillis: String(one.at),
    orderId: one.orderId,
    voidedSource: one.source,
    voidedReason: one.reason,
    ...(one.quantity === null ? {} : { voidedQuantity: one.quantity }),
  }
}

export function orderOf(one: Subscription | OneTime, order: Order, product: PlayProduct): Record<string, unknown> {
  const isSubscription = product.type === 'subscription'
  return {
    orderId: order.id,
    purchaseToken: one.token,
    state: order.state,
    createTime: iso(order.at),
    lastEventTime: iso(order.at),
    total: order.price,
    lineItems: [
      {
        productId: order.productId,
        total: order.price,
        ...(isSubscription
          ? {
              subscriptionDetails: {
                servicePeriodStartTime: iso(order.from),
                ...(order.until === null ? {} : { servicePeriodEndTime: iso(order.until) }),
              },
            }
          : { oneTimePurchaseDetails: { quantity: 'quantity' in one ? one.quantity : 1 } }),
      },
    ],
  }
}

function acknowledgement({ acknowledgedAt }: { acknowledgedAt: number | null }): string {
  return `ACKNOWLEDGEMENT_STATE_${acknowledgedAt === null ? 'PENDING' : 'ACKNOWLEDGED'}`
}

function iso(at: number): string {
  return new Date(at).toISOString()
}
