import type { JsonObject } from '../../events/index.ts'
import { isAccepted } from '../environment.ts'
import type { Reread } from '../reverify.ts'
import type { Refused, StoreApp, Verdict, VerifiedPeriod, VerifiedPurchase, VerifyContext } from '../types.ts'
import { textIn } from './fields.ts'
import type { CardHint, CardReading, ReadCard } from './read.ts'

/** What Stripe says now of whatever an event named, as a verified purchase. It writes nothing. */
export function createCardReread(read: ReadCard) {
  return async (app: StoreApp, hint: CardHint, context: VerifyContext): Promise<Verdict> => {
    if (!app.credentials.stripe) return refused('unavailable', 'not_configured')
    const reading = await read(app, hint, context.now)
    if (reading.kind === 'refused') return reading
    const storeEnvironment = reading.isLive ? 'production' : 'sandbox'
    const held = (await context.known(storeEnvironment, reading.rootKey)) !== null
    if (!isAccepted(app, storeEnvironment, { ...context, held })) return refused('invalid', 'environment')
    return purchaseOf(reading, storeEnvironment, context)
  }
}

/** How a lineage stands, asked by what it is known by. */
export function createCardLineageReread(reread: ReturnType<typeof createCardReread>): Reread {
  return (app, { rootKey }, context) => {
    const object = rootKey.startsWith('sub_') ? 'subscription' : 'checkout.session'
    return reread(app, { object, id: rootKey }, context)
  }
}

async function purchaseOf(
  { rootKey, readAt, metadata, state, claims }: CardReading,
  storeEnvironment: 'production' | 'sandbox',
  { productFor }: VerifyContext,
): Promise<Verdict> {
  const periods: VerifiedPeriod[] = []
  for (const { priceId, ...period } of state.periods) {
    const sold = { storeProductId: priceId, basePlanId: null, purchaseOptionId: null, offerId: null }
    const mapped = await productFor(sold)
    // Paid for, and nobody says for what: looked at again until somebody does, and then given up visibly.
    if (mapped === null) return refused('reconciliation_retryable', 'no Product has the price')
    periods.push({ ...period, ...sold, mapped, consumable: period.type === 'one_time' })
  }
  const purchase: VerifiedPurchase = {
    ...{ store: 'stripe', storeEnvironment, evidenceKey: rootKey, rootKey, linkedKeys: [] },
    ...{ purchasedAt: state.startedAt, version: readAt, readAt, unpolled: false },
    ...{ accountToken: textIn(metadata, 'checkout'), renewalAccountToken: null, familyShared: false },
    ...{ status: state.status, autoRenews: state.autoRenews, pendingProduct: null, nextCheckAt: state.nextCheckAt },
    transactions: [
      {
        ...{ evidenceKey: rootKey, version: readAt, token: null, supersededBy: null, periods },
        claims: claims as JsonObject, // parsed from JSON
      },
    ],
    ...{ consumedElsewhere: false, outbox: [], result: { transactionId: rootKey }, extra: null },
  }
  return { kind: 'verified', purchase }
}

function refused(suffix: Refused['suffix'], detail: string): Refused {
  return { kind: 'refused', suffix, detail }
}
