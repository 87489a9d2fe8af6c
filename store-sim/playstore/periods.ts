import type { Due } from '../appstore/periods.ts'
import { addPeriod, dayMs } from '../period.ts'
import type { Sim } from '../world.ts'
import { lastOrder, mainItem, newOrderId, planOf } from './app.ts'
import { payPeriod } from './buy.ts'
import { notifySubscription } from './notify.ts'
import type { OneTime, PlayApp, Subscription } from './types.ts'
import { voidOneTime, voidOrder } from './void.ts'

/** Google's own account hold, where a base plan names none. */
const holdPeriod = 'P30D'
const rights = ['ACTIVE', 'IN_GRACE_PERIOD', 'CANCELED', 'ON_HOLD', 'PAUSED']

/** What happens to a subscription next if nobody does anything. */
export function nextOfSubscription(sim: Sim, app: PlayApp, one: Subscription): Due | null {
  const steps: (Due | null)[] = [unacknowledged(sim, app, one), replaced(one), nextStep(sim, app, one)]
  return steps.reduce((first, step) => (step !== null && (first === null || step.at < first.at) ? step : first), null)
}

export function nextOfOneTime(sim: Sim, app: PlayApp, one: OneTime): Due | null {
  const { acknowledgeBy } = one
  if (one.state !== 'PURCHASED' || one.acknowledgedAt !== null || acknowledgeBy === null) return null
  return { at: acknowledgeBy, run: () => voidOneTime(sim, app, one, 'unacknowledged', one.quantity, acknowledgeBy) }
}

function unacknowledged(sim: Sim, app: PlayApp, one: Subscription): Due | null {
  const at = one.acknowledgeBy
  if (at === null || one.acknowledgedAt !== null || !rights.includes(one.state)) return null
  return { at, run: () => revoke(sim, app, one, 'unacknowledged', at) }
}

function replaced(one: Subscription): Due | null {
  const at = one.replacedAt
  if (at === null || one.state === 'EXPIRED') return null
  return { at, run: () => finish(one, at) }
}

function nextStep(sim: Sim, app: PlayApp, one: Subscription): Due | null {
  if (one.replacedAt !== null) return null
  const end = mainItem(one).expiresAt ?? Number.POSITIVE_INFINITY
  switch (one.state) {
    case 'ACTIVE':
      return { at: end, run: () => endPeriod(sim, app, one, end) }
    case 'CANCELED':
      return { at: end, run: () => expire(sim, app, one, end) }
    case 'IN_GRACE_PERIOD':
      return { at: end, run: () => moveGrace(sim, app, one, end) }
    case 'ON_HOLD': {
      const at = one.holdUntil ?? end
      return { at, run: () => giveUp(sim, app, one, at) }
    }
    case 'PAUSED': {
      const at = one.pause?.until ?? end
      return { at, run: () => resume(sim, app, one, at) }
    }
    case 'PENDING':
    case 'PENDING_PURCHASE_CANCELED':
    case 'EXPIRED':
      return null
  }
}

function endPeriod(sim: Sim, app: PlayApp, one: Subscription, at: number): void {
  if (one.autoRenew && one.pause !== null) {
    one.state = 'PAUSED'
    notifySubscription(sim, app, one, 'PAUSED', at)
  } else if (!one.autoRenew || one.priceIncrease?.accepted === false) {
    one.canceled ??= { kind: 'system', at }
    expire(sim, app, one, at)
  } else if (one.card === 'declined') failToRenew(sim, app, one, at)
  else renew(sim, app, one, at)
}

/** A renewal continues from the paid end; after hold or pause a new cycle begins. */
export function renew(
  sim: Sim,
  app: PlayApp,
  one: Subscription,
  at: number,
  notice: 'RENEWED' | 'RECOVERED' = 'RENEWED',
): void {
  const last = lastOrder(one)
  const isNewCycle = one.state === 'ON_HOLD' || one.state === 'PAUSED'
  takeDeferred(one)
  const start = isNewCycle ? at : (last?.until ?? at)
  one.state = 'ACTIVE'
  one.graceUntil = null
  one.holdUntil = null
  one.pause = null
  if (one.priceIncrease?.accepted === true) one.priceIncrease.applied = true
  payPeriod(app, one, nextOrderId(sim, one), start, addPeriod(start, planOf(app, one).period), at)
  notifySubscription(sim, app, one, notice, at)
}

export function failToRenew(sim: Sim, app: PlayApp, one: Subscription, at: number): void {
  one.card = 'declined'
  const { grace } = planOf(app, one)
  if (grace === undefined) {
    hold(sim, app, one, at)
    return
  }
  one.state = 'IN_GRACE_PERIOD'
  one.graceUntil = addPeriod(at, grace)
  extendItems(one, Math.min(at + dayMs, one.graceUntil))
  notifySubscription(sim, app, one, 'IN_GRACE_PERIOD', at)
}

/** During grace the expiry moves on day by day. */
function moveGrace(sim: Sim, app: PlayApp, one: Subscription, at: number): void {
  const until = one.graceUntil ?? at
  if (at >= until) hold(sim, app, one, at)
  else extendItems(one, Math.min(at + dayMs, until))
}

export function hold(sim: Sim, app: PlayApp, one: Subscription, at: number): void {
  one.state = 'ON_HOLD'
  one.card = 'declined'
  one.graceUntil = null
  one.holdUntil = addPeriod(at, planOf(app, one).hold ?? holdPeriod)
  notifySubscription(sim, app, one, 'ON_HOLD', at)
}

function giveUp(sim: Sim, app: PlayApp, one: Subscription, at: number): void {
  one.canceled = { kind: 'system', at }
  one.autoRenew = false
  notifySubscription(sim, app, one, 'CANCELED', at)
  expire(sim, app, one, at)
}

export function resume(sim: Sim, app: PlayApp, one: Subscription, at: number): void {
  if (one.card === 'declined') {
    one.pause = null
    hold(sim, app, one, at)
  } else renew(sim, app, one, at, 'RECOVERED')
}

export function expire(sim: Sim, app: PlayApp, one: Subscription, at: number): void {
  finish(one, at)
  notifySubscription(sim, app, one, 'EXPIRED', at)
}

export function revoke(
  sim: Sim,
  app: PlayApp,
  one: Subscription,
  why: 'developer' | 'unacknowledged',
  at: number,
): void {
  finish(one, at)
  one.canceled = { kind: why === 'developer' ? 'developer' : 'system', at }
  notifySubscription(sim, app, one, 'REVOKED', at)
  const order = lastOrder(one)
  if (order !== undefined && order.state !== 'REFUNDED') voidOrder(sim, app, one, order, why, at)
}

function finish(one: Subscription, at: number): void {
  one.state = 'EXPIRED'
  one.autoRenew = false
  one.expiredAt = at
  for (const item of one.items) if (item.expiresAt !== null) item.expiresAt = Math.min(item.expiresAt, at)
}

function extendItems(one: Subscription, until: number): void {
  for (const item of one.items) item.expiresAt = until
}

/** After a deferred change of plan the new item takes over. */
function takeDeferred(one: Subscription): void {
  one.items = one.items.filter(({ deferredTo }) => deferredTo === null)
}

/** Renewals carry the first order's number and count on. */
function nextOrderId(sim: Sim, one: Subscription): string {
  const [first] = one.orders
  if (first === undefined) return newOrderId(sim)
  return `${first.id.replace(/\.\.\d+$/, '')}..${one.orders.length - 1}`
}
