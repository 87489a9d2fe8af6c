import type { Tx } from '../../db/pool.ts'
import { assert, must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import { applyChange } from '../engine/apply.ts'
import type { Account, Change, Grant, Ms, Units } from '../types.ts'
import { detailJson, type EntryDetail } from './entry-detail.ts'
import { changedAccess, tell } from './facts.ts'
import { grantOf } from './grant-row.ts'
import { advanceAccounts, selectClock } from './grants-store.ts'
import {
  type HeldAccount,
  insertMovements,
  lockAccountsById,
  type MovementRow,
  selectGrantsIn,
  selectPlaces,
  showDrained,
  updateMoved,
} from './movements-store.ts'
import { selectAccountsOfRef, selectGrantsOfRef } from './purchases-store.ts'
import { type RefillRow, writeRefills, writeRollover } from './usage-write-store.ts'

/** Accounts under their locks, with all grants that have not ended; entities are not read. */
export interface Held {
  /** No earlier than the last decision on any of them. Read after the locks. */
  now: Ms
  accounts: Account[]
}

/**
 * Locks the accounts in which these grants lie. A merge that moves grants between the look and the lock makes us look
 * again; once an account is locked no grant leaves it. Throws `service_unavailable` when merges keep moving them.
 */
export async function holdGrants(tx: Tx, scope: Scope, grantIds: bigint[]): Promise<Held> {
  for (let attempt = 0; attempt < 3; attempt++) {
    const before = await selectPlaces(tx, scope, grantIds)
    const ids = [...new Set(before.map((place) => place.account_id))]
    const locked = await lockAccountsById(tx, scope, ids)
    const after = await selectPlaces(tx, scope, grantIds)
    if (!after.every((place) => ids.includes(place.account_id))) continue
    const named = [...grantIds, ...after.flatMap((place) => place.rolled_from ?? [])]
    return loadHeld(tx, scope, locked, named)
  }
  throw refuse('service_unavailable')
}

/**
 * The same for all that a source of grants gave, by their ids, and for the accounts whose entities it may still give more: what
 * they get meanwhile is waited for, and is among them.
 */
export async function holdSource(tx: Tx, scope: Scope, ref: string): Promise<Held & { ids: bigint[] }> {
  for (let attempt = 0; attempt < 3; attempt++) {
    const before = await selectAccountsOfRef(tx, scope, ref)
    const locked = await lockAccountsById(tx, scope, before)
    const after = await selectAccountsOfRef(tx, scope, ref)
    if (!after.every((id) => before.includes(id))) continue
    const ids = await selectGrantsOfRef(tx, scope, ref)
    return { ids, ...(await loadHeld(tx, scope, locked, ids)) }
  }
  throw refuse('service_unavailable')
}

/** What locked accounts hold. `named` are grants to load though they are settled. */
export async function loadHeld(tx: Tx, scope: Scope, locked: HeldAccount[], named: bigint[] = []): Promise<Held> {
  const rows = await selectGrantsIn(
    tx,
    locked.map((account) => account.id),
    named,
  )
  const grants = rows.map((row) => grantOf(row, 0))
  const accounts = locked.map((row) => ({
    id: row.id,
    featureId: row.feature_id,
    used: row.used_total,
    entities: new Map(),
    grants: grants.filter((grant) => grant.accountId === row.id),
    lastAt: Number(row.last_at_ms),
    version: row.version,
  }))
  return { now: Math.max(await selectClock(tx, scope), ...accounts.map((account) => account.lastAt)), accounts }
}

export interface Movement extends EntryDetail {
  now: Ms
  operationId: string | null
}

/**
 * Writes what a command by hand changed in one held account, and makes the account that: entries of its next version,
 * grants, refills, rollover grants, and the facts that tell of it. The version rises, so that no spend decided before is
 * written after.
 */
export async function writeMovements(
  tx: Tx,
  scope: Scope,
  account: Account,
  changes: readonly Change[],
  { now, operationId, actor, note }: Movement,
): Promise<void> {
  const before = account.grants.map((grant) => ({ ...grant }))
  const made = new Map<bigint, bigint>()
  for (const change of changes) {
    if (change.kind !== 'rollover') continue
    made.set(change.grant.id, await writeRollover(tx.client, change))
  }
  for (const change of changes) applyChange(account, change)
  for (const grant of account.grants) grant.id = made.get(grant.id) ?? grant.id
  account.version++
  account.lastAt = now

  const rows = changes.map((change, line) => ({
    ...{ at: now, accountId: account.id, version: account.version, line, kind: change.kind },
    ...movementOf(change, made),
  }))
  const refills = refillsOf(account, changes, made, now)
  if (refills.length > 0) await writeRefills(tx.client, refills)
  await insertMovements(tx, scope, rows, { operationId, detail: detailJson({ actor, note }) })
  const moved = movedGrants(account, changes, made)
  const written = await updateMoved(tx, moved)
  assert(written.length === moved.length, 'every moved grant is written')
  if (changes.some(({ kind }) => kind === 'revoke' || kind === 'extend')) await showDrained(tx, account.id)
  await advanceAccounts(tx, [{ id: account.id, version: account.version, lastAt: now }])
  const happening = { accountId: account.id, version: account.version, at: now, operationId, granted: [], changes }
  await tell(tx, [{ ...happening, exhausted: false, access: changedAccess(before, account.grants, now) }])
}

/** By the number that PostgreSQL gave a grant where it had none yet. */
type Made = ReadonlyMap<bigint, bigint>

function movementOf(change: Change, made: Made): Pick<MovementRow, 'grantId' | 'period' | 'delta' | 'remaining'> {
  assert(change.kind !== 'used' && change.kind !== 'grant', 'nothing but a spend counts usage and opens grants')
  if (change.kind === 'rollover') {
    const { id, periodNo, amount } = change.grant
    return { grantId: made.get(id) ?? id, period: periodNo, delta: amount, remaining: amount }
  }
  const { grant, period, delta, remaining } = change
  return { grantId: made.get(grant) ?? grant, period, delta, remaining }
}

/** The period a grant was brought to guards its refill; a lapse always comes with one. */
function refillsOf(account: Account, changes: readonly Change[], made: Made, at: Ms): RefillRow[] {
  return changes.flatMap((change) => {
    if (change.kind !== 'lapse') return []
    const { id, periodNo } = grantIn(account, change.grant, made)
    return [{ grantId: id, periodNo, lapsed: -change.delta, rolled: change.rolled, at }]
  })
}

function movedGrants(
  account: Account,
  changes: readonly Change[],
  made: Made,
): { grant: Grant; uncollected: Units | null }[] {
  const moved = new Map<bigint, { grant: Grant; uncollected: Units | null }>()
  for (const change of changes) {
    if (change.kind === 'rollover' || change.kind === 'used' || change.kind === 'grant') continue
    const grant = grantIn(account, change.grant, made)
    moved.set(grant.id, { grant, uncollected: uncollectedBy(change) })
  }
  return [...moved.values()]
}

/** A refund that was taken back is collected again. */
function uncollectedBy(change: Change): Units | null {
  if (change.kind === 'revoke' || change.kind === 'shrink') return change.uncollected
  return change.kind === 'restore' ? 0n : null
}

function grantIn(account: Account, id: bigint, made: Made): Grant {
  return must(
    account.grants.find((grant) => grant.id === (made.get(id) ?? id)),
    'a command moves only grants it looked at',
  )
}
