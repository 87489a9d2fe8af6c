import type { Tx } from '../../db/pool.ts'
import { assert, must } from '../../kernel/assert.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Grant, Ms } from '../types.ts'
import { changedAccess, type Happening, tell } from './facts.ts'
import { grantOf } from './grant-row.ts'
import { selectClock } from './grants-store.ts'
import type { MovedAccount } from './merge-accounts.ts'
import { lockBoth, type MergingAccount, openAccount } from './merge-store.ts'
import { selectGrantsIn } from './movements-store.ts'
import {
  type GrantOrigins,
  moveBack,
  reopenAccount,
  selectGrantOrigins,
  selectGrantsSince,
  selectTermRefs,
  splitEntities,
  takeFromTarget,
} from './split-store.ts'

/** A merge taken back; see `CustomerSplit` of customers. */
export interface AccountsSplit {
  sourceCustomerId: string
  targetCustomerId: string
  /** Unix milliseconds. */
  mergedAt: number
  how: 'join' | 'rename' | 'add'
  /** What `mergeAccounts` gave. */
  moved: unknown
}

/**
 * Gives back what came with the source, in the transaction of the split: its grants with what is unspent of them, those that
 * followed from them since, and the counters that it brought. What was spent since stays counted with the target.
 */
export async function splitAccounts(tx: Tx, scope: Scope, split: AccountsSplit): Promise<void> {
  if (split.how === 'add') return
  const { sourceCustomerId, targetCustomerId } = split
  const rows = await lockBoth(tx, scope, [sourceCustomerId, targetCustomerId])
  const before = await grantsIn(tx, rows)
  const happenings: Happening[] = []
  const clock = await selectClock(tx, scope)
  for (const target of rows.filter((row) => row.customer_id === targetCustomerId)) {
    const source =
      split.how === 'join'
        ? await rejoinSource(tx, rows, target, movedOf(split.moved))
        : await followSource(tx, scope, target, split)
    if (source === null) continue
    const after = await grantsIn(tx, [source, target])
    for (const account of [source, target]) happenings.push(leaving(account, before, after, clock))
  }
  await tell(tx, happenings)
}

/** Each of the two records has its account again, as it was before the merge. */
async function rejoinSource(
  tx: Tx,
  rows: MergingAccount[],
  target: MergingAccount,
  moved: MovedAccount[],
): Promise<MergingAccount | null> {
  const part = moved.find((each) => each.target === String(target.id))
  if (!part) return null
  const source = must(
    rows.find((row) => String(row.id) === part.source),
    'the account of a merged record stays',
  )
  const terms = part.terms.map(BigInt)
  const origins = await selectGrantOrigins(tx, target.id)
  const grants = grantsFrom(origins, { grants: part.grants.map(BigInt), refs: await selectTermRefs(tx, terms) })
  await moveBack(tx, { source: source.id, target: target.id }, { grants, terms })
  await splitEntities(tx, { source: source.id, target: target.id })
  assert(target.used_total >= source.used_total, 'a merge adds the counter of the source')
  await takeFromTarget(tx, target.id, source.used_total)
  await reopenAccount(tx, { source: source.id, target: target.id }, part.accounts.map(BigInt))
  return source
}

/** The source's record, with all its history, is the target's now: what it was given until then follows the source. */
async function followSource(
  tx: Tx,
  scope: Scope,
  target: MergingAccount,
  { sourceCustomerId, mergedAt }: AccountsSplit,
): Promise<MergingAccount | null> {
  const had = await selectGrantsSince(tx, target.id, { until: mergedAt })
  if (had.length === 0) return null
  const origins = await selectGrantOrigins(tx, target.id)
  const source = await openAccount(tx, scope, sourceCustomerId, target.feature_id)
  await moveBack(
    tx,
    { source: source.id, target: target.id },
    { grants: grantsFrom(origins, { grants: had, refs: [] }), terms: [] },
  )
  await takeFromTarget(tx, target.id, 0n)
  await reopenAccount(tx, { source: source.id, target: target.id }, [])
  return source
}

/** Those that came, with the rollovers of theirs and what their Products gave to entities since. */
function grantsFrom(all: GrantOrigins[], came: { grants: bigint[]; refs: string[] }): bigint[] {
  const ids = new Set(came.grants)
  const refs = new Set(came.refs)
  // A rollover grant is younger than what it was rolled from.
  for (const { id, rolled_from: from, source_ref: ref } of all.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    if (refs.has(ref) || (from !== null && ids.has(from))) ids.add(id)
  }
  return all.filter(({ id }) => ids.has(id)).map(({ id }) => id)
}

async function grantsIn(tx: Tx, accounts: MergingAccount[]): Promise<Grant[]> {
  const ids = accounts.map(({ id }) => id)
  return (await selectGrantsIn(tx, ids, [])).map((row) => grantOf(row, 0))
}

function leaving({ id, version, last_at_ms: last }: MergingAccount, before: Grant[], after: Grant[], clock: Ms) {
  const at = Math.max(clock, Number(last))
  const of = (grants: Grant[]) => grants.filter(({ accountId }) => accountId === id)
  const nothing = { operationId: null, granted: [], changes: [], exhausted: false }
  return { accountId: id, version: version + 1n, at, ...nothing, access: changedAccess(of(before), of(after), at) }
}

/** As `mergeAccounts` gave it; what was kept before grants were noted moves nothing back. */
function movedOf(moved: unknown): MovedAccount[] {
  if (!Array.isArray(moved)) return []
  return (moved as MovedAccount[]).filter(({ grants }) => Array.isArray(grants)) // kept by the journal, written by us
}
