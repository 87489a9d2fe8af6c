import type pg from 'pg'
import { coalesce } from '../db/batch.ts'
import { isConnectionLoss, type Pool, unavailable } from '../db/pool.ts'
import type { RawRow } from '../db/raw.ts'
import type { Clock } from '../kernel/clock.ts'
import { Refusal, refuse } from '../kernel/errors.ts'
import type { AppScope } from '../tenancy/index.ts'
import { accessWithoutCustomer, decideAccess } from './access.ts'
import { type AccountQuestion, selectAccess, selectDeleted } from './access-store.ts'
import type { Catalogue, Catalogues } from './catalogue.ts'
import { featureIds } from './consume.ts'
import { grantOf } from './grant-row.ts'
import { stateOf } from './state.ts'
import type { AccessDecision, Account, Feature, FeatureType } from './types.ts'

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
  const one = coalesce<AccessQuery, AccessAnswer | Refusal>({
    run: (queries) => options.pool.connected((client) => checkBatch(options, client, queries)),
    lanes: 2,
    itemsMax: 256,
    waitingMax: 20_000,
    waitMsMax: 2000,
    now: options.clock.now,
    splitOn: (error) => !(error instanceof Refusal) && !isConnectionLoss(error),
    overloaded: 'billing_unavailable',
  })
  return async (query) => {
    try {
      const answer = await one(query)
      if (answer instanceof Refusal) throw answer
      return answer
    } catch (error) {
      throw unavailable(error, 'billing_unavailable')
    }
  }
}

interface Slot {
  query: AccessQuery
  catalogue: Catalogue
  feature: Feature | undefined
  known: boolean
  now: number
  accounts: Map<number, Account>
}

async function checkBatch(
  options: CheckOptions,
  client: pg.PoolClient,
  queries: AccessQuery[],
): Promise<(AccessAnswer | Refusal)[]> {
  const slots: Slot[] = []
  const questions: AccountQuestion[] = []
  for (const [n, query] of queries.entries()) {
    const { scope, distinctId } = query
    const catalogue = options.catalogues.current(scope) ?? (await options.catalogues.load(scope))
    const feature = catalogue.published.get(query.featureKey)
    slots.push({ query, catalogue, feature, known: false, now: 0, accounts: new Map() })
    for (const featureId of featureIds(catalogue, feature)) {
      questions.push({ n, scopeId: scope.scopeId, distinctId, featureId })
    }
  }
  const rows = await selectAccess(client, questions)
  for (const row of rows) readRow(slots, row)
  const deleted = await deletedAmong(options, client, slots)
  return slots.map((slot) => answer(slot, deleted.has(slot)))
}

function readRow(slots: Slot[], row: RawRow): void {
  const slot = slots[Number(row[0])]
  if (!slot) return
  slot.known = row[1] !== null
  slot.now = Number(row[2])
  if (row[4] === null) return
  const featureId = Number(row[3])
  let account = slot.accounts.get(featureId)
  if (!account) {
    const lastAt = Number(row[4])
    account = { id: 0n, featureId, used: 0n, entities: new Map(), grants: [], lastAt, version: 0n }
    slot.accounts.set(featureId, account)
  }
  if (row[5] !== null) account.grants.push(grantOf(row, 5))
}

async function deletedAmong(options: CheckOptions, client: pg.PoolClient, slots: Slot[]): Promise<Set<Slot>> {
  const unknown = slots.filter((slot) => !slot.known)
  if (unknown.length === 0) return new Set()
  const ids = unknown.map(({ query }) => ({ scopeId: query.scope.scopeId, distinctId: query.distinctId }))
  const deleted = await selectDeleted(client, ids, options.tombstoneKey)
  return new Set(unknown.filter((_, i) => deleted.has(i)))
}

function answer(slot: Slot, deleted: boolean): AccessAnswer | Refusal {
  const { query, catalogue, feature, now, accounts } = slot
  if (deleted) return refuse('customer_deleted')
  if (!feature) return refuse('feature_not_found', { details: { featureId: query.featureKey } })
  if (!slot.known) return { ...accessWithoutCustomer(feature.type), type: feature.type }
  const { scope, entityId } = query
  const state = stateOf(catalogue, feature, { platform: scope.platform, entity: entityId, now, accounts })
  return { ...decideAccess(state, query.required), type: feature.type }
}
