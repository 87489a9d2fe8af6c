import { playAccountToken } from '../../src/purchases/account-tokens.ts'
import { tokenKeyOf } from '../../src/purchases/google/chain.ts'

const dayMs = 24 * 3600_000
export const monthMs = 30 * dayMs

/** What happens to a subscription next; `days` says how long it takes, or when in the period it is. */
export interface Step {
  kind: 'renew' | 'grace' | 'hold' | 'cancel' | 'change' | 'void' | 'defer'
  days: number
}

/** From `at` on the token reads like this. */
interface Moment {
  at: number
  token: string
  body: object
}

/** One subscription of `ada` from its purchase until `end`, as Google Play would show it at any time. */
export interface History {
  moments: Moment[]
  /** In the order in which they replaced each other. */
  tokens: string[]
  voided: { orderId: string; at: number }[]
  begins: number
  /** What is paid, and not refunded or replaced, at the very end. */
  paidAtEnd: boolean
  /** Every order, and what it paid for. */
  orders: Map<string, { from: number; until: number }>
}

/** Builds the history of a chain of purchases. Pure. */
export function historyOf(
  name: string,
  steps: readonly Step[],
  { begins, end }: { begins: number; end: number },
): History {
  const history: History = { moments: [], tokens: [], voided: [], begins, paidAtEnd: false, orders: new Map() }
  let product = 'monthly'
  let token = `${name}-0`
  let started = begins
  let order = 0
  let until = begins + monthMs
  let at = begins
  let isOver = false
  let isVoided = false
  const orderId = () => `GPA.${name}..${order}`
  const iso = (ms: number) => new Date(ms).toISOString()

  const show = (state: string, when: number, shownUntil = until) => {
    const before = history.tokens.at(-2)
    const body = {
      ...{ subscriptionState: `SUBSCRIPTION_STATE_${state}`, startTime: iso(started), testPurchase: {} },
      externalAccountIdentifiers: { obfuscatedExternalAccountId: playAccountToken('ada') },
      ...(before === undefined ? {} : { linkedPurchaseToken: before }),
      lineItems: [
        {
          ...{ productId: product, expiryTime: iso(shownUntil), latestSuccessfulOrderId: orderId() },
          ...{ autoRenewingPlan: { autoRenewEnabled: state !== 'CANCELED' }, offerDetails: { basePlanId: 'base' } },
        },
      ],
    }
    history.moments.push({ at: when, token, body })
  }
  const pay = (from: number, to: number) => {
    until = to
    isVoided = false
    history.orders.set(orderId(), { from, until })
  }
  const renewAt = (when: number, to: number) => {
    order++
    pay(when, to)
    show('ACTIVE', when)
    at = when
  }

  history.tokens.push(token)
  pay(begins, until)
  show('ACTIVE', begins)
  for (const { kind, days } of steps) {
    if (isOver) break
    const within = Math.min(at + (days % 28) * dayMs + dayMs / 2, until - dayMs / 4)
    const atEnd = kind === 'renew' || kind === 'grace' || kind === 'hold'
    // What would happen after the end is not told.
    if (atEnd ? until >= end - 4 * dayMs : within <= at || within >= end - dayMs) continue
    switch (kind) {
      case 'renew':
        renewAt(until, until + monthMs)
        break
      case 'grace': {
        const due = until
        show('IN_GRACE_PERIOD', due, due + 3 * dayMs)
        renewAt(due + (1 + (days % 2)) * dayMs, due + monthMs)
        break
      }
      case 'hold': {
        const due = until
        show('ON_HOLD', due)
        const back = due + (1 + (days % 20)) * dayMs
        if (back >= end) isOver = true
        else renewAt(back, back + monthMs)
        break
      }
      case 'cancel':
        show('CANCELED', within)
        if (until <= end) show('EXPIRED', until)
        isOver = true
        break
      case 'change': {
        const old = token
        const oldMoment = history.moments.findLast((each) => each.token === old)
        token = `${name}-${history.tokens.length}`
        history.tokens.push(token)
        product = product === 'monthly' ? 'yearly' : 'monthly'
        started = within
        order++
        const paid = history.orders.get(`GPA.${name}..${order - 1}`)
        if (paid) paid.until = within
        pay(within, within + monthMs)
        show('ACTIVE', within)
        at = within
        // For a day both read active.
        const gone = { ...(oldMoment?.body as object), subscriptionState: 'SUBSCRIPTION_STATE_EXPIRED' }
        history.moments.push({ at: within + dayMs, token: old, body: gone })
        break
      }
      case 'void': {
        history.voided.push({ orderId: orderId(), at: within })
        const paid = history.orders.get(orderId())
        if (paid) paid.until = within
        isVoided = true
        at = within
        break
      }
      case 'defer': {
        if (isVoided) break
        until += (1 + (days % 10)) * dayMs
        const paid = history.orders.get(orderId())
        if (paid) paid.until = until
        show('ACTIVE', within)
        at = within
        break
      }
    }
  }
  while (!isOver && until <= end) renewAt(until, until + monthMs)
  history.paidAtEnd = until > end && !isVoided
  history.moments.sort((a, b) => a.at - b.at)
  return history
}

/** What a read of a token at an instant shows; null before it was sold. */
export function shownAt({ moments }: History, token: string, at: number): object | null {
  return moments.findLast((moment) => moment.token === token && moment.at <= at)?.body ?? null
}

export function chainOf({ tokens }: History, token: string) {
  const linked = tokens.slice(0, tokens.indexOf(token)).toReversed()
  return {
    rootKey: tokenKeyOf(tokens[0] ?? token),
    linked: linked.map((each) => ({ key: tokenKeyOf(each), token: each })),
  }
}
