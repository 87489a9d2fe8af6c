import { nowOf } from '../clock/clock.ts'
import { signingAt, skewMsAt } from '../faults.ts'
import { type SignOptions, signAppleJws } from '../pki/sign.ts'
import type { Sim } from '../world.ts'
import { appTransactionIdOf, latestOf, productOf, subscriptionOf } from './app.ts'
import { type AppleApp, isOfXcode, type Lineage, type Transaction } from './types.ts'

const typeNames: Record<string, string> = {
  subscription: 'Auto-Renewable Subscription',
  consumable: 'Consumable',
  non_consumable: 'Non-Consumable',
  non_renewing: 'Non-Renewing Subscription',
}
const offerTypes: Record<string, number> = { intro: 1, promo: 2, code: 3, win_back: 4 }

/** JWSTransactionDecodedPayload, without its signedDate. */
export function transactionPayload(app: AppleApp, lineage: Lineage, transaction: Transaction): Record<string, unknown> {
  const { offer, revocation } = transaction
  return {
    transactionId: transaction.id,
    originalTransactionId: lineage.id,
    ...(transaction.webOrderLineItemId === null ? {} : { webOrderLineItemId: transaction.webOrderLineItemId }),
    bundleId: app.id,
    productId: transaction.productId,
    ...(lineage.group === null ? {} : { subscriptionGroupIdentifier: lineage.group }),
    purchaseDate: transaction.purchasedAt,
    originalPurchaseDate: lineage.boughtAt,
    ...(transaction.expiresAt === null ? {} : { expiresDate: transaction.expiresAt }),
    quantity: transaction.quantity,
    type: typeNames[productOf(app, transaction.productId).type],
    ...(transaction.accountToken === null ? {} : { appAccountToken: transaction.accountToken }),
    inAppOwnershipType: lineage.sharedFrom === null ? 'PURCHASED' : 'FAMILY_SHARED',
    ...(transaction.isUpgraded ? { isUpgraded: true } : {}),
    ...(revocation === null
      ? {}
      : {
          revocationDate: revocation.at,
          revocationReason: revocation.reason,
          revocationType: revocation.type,
          ...(revocation.milliPercent === null ? {} : { revocationPercentage: revocation.milliPercent }),
        }),
    ...(offer === null
      ? {}
      : {
          offerType: offerTypes[offer.type],
          offerDiscountType: offer.mode.toUpperCase(),
          offerPeriod: offer.period,
          ...(offer.type === 'intro' ? {} : { offerIdentifier: offer.id }),
        }),
    environment: lineage.environment,
    transactionReason: transaction.reason,
    storefront: 'USA',
    storefrontId: '143441',
    price: transaction.price,
    currency: transaction.currency,
    appTransactionId: appTransactionIdOf(app, lineage.account),
  }
}

/** JWSRenewalInfoDecodedPayload, without its signedDate. */
export function renewalPayload(app: AppleApp, lineage: Lineage): Record<string, unknown> {
  const renewal = subscriptionOf(lineage)
  const latest = latestOf(lineage)
  const first = lineage.transactions.findLast(({ reason }) => reason === 'PURCHASE') ?? latest
  return {
    originalTransactionId: lineage.id,
    autoRenewProductId: renewal.productId,
    productId: latest.productId,
    autoRenewStatus: renewal.autoRenew ? 1 : 0,
    isInBillingRetryPeriod: renewal.status === 'grace' || renewal.status === 'retry',
    ...(renewal.expirationIntent === null ? {} : { expirationIntent: renewal.expirationIntent }),
    ...(renewal.graceUntil === null ? {} : { gracePeriodExpiresDate: renewal.graceUntil }),
    ...(renewal.priceIncrease === 'none' ? {} : { priceIncreaseStatus: renewal.priceIncrease === 'accepted' ? 1 : 0 }),
    environment: lineage.environment,
    recentSubscriptionStartDate: first.purchasedAt,
    ...(latest.expiresAt === null ? {} : { renewalDate: latest.expiresAt }),
    renewalPrice: renewal.price,
    currency: latest.currency,
    appTransactionId: appTransactionIdOf(app, lineage.account),
    ...(latest.accountToken === null ? {} : { appAccountToken: latest.accountToken }),
  }
}

export function appTransactionPayload(app: AppleApp, lineage: Lineage): Record<string, unknown> {
  return {
    receiptType: lineage.environment,
    appAppleId: app.appAppleId,
    bundleId: app.id,
    applicationVersion: '1.0.0',
    originalApplicationVersion: '1.0.0',
    originalPurchaseDate: lineage.boughtAt,
    originalPlatform: 'iOS',
    appTransactionId: appTransactionIdOf(app, lineage.account),
    deviceVerification: 'c3RvcmUtc2ltdWxhdG9y',
    deviceVerificationNonce: '00000000-0000-4000-8000-000000000000',
  }
}

/** Signs as of now, unless the payload says when: every reading of one transaction is another string. */
export async function signAs(
  sim: Sim,
  app: AppleApp,
  payload: { signedDate?: number } & Record<string, unknown>,
  path: string,
  options: SignOptions = {},
): Promise<string> {
  const at = nowOf(app.clock, sim.wall())
  const signedDate = (payload.signedDate ?? at) + skewMsAt(sim.world, path)
  const isXcode = isOfXcode(payload.environment ?? payload.receiptType)
  const whole = isXcode ? fractional({ ...payload, signedDate }) : { ...payload, signedDate }
  const signing = options.signing ?? (isXcode ? 'xcode' : signingAt(sim.world, path))
  return signAppleJws(sim.world, whole, at, { ...options, signing })
}

/** Xcode's instants are no whole milliseconds. */
function fractional(payload: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(payload).map(([name, value]) => [
      name,
      typeof value === 'number' && name.endsWith('Date') ? value + 0.25 : value,
    ]),
  )
}

export async function signAppTransaction(sim: Sim, app: AppleApp, lineage: Lineage, path: string): Promise<string> {
  const receiptCreationDate = nowOf(app.clock, sim.wall())
  return signAs(sim, app, { ...appTransactionPayload(app, lineage), receiptCreationDate }, path)
}
