import type { Cycle, Feature, Grant, Ms, State, Units } from '../types.ts'
import { available } from './draw.ts'
import { nextReset } from './grant.ts'
import { order, orderPools } from './order.ts'
import { settled } from './settle.ts'
import { jsonUnits } from './units.ts'
import { counter, isActive } from './usage.ts'

/** A customer's standing with one Feature, for one entity or without, as the workspace sees it. */
export interface Balance {
  feature: Feature
  entityId: string | null
  /** Something is live, be it drained. */
  live: boolean
  /** A check for one unit; of a boolean Feature, live access. */
  allowed: boolean
  unlimited: boolean
  /** As an access decision gives it: capped at 2^53 − 1; null when unlimited or boolean. */
  balance: number | null
  /** Exact own credits in decimals, of a credit system only. */
  credits: string | null
  used: Units
  /** The next reset among the grants. */
  nextResetAt: Ms | null
  /** The cycle of the grant that resets next. */
  interval: Pick<Cycle, 'unit' | 'count'> | null
  /** Live grants in draw order: what would be spent next. */
  grants: BalanceGrant[]
}

export interface BalanceGrant {
  /** Whose units it holds: the Feature itself or a credit system that contains it. */
  feature: Feature
  /** As of now: resets that are not written yet are done. */
  grant: Grant
  nextResetAt: Ms | null
}

/** The balance of the state's Feature and entity, whatever platform asks. Changes nothing. */
export function balanceOf(state: State): Balance {
  const current = settled(state)
  const { feature, entity, own } = current
  const offer = available(current)
  const isBoolean = feature.type === 'boolean'
  const grants = drawOrder(current)
  const next = nextToReset(grants)
  return {
    feature,
    entityId: entity,
    live: offer.live,
    allowed: isBoolean ? offer.live : offer.live && isActive(offer),
    unlimited: offer.unlimited && !isBoolean,
    balance: isBoolean || offer.unlimited ? null : jsonUnits(offer.units),
    credits: feature.type === 'creditSystem' && own !== null ? decimal(sum(grants), feature.scale) : null,
    used: counter(current),
    nextResetAt: next?.nextResetAt ?? null,
    interval: next?.grant.cycle ? { unit: next.grant.cycle.unit, count: next.grant.cycle.count } : null,
    grants,
  }
}

/** Own grants, then those of the pools; whatever is unlimited comes before all that is counted. */
function drawOrder({ feature, own, pools, entity, now }: State): BalanceGrant[] {
  const accounts = orderPools(pools, entity, now).map((pool) => ({ feature: pool.feature, account: pool.account }))
  if (own !== null) accounts.unshift({ feature, account: own })
  return accounts
    .flatMap(({ feature, account }) => order(account.grants, entity, now).map((grant) => ({ feature, grant })))
    .map((entry) => ({ ...entry, nextResetAt: nextReset(entry.grant, now) }))
    .sort((a, b) => Number(b.grant.unlimited) - Number(a.grant.unlimited)) // stable
}

function nextToReset(grants: BalanceGrant[]): BalanceGrant | null {
  return grants.reduce<BalanceGrant | null>((first, entry) => {
    if (entry.nextResetAt === null) return first
    return first === null || entry.nextResetAt < (first.nextResetAt ?? 0) ? entry : first
  }, null)
}

function sum(grants: BalanceGrant[]): Units {
  return grants.reduce((total, { grant }) => total + (grant.unlimited ? 0n : grant.remaining), 0n)
}

/** Stored units as a decimal number: 1234500 at scale 6 is 1.2345. */
export function decimal(stored: Units, scale: number): string {
  if (scale === 0) return stored.toString()
  const digits = stored.toString().padStart(scale + 1, '0')
  return `${digits.slice(0, -scale)}.${digits.slice(-scale)}`.replace(/\.?0+$/, '')
}
