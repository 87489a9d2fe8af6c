import type { Tx } from '../../db/pool.ts'
import { settleRowsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import {
  type EntityHash,
  eraseGrants,
  eraseNotes,
  eraseOperations,
  eraseRegistered,
  selectErasedAccounts,
} from './erase-store.ts'

/**
 * One slice of taking what names people out of the ledger of deleted customers: entity ids become keyed hashes, equal ones
 * equal hashes, and notes go. Movements, units and decisions stay, and so does what `verifyLedger` finds. True: nothing is
 * left.
 */
export function createLedgerEraser({ tombstoneKey }: { tombstoneKey: Buffer }) {
  return async (tx: Tx, scope: Scope, { customerIds }: { customerIds: string[] }): Promise<boolean> => {
    const hash: EntityHash = { key: tombstoneKey, scopeId: scope.scopeId }
    const accounts = await selectErasedAccounts(tx, scope, customerIds)
    await eraseRegistered(tx, hash, accounts)
    await eraseGrants(tx, hash, accounts)
    if ((await eraseNotes(tx, accounts, settleRowsMax)) === settleRowsMax) return false
    return (await eraseOperations(tx, hash, { customerIds, limit: settleRowsMax })) < settleRowsMax
  }
}
