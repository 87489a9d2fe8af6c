import { latestOf } from '../appstore/app.ts'
import { nowOf } from '../clock/clock.ts'
import { lastOrder } from '../playstore/app.ts'
import type { Sim, SimApp } from '../world.ts'

/** A product that somebody has paid for, for this moment. */
export interface Paid {
  account: string
  productId: string
  purchase: string
}

/** What the stores themselves say: paid, in grace, or bought for ever, and not refunded. */
export function paidIn(sim: Sim, app: SimApp): Paid[] {
  const at = nowOf(app.clock, sim.wall())
  if (app.store === 'appstore')
    return app.lineages.flatMap((lineage) => {
      const { status } = lineage.renewal ?? { status: 'active' }
      const latest = latestOf(lineage)
      const until = lineage.renewal?.graceUntil ?? latest.expiresAt ?? Number.POSITIVE_INFINITY
      const isPaid = (status === 'active' || status === 'grace') && latest.revocation === null && at < until
      return isPaid ? [{ account: lineage.account, productId: latest.productId, purchase: lineage.id }] : []
    })
  const subscriptions = app.subscriptions
    .filter(({ state, replacedAt }) => ['ACTIVE', 'IN_GRACE_PERIOD', 'CANCELED'].includes(state) && replacedAt === null)
    .filter((one) => lastOrder(one)?.state !== 'REFUNDED')
    .flatMap(({ account, items, id }) =>
      items
        .filter(({ expiresAt }) => expiresAt !== null && at < expiresAt)
        .map(({ productId }) => ({ account, productId, purchase: id })),
    )
  const oneTimes = app.oneTimes
    .filter(({ state, refundableQuantity }) => state === 'PURCHASED' && refundableQuantity > 0)
    .map(({ account, productId, id }) => ({ account, productId, purchase: id }))
  return [...subscriptions, ...oneTimes]
}

export function accountsOf(app: SimApp): string[] {
  const all = app.store === 'appstore' ? app.lineages : [...app.subscriptions, ...app.oneTimes]
  return [...new Set(all.map(({ account }) => account))]
}

export interface Late {
  purchase: string
  token: string
  acknowledgeBy: string
}

/** Play purchases that ran out of time, or out of half of it. */
export function unacknowledgedIn(sim: Sim, app: SimApp): Late[] {
  if (app.store === 'appstore') return []
  const at = nowOf(app.clock, sim.wall())
  return [...app.subscriptions, ...app.oneTimes]
    .filter(
      ({ acknowledgedAt, acknowledgeBy, boughtAt }) =>
        acknowledgedAt === null && acknowledgeBy !== null && at >= (boughtAt + acknowledgeBy) / 2,
    )
    .map(({ id, token, acknowledgeBy }) => ({
      purchase: id,
      token: token.slice(0, 24),
      acknowledgeBy: new Date(acknowledgeBy ?? 0).toISOString(),
    }))
}
