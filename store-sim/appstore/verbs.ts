import { type Static, Type } from 'typebox'
import { dayMs } from '../period.ts'
import { refuse } from '../refusal.ts'
import type { Sim } from '../world.ts'
import { findTransaction, latestOf, lineageInGroup, productOf, subscriptionOf } from './app.ts'
import { type Bought, changePlan, resubscribe } from './buy.ts'
import { followOwner, revokeShared } from './family.ts'
import { notify } from './notify.ts'
import { endGrace, expire, failToRenew, renew, startRetry } from './periods.ts'
import type { AppleApp, Lineage, Transaction } from './types.ts'

export const appleVerbShape = Type.Object(
  {
    productId: Type.Optional(Type.String()),
    accountToken: Type.Optional(Type.String()),
    mode: Type.Optional(Type.Enum(['full', 'percent', 'quantity'])),
    percent: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 100 })),
    quantity: Type.Optional(Type.Integer({ minimum: 1 })),
    /** The transaction to refund, where it isn't the present one. */
    order: Type.Optional(Type.String()),
    days: Type.Optional(Type.Integer({ minimum: 1, maximum: 90 })),
    price: Type.Optional(Type.Integer({ minimum: 0 })),
    accepted: Type.Optional(Type.Boolean()),
    in_app: Type.Optional(Type.Boolean()),
    signing: Type.Optional(Type.String()),
    /** Of `re-sign`: what is written instead of the truth; null leaves it out. */
    header: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    claims: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    /** Of `notify`. */
    type: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
    subtype: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
  },
  { additionalProperties: false },
)
type VerbBody = Static<typeof appleVerbShape>

export interface VerbCall {
  sim: Sim
  app: AppleApp
  lineage: Lineage
  /** That of the id, or the newest when the id is that of the purchase. */
  transaction: Transaction
  at: number
  body: VerbBody
}

/** What people, cards and the store can do to a purchase that exists. Verbs that end a period end it now. */
export const appleVerbs: Record<string, (call: VerbCall) => Bought | undefined> = {
  renew: ({ sim, app, lineage, at }) => {
    demand(lineage, ['active', 'grace'])
    renew(sim, app, lineage, at)
    return undefined
  },
  'fail-billing': ({ lineage }) => {
    subscriptionOf(lineage).card = 'declined'
    return undefined
  },
  'enter-grace': ({ sim, app, lineage, at }) => {
    demand(lineage, ['active'])
    if (productOf(app, latestOf(lineage).productId).grace === undefined)
      throw refuse('no_grace', `${latestOf(lineage).productId} has no grace period`, 409)
    cut(lineage, at)
    failToRenew(sim, app, lineage, at)
    return undefined
  },
  hold: ({ sim, app, lineage, at }) => {
    const { status } = demand(lineage, ['active', 'grace'])
    cut(lineage, at)
    if (status === 'grace') endGrace(sim, app, lineage, at)
    else startRetry(sim, app, lineage, at, { type: 'DID_FAIL_TO_RENEW' })
    return undefined
  },
  recover: ({ sim, app, lineage, at }) => {
    const { status } = subscriptionOf(lineage)
    subscriptionOf(lineage).card = 'good'
    if (status === 'grace' || status === 'retry') renew(sim, app, lineage, at, 'BILLING_RECOVERY')
    return undefined
  },
  cancel: (call) => setAutoRenew(call, false),
  restart: (call) => setAutoRenew(call, true),
  expire: ({ sim, app, lineage, at }) => {
    const renewal = demand(lineage, ['active', 'grace', 'retry'])
    cut(lineage, at)
    if (renewal.status === 'active') renewal.autoRenew = false
    expire(sim, app, lineage, at)
    return undefined
  },
  refund,
  'reverse-refund': ({ sim, app, lineage, transaction: named, at, body }) => {
    const transaction = ofOrder(app, lineage, body.order) ?? named
    if (transaction.revocation === null) throw refuse('not_refunded', `${transaction.id} is not refunded`, 409)
    transaction.revocation = null
    const { renewal } = lineage
    if (renewal?.status === 'revoked') renewal.status = (transaction.expiresAt ?? 0) > at ? 'active' : 'expired'
    notify(sim, app, lineage, { type: 'REFUND_REVERSED', transaction }, at)
    return undefined
  },
  revoke: ({ sim, app, lineage, at }) => {
    if (lineage.sharedFrom === null) throw refuse('not_shared', 'only what a family shares can be revoked', 409)
    revokeShared(sim, app, lineage, at)
    return undefined
  },
  upgrade: change,
  downgrade: change,
  resubscribe: ({ sim, app, lineage, at, body }) => {
    demand(lineage, ['expired', 'revoked', 'retry'])
    const product = productOf(app, body.productId ?? latestOf(lineage).productId)
    if (lineageInGroup(app, lineage.account, product.group ?? null) !== lineage)
      throw refuse('other_group', `${product.productId} belongs to another subscription group`, 409)
    const purchase = { account: lineage.account, productId: product.productId, ...tokenOf(body) }
    return resubscribe(sim, app, lineage, product, purchase, null, at)
  },
  'price-increase': ({ sim, app, lineage, at, body }) => {
    const renewal = subscriptionOf(lineage)
    renewal.price = body.price ?? Math.ceil(renewal.price * 1.2)
    renewal.priceIncrease = body.accepted === true ? 'accepted' : 'pending'
    notify(sim, app, lineage, { type: 'PRICE_INCREASE', subtype: renewal.priceIncrease.toUpperCase() }, at)
    return undefined
  },
  /** A notification of any type about the purchase as it is: those that follow from nothing that happens here. */
  notify: ({ sim, app, lineage, transaction, at, body }) => {
    const { type, subtype } = body
    if (type === undefined) throw refuse('invalid_request', 'type: says what to tell')
    notify(sim, app, lineage, { type, transaction, ...(subtype === undefined ? {} : { subtype }) }, at)
    return undefined
  },
  extend: ({ sim, app, lineage, at, body }) => {
    extend(sim, app, lineage, body.days ?? 30, at)
    return undefined
  },
}

export function extend(sim: Sim, app: AppleApp, lineage: Lineage, days: number, at: number): void {
  demand(lineage, ['active'])
  const latest = latestOf(lineage)
  latest.expiresAt = (latest.expiresAt ?? at) + days * dayMs
  subscriptionOf(lineage).extensions += 1
  notify(sim, app, lineage, { type: 'RENEWAL_EXTENDED' }, at)
  followOwner(sim, app, lineage, at)
}

function refund({ sim, app, lineage, transaction: named, at, body }: VerbCall): undefined {
  const transaction = ofOrder(app, lineage, body.order) ?? named
  if (transaction.revocation !== null) throw refuse('already_refunded', `${transaction.id} is refunded`, 409)
  const share =
    body.mode === 'percent'
      ? (body.percent ?? 100)
      : body.mode === 'quantity'
        ? quantityShare(transaction, body.quantity)
        : 100
  const isFull = share === 100
  transaction.revocation = {
    at,
    reason: 0,
    type: isFull ? 'REFUND_FULL' : 'REFUND_PRORATED',
    milliPercent: Math.round(share * 1000),
  }
  const { renewal } = lineage
  if (renewal !== null && transaction === latestOf(lineage) && renewal.status !== 'expired') {
    renewal.status = 'revoked'
    renewal.autoRenew = false
  }
  notify(sim, app, lineage, { type: 'REFUND', transaction }, at)
  followOwner(sim, app, lineage, at)
  return undefined
}

function quantityShare(transaction: Transaction, quantity = transaction.quantity): number {
  return (100 * Math.min(quantity, transaction.quantity)) / transaction.quantity
}

function setAutoRenew({ sim, app, lineage, at }: VerbCall, autoRenew: boolean): undefined {
  const renewal = demand(lineage, ['active', 'grace', 'retry'])
  renewal.autoRenew = autoRenew
  const subtype = autoRenew ? 'AUTO_RENEW_ENABLED' : 'AUTO_RENEW_DISABLED'
  notify(sim, app, lineage, { type: 'DID_CHANGE_RENEWAL_STATUS', subtype }, at)
  return undefined
}

function change({ sim, app, lineage, at, body }: VerbCall): Bought {
  demand(lineage, ['active', 'grace'])
  if (body.productId === undefined) throw refuse('invalid_request', 'productId: says what to change to')
  const product = productOf(app, body.productId)
  const purchase = { account: lineage.account, productId: product.productId, ...tokenOf(body) }
  return changePlan(sim, app, lineage, product, purchase, at)
}

function tokenOf({ accountToken }: VerbBody): { accountToken?: string } {
  return accountToken === undefined ? {} : { accountToken }
}

function ofOrder(app: AppleApp, lineage: Lineage, order: string | undefined): Transaction | undefined {
  if (order === undefined) return undefined
  const found = findTransaction(app, order)
  if (found?.lineage !== lineage) throw refuse('order_not_found', `${lineage.id} has no transaction ${order}`, 404)
  return found.transaction
}

function cut(lineage: Lineage, at: number): void {
  const latest = latestOf(lineage)
  latest.expiresAt = Math.min(latest.expiresAt ?? at, at)
}

function demand(lineage: Lineage, allowed: string[]) {
  const renewal = subscriptionOf(lineage)
  if (allowed.includes(renewal.status)) return renewal
  throw refuse('wrong_state', `${lineage.id} is ${renewal.status}; that takes one that is ${allowed.join(' or ')}`, 409)
}
