import { unitsMax } from '../../kernel/limits.ts'
import type { Units } from '../types.ts'
import type { AuditedAccount, AuditedEntry, AuditedFeature, AuditedOperation, Standings } from './audit-rows.ts'
import { maxUnits, minUnits } from './units.ts'

/** From least to most: what is known of an amount. */
export interface Range {
  least: Units
  most: Units
}

export interface Paid extends Range {
  /** Why it cannot be what an operation paid, whatever the amount. */
  wrong: string | null
}

/**
 * The units of the Feature that an operation's draws pay for. A pool's charge is rounded up once, so a charge stands for
 * a range of units; where the cost changed since, for any up to `quantity`.
 */
export function paidUnits(
  draws: readonly AuditedEntry[],
  operation: AuditedOperation,
  {
    feature,
    own,
    accounts,
    costs,
  }: {
    feature: AuditedFeature
    own: AuditedAccount
    accounts: ReadonlyMap<bigint, AuditedAccount>
    costs: (system: number) => { cost: Standings['costs'][number] | undefined; scale: number }
  },
): Paid {
  const paid: Paid = { least: 0n, most: 0n, wrong: null }
  for (const [accountId, drawn] of Map.groupBy(draws, (entry) => entry.accountId)) {
    const charge = drawn.reduce((sum, entry) => sum - entry.delta, 0n)
    const account = accounts.get(accountId)
    const units =
      accountId === own.id
        ? ownUnits(charge, feature.scale)
        : poolUnits(charge, operation, account && costs(account.featureId))
    if (units === null) paid.wrong ??= `${charge} of account ${accountId}`
    paid.least += units?.least ?? 0n
    paid.most += units?.most ?? 0n
  }
  return paid
}

function ownUnits(charge: Units, scale: number): Range | null {
  const one = 10n ** BigInt(scale)
  return charge % one === 0n ? { least: charge / one, most: charge / one } : null
}

function poolUnits(
  charge: Units,
  { at, quantity }: AuditedOperation,
  terms: { cost: Standings['costs'][number] | undefined; scale: number } | undefined,
): Range | null {
  if (!terms) return null
  const { cost, scale } = terms
  if (!cost || at < cost.since) return { least: 1n, most: quantity }
  // charge = ceil(n · price / per), so n is above (charge − 1) · per / price and at most charge · per / price.
  const price = cost.credits * 10n ** BigInt(scale)
  const least = ((charge - 1n) * cost.per) / price + 1n
  const most = (charge * cost.per) / price
  return least <= most ? { least, most } : null
}

const jsonMax = BigInt(unitsMax)

/** What no decision answers, in words; null when the answer is one that the service gives. */
export function implausible(operation: AuditedOperation, held: Units): string | null {
  const { accepted, code, balance, unlimited, active, mode, quantity, featureType } = operation
  if (accepted !== (code === 'consumed')) return `accepted ${accepted} with ${code}`
  if (balance !== null && (balance < 0n || balance > jsonMax)) return `a balance of ${balance}`
  if (unlimited && !accepted) return 'a denial that is unlimited'
  const none = featureType === 'boolean' || unlimited
  if ((balance === null) !== none) return `a balance of ${balance}`
  if (code === 'feature_not_consumable') return featureType === 'boolean' ? null : `${code} of a ${featureType} Feature`
  const isActive = unlimited || (balance ?? 0n) >= 1n
  if (active !== isActive) return `active ${active} with a balance of ${balance}`
  if (code === 'insufficient_balance') {
    const fits = mode === 'consume' && (balance ?? 0n) >= quantity
    return fits ? `denied ${quantity} of ${balance}` : null
  }
  if (!accepted) return isActive ? `${code} with a balance of ${balance}` : null
  const least = minUnits(held, jsonMax)
  return !unlimited && (balance ?? 0n) < least ? `a balance of ${balance} where the payers still held ${held}` : null
}

/** What the paying grants of the Feature's own account hold after the draws, in whole units: they all count. */
export function heldAfter(draws: readonly AuditedEntry[], own: AuditedAccount, scale: number): Units {
  const last = new Map(
    draws.filter((entry) => entry.accountId === own.id).map((entry) => [entry.grantId, entry.remaining]),
  )
  return [...last.values()].reduce((sum, units) => sum + maxUnits(0n, units), 0n) / 10n ** BigInt(scale)
}
