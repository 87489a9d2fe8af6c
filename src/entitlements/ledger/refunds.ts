import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { decideRestore, decideShrink } from '../engine/refund.ts'
import type { Account, Change, Ms } from '../types.ts'
import { holdSource, writeMovements } from './movements.ts'
import { type RefundedGrant, selectRefunded } from './refunds-store.ts'

/** A part of what was bought: `parts` of `of` equal ones. */
export interface RefundedPart {
  parts: number
  of: number
  /** For the ledger: what the store said. */
  note: string | null
}

/**
 * Takes back a part of what a source of grants gave, of each grant in proportion, as far as it is left there; the rest is
 * noted as uncollected. In the caller's transaction.
 */
export async function refundPart(tx: Tx, scope: Scope, ref: string, { parts, of, note }: RefundedPart): Promise<void> {
  await move(tx, scope, { ref, note }, (account, { id, amount, uncollected }, now) =>
    decideShrink(account, id, { units: (amount * BigInt(parts)) / BigInt(of), uncollected, now }),
  )
}

/** A refund was taken back: what it took, and was not spent, is there again. In the caller's transaction. */
export async function restorePurchase(tx: Tx, scope: Scope, ref: string, note: string | null): Promise<void> {
  await move(tx, scope, { ref, note }, (account, { id, taken }, now) =>
    decideRestore(account, id, { units: taken, now }),
  )
}

async function move(
  tx: Tx,
  scope: Scope,
  { ref, note }: { ref: string; note: string | null },
  decide: (account: Account, grant: RefundedGrant, now: Ms) => readonly Change[],
): Promise<void> {
  const { now, accounts } = await holdSource(tx, scope, ref)
  // Under the locks: what was taken before they were held is known by now.
  const grants = await selectRefunded(tx, scope, ref)
  for (const account of accounts) {
    for (const grant of grants) {
      if (!account.grants.some(({ id }) => id === grant.id)) continue
      const changes = decide(account, grant, now)
      if (changes.length > 0)
        await writeMovements(tx, scope, account, changes, { now, operationId: null, actor: null, note })
    }
  }
}
