import type { Pool } from '../../db/pool.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Platform, Scope } from '../../tenancy/index.ts'
import type { Catalogues } from '../catalogue/catalogue.ts'
import { type Balance, balanceOf } from '../engine/balance.ts'
import { type Standing, stateOf } from '../engine/state.ts'
import type { Account } from '../types.ts'
import { selectEntities } from './usage-store.ts'

export interface BalanceQuery {
  scope: Scope
  customerId: string
  /** Key of one Feature; null: every published one in which the customer has an account, directly or in a credit system. */
  feature: string | null
  entityId: string | null
  /** Only Features that apply to it; null: all. */
  platform: Platform | null
}

export interface BalanceServices {
  pool: Pool
  catalogues: Catalogues
  standing: (query: { scope: Scope; customerId: string }) => Promise<Standing>
}

/** What a customer may use now, by Feature key. Throws `feature_not_found` for a named Feature that is not published. */
export function createBalances({ pool, catalogues, standing }: BalanceServices) {
  return async ({ scope, customerId, feature, entityId, platform }: BalanceQuery): Promise<Balance[]> => {
    const catalogue = await catalogues.get(scope)
    const named = feature === null ? undefined : catalogue.published.get(feature)
    if (feature !== null && !named) throw refuse('feature_not_found', { param: 'feature' })
    const features = named ? [named] : [...catalogue.published.values()].sort((a, b) => (a.key < b.key ? -1 : 1))

    const { now, accounts } = await withCounters(pool, await standing({ scope, customerId }), entityId)
    return features
      .map((each) => stateOf(catalogue, each, { now, accounts, platform, entity: entityId }))
      .filter(({ applies, own, pools }) => applies && (named !== undefined || own !== null || pools.length > 0))
      .map(balanceOf)
  }
}

/** The standing is read without counters of entities: no decision about access needs them. */
async function withCounters(pool: Pool, { now, accounts }: Standing, entityId: string | null): Promise<Standing> {
  if (entityId === null || accounts.size === 0) return { now, accounts }
  const rows = await pool.connected((client) =>
    selectEntities(
      client,
      [...accounts.values()].map(({ id }) => ({ accountId: id, entityId })),
    ),
  )
  const used = new Map(
    rows.map((row) => [BigInt(row[0] ?? 0), { used: BigInt(row[2] ?? 0), registered: row[3] === 't' }]),
  )
  const counted = (account: Account): Account => {
    const counter = used.get(account.id)
    return counter ? { ...account, entities: new Map([[entityId, counter]]) } : account
  }
  return { now, accounts: new Map([...accounts].map(([featureId, account]) => [featureId, counted(account)])) }
}
