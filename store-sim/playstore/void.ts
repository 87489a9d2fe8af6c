import { refuse } from '../refusal.ts'
import type { Sim } from '../world.ts'
import { lastOrder } from './app.ts'
import { notifyVoided } from './notify.ts'
import type { OneTime, Order, PlayApp, Subscription, Voided } from './types.ts'

/** Who voids and why, in Google's numbers: 2 and 8 when nobody acknowledged. */
const reasons = {
  user: { source: 0, reason: 1 },
  developer: { source: 1, reason: 0 },
  unacknowledged: { source: 2, reason: 8 },
} as const
export type VoidReason = keyof typeof reasons

/** Refunds an order of a subscription. Its state stays what it is: ending access is another step. */
export function voidOrder(sim: Sim, app: PlayApp, one: Subscription, order: Order, why: VoidReason, at: number): void {
  if (order.state === 'REFUNDED') throw refuse('already_refunded', `${order.id} is refunded`, 409)
  order.state = 'REFUNDED'
  const { token, boughtAt } = one
  record(sim, app, {
    token,
    orderId: order.id,
    purchasedAt: boughtAt,
    at,
    ...reasons[why],
    quantity: null,
    kind: 'subscription',
  })
}

/** Takes back so many of a one-time purchase; all that is left: it is cancelled. */
export function voidOneTime(sim: Sim, app: PlayApp, one: OneTime, why: VoidReason, quantity: number, at: number): void {
  if (one.refundableQuantity === 0) throw refuse('already_refunded', `${one.id} is refunded`, 409)
  const taken = Math.min(quantity, one.refundableQuantity)
  one.refundableQuantity -= taken
  const isWhole = taken === one.quantity
  const order = lastOrder(one)
  if (order !== undefined) order.state = one.refundableQuantity === 0 ? 'REFUNDED' : 'PARTIALLY_REFUNDED'
  if (isWhole) one.state = 'CANCELLED'
  const { token, boughtAt: purchasedAt } = one
  const orderId = order?.id ?? ''
  record(sim, app, {
    token,
    orderId,
    purchasedAt,
    at,
    ...reasons[why],
    quantity: isWhole ? null : taken,
    kind: 'one_time',
  })
}

function record(sim: Sim, app: PlayApp, voided: Voided): void {
  app.voided.push(voided)
  notifyVoided(sim, app, voided, voided.at)
}
