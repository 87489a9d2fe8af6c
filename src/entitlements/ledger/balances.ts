import type { Pool } from '../../db/pool.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Platform, Scope } from '../../tenancy/index.ts'
import type { Catalogue, Catalogues } from '../catalogue/catalogue.ts'
import { type Balance, balanceOf } from '../engine/balance.ts'
import { type Standing, stateOf } from '../engine/state.ts'
import type { Account } from '../types.ts'
import { addOffer } from './offer-row.ts'
import { selectOffersOf } from './state-store.ts'
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

    const whole = await standing({ scope, customerId })
    const { now, accounts } = entityId === null ? whole : await forEntity(pool, catalogue, whole, entityId)
    return features
      .map((each) => stateOf(catalogue, each, { now, accounts, platform, entity: entityId }))
      .filter(({ applies, own, pools }) => applies && (named !== undefined || own !== null || pools.length > 0))
      .map(balanceOf)
  }
}

/** The standing is read without counters of entities and without offers: a profile needs neither. */
async function forEntity(
  pool: Pool,
  { byId }: Catalogue,
  { now, accounts }: Standing,
  entityId: string,
): Promise<Standing> {
  const ids = [...accounts.values()].map(({ id }) => id)
  const [counters, offers] = await pool.connected(async (client) => [
    await selectEntities(
      client,
      ids.map((accountId) => ({ accountId, entityId })),
    ),
    await selectOffersOf(client, ids, entityId),
  ])
  const seen = new Map<number, Account>()
  for (const [featureId, account] of accounts) {
    const own: Account = { ...account, entities: new Map() }
    for (const row of counters.filter(([id]) => BigInt(id ?? 0) === own.id)) {
      own.entities.set(entityId, { used: BigInt(row[2] ?? 0), registered: row[3] === 't' })
    }
    const feature = byId.get(featureId)
    if (feature) for (const row of offers) if (BigInt(row[1] ?? 0) === own.id) addOffer(own, row, feature, entityId)
    seen.set(featureId, own)
  }
  return { now, accounts: seen }
}
