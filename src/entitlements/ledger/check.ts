import type pg from 'pg'
import type { Pool } from '../../db/pool.ts'
import { pipeline } from '../../db/raw.ts'
import { verb } from '../../db/verb.ts'
import { must } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Refusal, refuse } from '../../kernel/errors.ts'
import type { AppScope } from '../../tenancy/index.ts'
import type { Catalogues } from '../catalogue/catalogue.ts'
import { accessWithoutCustomer, decideAccess } from '../engine/access.ts'
import { stateOf } from '../engine/state.ts'
import type { AccessDecision, FeatureType } from '../types.ts'
import { type Holder, type Inquiry, loadState } from './load-state.ts'
import { selectMoment } from './state-store.ts'

/** One `/entitled`, checked at the edge. */
export interface AccessQuery {
  scope: AppScope
  distinctId: string
  featureKey: string
  /** 1 to 2^53 − 1. */
  required: bigint
  entityId: string | null
}

export interface AccessAnswer extends AccessDecision {
  type: FeatureType
}

export interface CheckOptions {
  /** Pipelined connections with the ledger's settings. */
  pool: Pool
  catalogues: Catalogues
  tombstoneKey: Buffer
  clock: Clock
}

/**
 * Says whether a consume of the same units by the same caller would be accepted now. Writes nothing, locks nothing.
 * Throws `customer_deleted`, `feature_not_found`, and `billing_unavailable` when it can't decide.
 */
export function createCheck(options: CheckOptions): (query: AccessQuery) => Promise<AccessAnswer> {
  return verb<AccessQuery, AccessAnswer>({
    run: (queries) => options.pool.connected((client) => checkBatch(options, client, queries)),
    lanes: 2,
    itemsMax: 256,
    waitingMax: 20_000,
    waitMsMax: 2000,
    now: () => options.clock.now(),
    overloaded: 'billing_unavailable',
  })
}

async function checkBatch(
  { catalogues, tombstoneKey }: CheckOptions,
  client: pg.PoolClient,
  queries: AccessQuery[],
): Promise<(AccessAnswer | Refusal)[]> {
  const inquiries: Inquiry[] = []
  for (const { scope, distinctId, entityId, featureKey } of queries) {
    const catalogue = catalogues.current(scope) ?? (await catalogues.load(scope))
    inquiries.push({ scope, distinctId, entityId, catalogue, feature: catalogue.published.get(featureKey) })
  }
  const [{ holders }, { now }] = await pipeline(client, () => [
    loadState(client, inquiries, tombstoneKey),
    selectMoment(client, []),
  ])
  return queries.map((query, i) =>
    decide(query, must(inquiries[i], 'one for each'), must(holders[i], 'one for each'), now),
  )
}

function decide(query: AccessQuery, inquiry: Inquiry, holder: Holder, now: number): AccessAnswer | Refusal {
  const { catalogue, feature, entityId } = inquiry
  if (holder.deleted) return refuse('customer_deleted')
  if (!feature) return refuse('feature_not_found', { details: { featureId: query.featureKey } })
  if (holder.customerId === undefined) return { ...accessWithoutCustomer(feature.type), type: feature.type }
  const { platform } = query.scope
  const at = now + catalogue.clockOffsetMs
  const state = stateOf(catalogue, feature, { now: at, accounts: holder.accounts, platform, entity: entityId })
  return { ...decideAccess(state, query.required), type: feature.type }
}
