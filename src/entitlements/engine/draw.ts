import { assert } from '../../kernel/assert.ts'
import type { Account, Grant, Ms, PoolState, State, Units } from '../types.ts'
import { live, visible } from './grant.ts'
import { order, orderPools } from './order.ts'
import { minUnits } from './units.ts'

export interface Available {
  /** At least one own or pool grant is live, drained or not. */
  live: boolean
  unlimited: boolean
  /** Finite units of the requested Feature, exact and uncapped. */
  units: Units
}

/** What a settled state offers. */
export function available(state: State): Available {
  const { now, entity, own, pools, feature } = state
  const offer: Available = { live: false, unlimited: false, units: 0n }
  if (own !== null) offer.units = wholeUnits(stored(own, entity, now, offer), feature.scale)
  for (const pool of pools) offer.units += unitsFor(stored(pool.account, entity, now, offer), pool)
  return offer
}

/** One debit of one grant, in stored units. */
export interface Draw {
  account: Account
  grant: Grant
  units: Units
}

export interface Plan {
  /** In draw order. */
  draws: Draw[]
  /** The units that `available` will find once the draws are made. */
  left: Units
}

/**
 * How a settled state without a live unlimited grant pays for `need` units: own units first, pools for the shortfall.
 * Null when it cannot: nothing is ever paid in part.
 */
export function planDraw(state: State, need: Units): Plan | null {
  const { now, entity, own, pools, feature } = state
  const plan: Plan = { draws: [], left: 0n }
  let short = need
  if (own !== null) {
    const held = stored(own, entity, now)
    const units = minUnits(short, wholeUnits(held, feature.scale))
    const charge = units * tenTo(feature.scale)
    pay(plan.draws, own, state, charge)
    plan.left += wholeUnits(held - charge, feature.scale)
    short -= units
  }
  for (const pool of orderPools(pools, entity, now)) {
    const held = stored(pool.account, entity, now)
    const units = minUnits(short, unitsFor(held, pool))
    const charge = chargeFor(units, pool)
    pay(plan.draws, pool.account, state, charge)
    plan.left += unitsFor(held - charge, pool)
    short -= units
  }
  return short === 0n ? plan : null
}

/** Debits `charge` stored units from the account's grants in draw order. */
function pay(draws: Draw[], account: Account, { entity, now }: State, charge: Units): void {
  if (charge === 0n) return
  let due = charge
  for (const grant of order(account.grants, entity, now)) {
    const units = minUnits(due, grant.remaining)
    if (units > 0n) draws.push({ account, grant, units })
    due -= units
  }
  assert(due === 0n, 'the drawn total is the required cost')
}

/** Stored units of the account's live visible finite grants. Notes in `offer` what else it meets. */
function stored(account: Account, entity: string | null, t: Ms, offer?: Available): Units {
  let units = 0n
  for (const grant of account.grants) {
    if (!live(grant, t) || !visible(grant, entity)) continue
    if (!grant.unlimited) units += grant.remaining
    if (offer === undefined) continue
    offer.live = true
    offer.unlimited ||= grant.unlimited
  }
  return units
}

/** A credit system asked directly is answered in whole credits. */
function wholeUnits(stored: Units, scale: number): Units {
  return scale === 0 ? stored : stored / tenTo(scale)
}

/** The most member units that `held` stored credits pay for. */
function unitsFor(held: Units, { cost, feature }: PoolState): Units {
  return (held * cost.per) / (cost.credits * tenTo(feature.scale))
}

/** Rounded up once, on the total: n times one unit would drift. */
function chargeFor(units: Units, { cost, feature }: PoolState): Units {
  return (units * cost.credits * tenTo(feature.scale) + cost.per - 1n) / cost.per
}

const powers = [1n, 10n, 100n, 1_000n, 10_000n, 100_000n, 1_000_000n]

function tenTo(scale: number): bigint {
  const power = powers[scale]
  assert(power !== undefined, 'a scale is 0 to 6')
  return power
}
