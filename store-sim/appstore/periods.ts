import { addPeriod, dayMs } from '../period.ts'
import type { Sim } from '../world.ts'
import { latestOf, productOf, subscriptionOf } from './app.ts'
import { startPeriod } from './buy.ts'
import { followOwner } from './family.ts'
import { notify } from './notify.ts'
import type { AppleApp, Lineage } from './types.ts'

/** How long the App Store tries a declined card again. */
const retryMs = 60 * dayMs
/** ExpirationIntent: cancelled, billing error, no consent to a price. */
const intents = { cancelled: 1, billing: 2, price: 3 }

export interface Due {
  at: number
  run: () => void
}

/** What happens to a subscription next if nobody does anything. Its state says so: there is nothing to cancel. */
export function nextOf(sim: Sim, app: AppleApp, lineage: Lineage): Due | null {
  const { renewal } = lineage
  if (renewal === null || lineage.sharedFrom !== null) return null
  const end = latestOf(lineage).expiresAt ?? Number.POSITIVE_INFINITY
  switch (renewal.status) {
    case 'active':
      return { at: end, run: () => endPeriod(sim, app, lineage, end) }
    case 'grace': {
      const at = renewal.graceUntil ?? end
      return { at, run: () => endGrace(sim, app, lineage, at) }
    }
    case 'retry': {
      const at = renewal.retryUntil ?? end
      return { at, run: () => expire(sim, app, lineage, at) }
    }
    case 'expired':
    case 'revoked':
      return null
  }
}

function endPeriod(sim: Sim, app: AppleApp, lineage: Lineage, at: number): void {
  const renewal = subscriptionOf(lineage)
  if (!renewal.autoRenew || renewal.priceIncrease === 'pending') expire(sim, app, lineage, at)
  else if (renewal.card === 'declined') failToRenew(sim, app, lineage, at)
  else renew(sim, app, lineage, at)
}

/** The next period, beginning where the present one ends. */
export function renew(sim: Sim, app: AppleApp, lineage: Lineage, at: number, subtype?: string): void {
  const renewal = subscriptionOf(lineage)
  const latest = latestOf(lineage)
  const product = productOf(app, renewal.productId)
  const end = latest.expiresAt ?? at
  const start = renewal.status === 'retry' || renewal.status === 'expired' ? at : end
  const { price } = renewal
  const { transaction } = startPeriod(sim, lineage, product, {
    purchase: latest.accountToken === null ? {} : { accountToken: latest.accountToken },
    offer: null,
    reason: 'RENEWAL',
    start,
  })
  transaction.price = price
  subscriptionOf(lineage).price = price
  notify(sim, app, lineage, { type: 'DID_RENEW', ...(subtype === undefined ? {} : { subtype }) }, at)
  followOwner(sim, app, lineage, at)
}

export function failToRenew(sim: Sim, app: AppleApp, lineage: Lineage, at: number): void {
  const renewal = subscriptionOf(lineage)
  renewal.card = 'declined'
  const { grace } = productOf(app, latestOf(lineage).productId)
  if (grace === undefined) {
    startRetry(sim, app, lineage, at, { type: 'DID_FAIL_TO_RENEW' })
    return
  }
  renewal.status = 'grace'
  renewal.graceUntil = addPeriod(at, grace)
  renewal.retryUntil = at + retryMs
  renewal.expirationIntent = intents.billing
  notify(sim, app, lineage, { type: 'DID_FAIL_TO_RENEW', subtype: 'GRACE_PERIOD' }, at)
  followOwner(sim, app, lineage, at)
}

export function endGrace(sim: Sim, app: AppleApp, lineage: Lineage, at: number): void {
  startRetry(sim, app, lineage, at, { type: 'GRACE_PERIOD_EXPIRED' })
}

export function startRetry(sim: Sim, app: AppleApp, lineage: Lineage, at: number, notice: { type: string }): void {
  const renewal = subscriptionOf(lineage)
  renewal.status = 'retry'
  renewal.card = 'declined'
  renewal.graceUntil = null
  renewal.retryUntil ??= at + retryMs
  renewal.expirationIntent = intents.billing
  notify(sim, app, lineage, notice, at)
  followOwner(sim, app, lineage, at)
}

export function expire(sim: Sim, app: AppleApp, lineage: Lineage, at: number): void {
  const renewal = subscriptionOf(lineage)
  const why =
    renewal.status === 'retry' || renewal.status === 'grace' ? 'billing' : renewal.autoRenew ? 'price' : 'cancelled'
  const subtypes = { cancelled: 'VOLUNTARY', billing: 'BILLING_RETRY', price: 'PRICE_INCREASE' }
  renewal.status = 'expired'
  renewal.expirationIntent = intents[why]
  renewal.autoRenew = false
  renewal.graceUntil = null
  notify(sim, app, lineage, { type: 'EXPIRED', subtype: subtypes[why] }, at)
  followOwner(sim, app, lineage, at)
}
