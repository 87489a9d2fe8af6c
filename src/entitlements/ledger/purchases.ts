import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { decideRevoke } from '../engine/revoke.ts'
import type { Account, Change, Grant, Ms } from '../types.ts'
import { advanceAccounts } from './grants-store.ts'
import { holdSource, writeMovements } from './movements.ts'
import { updateTermsEnd } from './purchases-store.ts'

interface Why {
  /** For the ledger: what the store said. */
  note: string | null
}

/** Takes back at once what a source of grants gave; spent units stay spent. In the caller's transaction. */
export async function endPurchase(tx: Tx, scope: Scope, ref: string, why: Why): Promise<void> {
  const held = await holdSource(tx, scope, ref)
  await move(tx, scope, held, why, (account, grant) => decideRevoke(account, grant.id, { now: held.now, at: null }))
  await moveTerms(tx, scope, ref, held, { at: held.now })
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
  const held = await holdSource(tx, scope, ref)
  await move(tx, scope, held, { note }, (_, grant): readonly Change[] => {
    // No grant ends before it begins.
    const end = expiresAt === null ? null : Math.max(expiresAt, grant.effectiveAt + 1)
    if (grant.revokedAt !== null || (grant.expiresAt === end && grant.paidUntil === paidUntil)) return []
    const { accountId, id, periodNo, remaining } = grant
    const place = { account: accountId, grant: id, period: periodNo }
    return [{ kind: 'extend', ...place, delta: 0n, remaining, expiresAt: end, paidUntil }]
  })
  await moveTerms(tx, scope, ref, held, { at: expiresAt, paidUntil })
}

type Source = Awaited<ReturnType<typeof holdSource>>

async function move(
  tx: Tx,
  scope: Scope,
  { ids, now, accounts }: Source,
  { note }: Why,
  decide: (account: Account, grant: Grant) => readonly Change[],
): Promise<void> {
  for (const account of accounts) {
    for (const id of ids) {
      const grant = account.grants.find((each) => each.id === id)
      if (!grant) continue
      const changes = decide(account, grant)
      if (changes.length > 0)
        await writeMovements(tx, scope, account, changes, { now, operationId: null, actor: null, note })
    }
  }
}

/** What is not a grant yet. The version rises, so that no spend decided before makes one afterwards by what was offered then. */
async function moveTerms(
  tx: Tx,
  scope: Scope,
  ref: string,
  { now, accounts }: Source,
  ends: { at: Ms | null; paidUntil?: Ms | null },
): Promise<void> {
  const offering = await updateTermsEnd(tx, scope, ref, ends)
  const later = accounts.filter(({ id }) => offering.includes(id))
  await advanceAccounts(
    tx,
    later.map(({ id, version }) => ({ id, version: version + 1n, lastAt: now })),
  )
}
