import { appTransactionIdOf, latestOf } from '../appstore/app.ts'
import { familyOf } from '../appstore/family.ts'
import { renewalPayload, signAppTransaction, signAs, transactionPayload } from '../appstore/payloads.ts'
import type { AppleApp, Lineage, Transaction } from '../appstore/types.ts'
import { type Signing, type SignOptions, signings } from '../pki/sign.ts'
import { lastOrder, mainItem } from '../playstore/app.ts'
import type { OneTime, PlayApp, Subscription } from '../playstore/types.ts'
import { refuse } from '../refusal.ts'
import type { Sim } from '../world.ts'

/** What a device holds after an App Store purchase; `purchase` is its part of the body of `POST /purchase`. */
export async function heldByIphone(
  sim: Sim,
  app: AppleApp,
  lineage: Lineage,
  transaction: Transaction = latestOf(lineage),
  options: SignOptions = {},
): Promise<object> {
  const path = '/device/appstore'
  const signedTransaction = await signAs(sim, app, transactionPayload(app, lineage, transaction), path, options)
  const family = await Promise.all(familyOf(app, lineage).map((shared) => heldByIphone(sim, app, shared)))
  return {
    id: lineage.id,
    store: 'appstore',
    app: app.id,
    account: lineage.account,
    productId: transaction.productId,
    transactionId: transaction.id,
    originalTransactionId: lineage.id,
    environment: lineage.environment,
    status: lineage.renewal?.status ?? null,
    expiresAt: isoOrNull(transaction.expiresAt),
    signedTransaction,
    ...(lineage.renewal === null
      ? {}
      : {
          signedRenewalInfo: await signAs(sim, app, renewalPayload(app, lineage), path, { signing: options.signing }),
        }),
    appTransactionId: appTransactionIdOf(app, lineage.account),
    signedAppTransaction: await signAppTransaction(sim, app, lineage, path),
    purchase: { type: 'appstore', transaction_jwt: signedTransaction },
    ...(family.length > 0 ? { family } : {}),
  }
}

/** The same after a Play purchase. */
export function heldByAndroid(app: PlayApp, one: Subscription | OneTime): object {
  const isOneTime = 'quantity' in one
  const item = isOneTime ? undefined : mainItem(one)
  const productId = isOneTime ? one.productId : (item?.productId ?? '')
  return {
    id: one.id,
    store: 'playstore',
    app: app.id,
    account: one.account,
    productId,
    status: one.state,
    expiresAt: isoOrNull(item?.expiresAt ?? null),
    acknowledged: one.acknowledgedAt !== null,
    purchaseToken: one.token,
    orderId: lastOrder(one)?.id ?? null,
    purchase: {
      type: 'playstore',
      purchase_token: one.token,
      product_id: productId,
      product_type: isOneTime ? 'one_time' : 'subscription',
      ...(isOneTime ? { purchase_option_id: one.purchaseOptionId } : { base_plan_id: item?.basePlanId }),
      ...offerOf(isOneTime ? one.offerId : (item?.offerId ?? null)),
      package_name: app.id,
    },
  }
}

export function signingOf(asked: string | undefined): Signing | undefined {
  const signing = signings.find((one) => one === asked)
  if (asked !== undefined && signing === undefined)
    throw refuse('invalid_request', `signing: one of ${signings.join(', ')}`)
  return signing
}

function offerOf(offerId: string | null): { offer_id?: string } {
  return offerId === null ? {} : { offer_id: offerId }
}

function isoOrNull(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString()
}
