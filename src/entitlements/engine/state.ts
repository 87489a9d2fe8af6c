import type { Platform } from '../../tenancy/index.ts'
import type { Account, Cost, Feature, Ms, State } from '../types.ts'

/** The part of the catalogue that says which credit systems contain a Feature. */
export interface Pools {
  poolsOf: ReadonlyMap<number, { feature: Feature; cost: Cost }[]>
}

/** A customer's accounts by Feature, and what the clock said when they were read. */
export interface Standing {
  now: Ms
  accounts: ReadonlyMap<number, Account>
}

export interface Caller extends Standing {
  /** Null when no platform asks: every Feature applies. */
  platform: Platform | null
  entity: string | null
}

/**
 * What a decision about `feature` looks at. Its instant is the later of the clock and the last decision on any of the
 * accounts: a clock that went back undoes no expiry and no reset.
 */
export function stateOf({ poolsOf }: Pools, feature: Feature, { now, accounts, platform, entity }: Caller): State {
  const own = accounts.get(feature.id) ?? null
  const state: State = { now, feature, applies: applies(feature, platform), entity, own, pools: [] }
  for (const pool of poolsOf.get(feature.id) ?? []) {
    const account = accounts.get(pool.feature.id)
    if (account !== undefined) state.pools.push({ ...pool, account })
  }
  for (const account of accountsOf(state)) state.now = Math.max(state.now, account.lastAt)
  return state
}

function applies({ platforms }: Feature, platform: Platform | null): boolean {
  return platforms === null || platform === null || platforms.includes(platform)
}

/** The accounts that a decision may draw on, the Feature's own first. */
export function accountsOf({ own, pools }: State): Account[] {
  const accounts = pools.map((pool) => pool.account)
  return own === null ? accounts : [own, ...accounts]
}
