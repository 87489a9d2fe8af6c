import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { decideMerge } from '../engine/merge.ts'
import type { Account, Grant, Ms } from '../types.ts'
import { changedAccess, type Happening, tell } from './facts.ts'
import { grantOf } from './grant-row.ts'
import { selectClock } from './grants-store.ts'
import {
  closeMerged,
  lockBoth,
  type MergingAccount,
  moveEntityTerms,
  moveGrants,
  openAccount,
  selectAllEntities,
  writeMerged,
  writeMergedEntities,
} from './merge-store.ts'
import { selectGrantsIn } from './movements-store.ts'

export interface CustomerMerge {
  sourceCustomerId: string
  targetCustomerId: string
}

/** What a split needs to give back. Ids as text, because it is kept as JSON. */
export type MovedAccount = {
  featureId: number
  source: string
  target: string
  grants: string[]
  /** Of entity_terms. */
  terms: string[]
  /** Accounts that had been merged into the source before. */
  accounts: string[]
}

/**
 * Joins the standings of merged customers, in the transaction of the merge: grants and counters move, units and counters
 * are conserved, and saved operations keep replaying because both ids resolve to the survivor.
 */
export async function mergeAccounts(tx: Tx, scope: Scope, merges: CustomerMerge[]): Promise<MovedAccount[][]> {
  const moved: MovedAccount[][] = []
  for (const merge of merges) moved.push(await mergeOne(tx, scope, merge))
  return moved
}

async function mergeOne(
  tx: Tx,
  scope: Scope,
  { sourceCustomerId, targetCustomerId }: CustomerMerge,
): Promise<MovedAccount[]> {
  const rows = await lockBoth(tx, scope, [sourceCustomerId, targetCustomerId])
  const targets = new Map(
    rows.filter((row) => row.customer_id === targetCustomerId).map((row) => [row.feature_id, row]),
  )
  const sources = rows.filter((row) => row.customer_id === sourceCustomerId)
  if (sources.length === 0) return []
  const grants = (
    await selectGrantsIn(
      tx,
      rows.map(({ id }) => id),
      [],
    )
  ).map((row) => grantOf(row, 0))
  const clock = await selectClock(tx, scope)
  const moved: MovedAccount[] = []
  const happenings: Happening[] = []
  for (const source of sources) {
    // Also where the target has none: an account stays the one that its customer's operations were decided on.
    const target = targets.get(source.feature_id) ?? (await openAccount(tx, scope, targetCustomerId, source.feature_id))
    moved.push(await joinAccounts(tx, source, target))
    happenings.push(joining(source, target, grants, clock))
  }
  await tell(tx, happenings)
  return moved
}

/** To the customer that goes on, all that the other one had is new. */
function joining(source: MergingAccount, target: MergingAccount | undefined, grants: Grant[], clock: Ms): Happening {
  const { id, version } = target ?? source
  const before = target ? grants.filter(({ accountId }) => accountId === target.id) : []
  const after = [...before, ...grants.filter(({ accountId }) => accountId === source.id)]
  const at = Math.max(clock, Number(source.last_at_ms), Number(target?.last_at_ms ?? 0))
  const nothing = { operationId: null, granted: [], changes: [], exhausted: false }
  return { accountId: id, version: version + 1n, at, ...nothing, access: changedAccess(before, after, at) }
}

async function joinAccounts(tx: Tx, source: MergingAccount, target: MergingAccount): Promise<MovedAccount> {
  const outcome = decideMerge(await accountOf(tx, source), await accountOf(tx, target))
  const grants = await moveGrants(tx, source.id, target.id)
  const terms = await moveEntityTerms(tx, source.id, target.id)
  await writeMerged(tx, target.id, outcome)
  if (outcome.entities.length > 0) {
    await writeMergedEntities(tx, { source: source.id, target: target.id }, outcome.entities)
  }
  const accounts = await closeMerged(tx, source.id, target.id)
  return {
    featureId: source.feature_id,
    source: String(source.id),
    target: String(target.id),
    ...{ grants: grants.map(String), terms: terms.map(String), accounts: accounts.map(String) },
  }
}

/** Counters and clock; the grants move as rows, without being read. */
async function accountOf(tx: Tx, row: MergingAccount): Promise<Account> {
  const entities = await selectAllEntities(tx, row.id)
  return {
    id: row.id,
    featureId: row.feature_id,
    used: row.used_total,
    entities: new Map(
      entities.map((entity) => [entity.entity_id, { used: entity.used_total, registered: entity.registered }]),
    ),
    grants: [],
    lastAt: Number(row.last_at_ms),
    version: row.version,
  }
}
