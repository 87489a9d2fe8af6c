import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { decideRevoke } from '../engine/revoke.ts'
import type { Account, Change, Grant, Ms } from '../types.ts'
import { holdGrants, writeMovements } from './movements.ts'
import { selectGrantsOfRef, updateTermsEnd } from './purchases-store.ts'

interface Why {
  /** For the ledger: what the store said. */
  note: string | null
}

/** Takes back at once what a source of grants gave; spent units stay spent. In the caller's transaction. */
export async function endPurchase(tx: Tx, scope: Scope, ref: string, why: Why): Promise<void> {
  const now = await move(tx, scope, ref, why, (account, grant, at) =>
    decideRevoke(account, grant.id, { now: at, at: null }),
  )
  await updateTermsEnd(tx, scope, ref, { at: now })
}

/**
 * Moves the end of what a source of grants gave, and until when it refills: forward for grace, leases and extensions, back
 * when they are over. Units don't move; grants that were taken back stay so. In the caller's transaction.
 */
export async function movePurchaseEnd(
  tx: Tx,
  scope: Scope,
  ref: string,
  { expiresAt, paidUntil, note }: { expiresAt: Ms | null; paidUntil: Ms | null } & Why,
): Promise<void> {
  await move(tx, scope, ref, { note }, (_, grant): readonly Change[] => {
    // No grant ends before it begins.
    const end = expiresAt === null ? null : Math.max(expiresAt, grant.effectiveAt + 1)
    if (grant.revokedAt !== null || (grant.expiresAt === end && grant.paidUntil === paidUntil)) return []
    const { accountId, id, periodNo, remaining } = grant
    const place = { account: accountId, grant: id, period: periodNo }
    return [{ kind: 'extend', ...place, delta: 0n, remaining, expiresAt: end, paidUntil }]
  })
  await updateTermsEnd(tx, scope, ref, { at: expiresAt, paidUntil })
}

/** Gives the instant, for what is not a grant yet. */
async function move(
  tx: Tx,
  scope: Scope,
  ref: string,
  { note }: Why,
  decide: (account: Account, grant: Grant, now: Ms) => readonly Change[],
): Promise<Ms> {
  const ids = await selectGrantsOfRef(tx, scope, ref)
  const { now, accounts } = await holdGrants(tx, scope, ids)
  for (const account of accounts) {
    for (const id of ids) {
      const grant = account.grants.find((each) => each.id === id)
      if (!grant) continue
      const changes = decide(account, grant, now)
      if (changes.length > 0)
        await writeMovements(tx, scope, account, changes, { now, operationId: null, actor: null, note })
    }
  }
  return now
}
