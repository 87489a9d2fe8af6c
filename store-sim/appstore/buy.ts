import { numberId, opaque } from '../ids.ts'
import { addPeriod } from '../period.ts'
import { refuse } from '../refusal.ts'
import type { Sim } from '../world.ts'
import { latestOf, lineageInGroup, productOf, subscriptionOf } from './app.ts'
import { followOwner, shareWith } from './family.ts'
import { spendIntroToken } from './intro-token.ts'
import { notify } from './notify.ts'
import type { AppleApp, AppleOffer, AppleProduct, ApplePurchase, Lineage, Renewal, Transaction } from './types.ts'

export interface Bought {
  lineage: Lineage
  transaction: Transaction
}

/** What happens when somebody confirms the App Store's dialog. */
export async function buy(sim: Sim, app: AppleApp, purchase: ApplePurchase, at: number): Promise<Bought> {
  const product = productOf(app, purchase.productId)
  const offer = await offerFor(sim, app, product, purchase)
  const bought = product.type === 'subscription' ? subscribe : buyOnce
  const result = bought(sim, app, product, purchase, offer, at)
  for (const account of purchase.family ?? []) shareWith(sim, app, result.lineage, account, at)
  return result
}

function subscribe(
  sim: Sim,
  app: AppleApp,
  product: AppleProduct,
  purchase: ApplePurchase,
  offer: AppleOffer | null,
  at: number,
): Bought {
  const known = lineageInGroup(app, purchase.account, product.group ?? product.productId)
  if (known === undefined) {
    const lineage = openLineage(sim, app, product, purchase, at)
    const bought = startPeriod(sim, lineage, product, { purchase, offer, reason: 'PURCHASE', start: at })
    notify(sim, app, lineage, { type: 'SUBSCRIBED', subtype: 'INITIAL_BUY' }, at)
    return bought
  }
  const { status } = subscriptionOf(known)
  if (status === 'active' || status === 'grace') return changePlan(sim, app, known, product, purchase, at)
  return resubscribe(sim, app, known, product, purchase, offer, at)
}

export function resubscribe(
  sim: Sim,
  app: AppleApp,
  lineage: Lineage,
  product: AppleProduct,
  purchase: ApplePurchase,
  offer: AppleOffer | null,
  at: number,
): Bought {
  const bought = startPeriod(sim, lineage, product, { purchase, offer, reason: 'PURCHASE', start: at })
  notify(sim, app, lineage, { type: 'SUBSCRIBED', subtype: 'RESUBSCRIBE' }, at)
  followOwner(sim, app, lineage, at)
  return bought
}

/** Up, or across to an equal period: at once. Down, or across to another period: with the next renewal. */
export function changePlan(
  sim: Sim,
  app: AppleApp,
  lineage: Lineage,
  product: AppleProduct,
  purchase: ApplePurchase,
  at: number,
): Bought {
  const latest = latestOf(lineage)
  const present = productOf(app, latest.productId)
  if (present.group !== product.group)
    throw refuse('other_group', `${product.productId} belongs to another subscription group`, 409)
  if (present.productId === product.productId && subscriptionOf(lineage).productId !== product.productId)
    return stay(sim, app, lineage, product, at)
  if (present.productId === product.productId)
    throw refuse('already_subscribed', `${lineage.account} has ${product.productId}`, 409)
  const [from, to] = [present.level ?? 1, product.level ?? 1]
  const isAtOnce = to < from || (to === from && present.period === product.period)
  if (!isAtOnce) {
    const renewal = subscriptionOf(lineage)
    renewal.productId = product.productId
    renewal.price = product.price ?? 0
    renewal.autoRenew = true
    notify(sim, app, lineage, { type: 'DID_CHANGE_RENEWAL_PREF', subtype: 'DOWNGRADE' }, at)
    return { lineage, transaction: latest }
  }
  latest.isUpgraded = true
  const bought = startPeriod(sim, lineage, product, { purchase, offer: null, reason: 'PURCHASE', start: at })
  notify(sim, app, lineage, { type: 'DID_CHANGE_RENEWAL_PREF', subtype: 'UPGRADE' }, at)
  followOwner(sim, app, lineage, at)
  return bought
}

/** Takes back a downgrade that waits for the renewal: told without a subtype. */
function stay(sim: Sim, app: AppleApp, lineage: Lineage, product: AppleProduct, at: number): Bought {
  const renewal = subscriptionOf(lineage)
  renewal.productId = product.productId
  renewal.price = product.price ?? 0
  notify(sim, app, lineage, { type: 'DID_CHANGE_RENEWAL_PREF' }, at)
  return { lineage, transaction: latestOf(lineage) }
}

function buyOnce(
  sim: Sim,
  app: AppleApp,
  product: AppleProduct,
  purchase: ApplePurchase,
  offer: AppleOffer | null,
  at: number,
): Bought {
  if (product.type === 'non_consumable') {
    const owned = app.lineages.find(
      (one) =>
        one.account === purchase.account &&
        one.transactions.some(({ productId, revocation }) => productId === product.productId && revocation === null),
    )
    if (owned !== undefined) return { lineage: owned, transaction: latestOf(owned) } // bought again for nothing
  }
  const lineage = openLineage(sim, app, product, purchase, at)
  const bought = startPeriod(sim, lineage, product, { purchase, offer, reason: 'PURCHASE', start: at })
  notify(sim, app, lineage, { type: 'ONE_TIME_CHARGE' }, at)
  return bought
}

function openLineage(sim: Sim, app: AppleApp, product: AppleProduct, purchase: ApplePurchase, at: number): Lineage {
  const isSubscription = product.type === 'subscription'
  const lineage: Lineage = {
    id: '', // that of its first transaction
    account: purchase.account,
    sharedFrom: null,
    environment: purchase.environment ?? 'Sandbox',
    group: isSubscription ? (product.group ?? product.productId) : null,
    boughtAt: at,
    transactions: [],
    renewal: isSubscription ? newRenewal(product) : null,
  }
  app.lineages.push(lineage)
  sim.changed()
  return lineage
}

function newRenewal(product: AppleProduct): Renewal {
  return {
    status: 'active',
    autoRenew: true,
    productId: product.productId,
    card: 'good',
    graceUntil: null,
    retryUntil: null,
    expirationIntent: null,
    priceIncrease: 'none',
    price: product.price ?? 0,
    extensions: 0,
  }
}

export interface Period {
  purchase: Pick<ApplePurchase, 'quantity' | 'accountToken'>
  offer: AppleOffer | null
  reason: Transaction['reason']
  start: number
}

/** A new transaction of the lineage, paid for; the subscription is active again. */
export function startPeriod(sim: Sim, lineage: Lineage, product: AppleProduct, period: Period): Bought {
  const { purchase, offer, reason, start } = period
  const isSubscription = product.type === 'subscription'
  const length = offer?.mode === 'free_trial' || offer?.mode === 'pay_up_front' ? offer.period : product.period
  const price = offer === null ? (product.price ?? 0) : (offer.price ?? 0)
  const quantity = purchase.quantity ?? 1
  const transaction: Transaction = {
    id: numberId(sim.world, 'transaction', '2000', 8),
    webOrderLineItemId: isSubscription ? numberId(sim.world, 'line', '2001', 8) : null,
    orderId: `M${opaque(sim.world, 'order', 9).toUpperCase()}`,
    productId: product.productId,
    purchasedAt: start,
    expiresAt: isSubscription ? addPeriod(start, length ?? 'P1M') : null,
    quantity,
    reason,
    price: price * quantity,
    currency: product.currency ?? 'USD',
    accountToken: purchase.accountToken ?? null,
    offer,
    isUpgraded: false,
    finished: false,
    mirrors: null,
    revocation: null,
  }
  lineage.id ||= transaction.id
  lineage.transactions.push(transaction)
  if (lineage.renewal !== null)
    lineage.renewal = { ...newRenewal(product), autoRenew: lineage.renewal.autoRenew || reason === 'PURCHASE' }
  return { lineage, transaction }
}

async function offerFor(
  sim: Sim,
  app: AppleApp,
  product: AppleProduct,
  purchase: ApplePurchase,
): Promise<AppleOffer | null> {
  const offers = product.offers ?? []
  const intro = offers.find(({ type }) => type === 'intro') ?? null
  if (purchase.introToken !== undefined)
    return (await spendIntroToken(sim, app, purchase, purchase.introToken)) ? intro : null
  if (purchase.offer === undefined) return null
  const offer = offers.find(({ id }) => id === purchase.offer)
  if (offer === undefined) throw refuse('offer_not_found', `${product.productId} has no offer ${purchase.offer}`, 404)
  if (offer.type === 'intro' && hadIntro(app, purchase.account, product.group))
    throw refuse('offer_not_eligible', `${purchase.account} had an introductory offer in this group`, 409)
  return offer
}

function hadIntro(app: AppleApp, account: string, group: string | undefined): boolean {
  return app.lineages
    .filter((lineage) => lineage.account === account && lineage.group === group)
    .some(({ transactions }) => transactions.some(({ offer }) => offer?.type === 'intro'))
}
