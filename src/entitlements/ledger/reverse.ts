import type { Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import type { Scope } from '../../tenancy/index.ts'
import { decideReverse, type Reversal } from '../engine/reverse.ts'
import type { EntryDetail } from './entry-detail.ts'
import { selectClock } from './grants-store.ts'
import { holdGrants, writeMovements } from './movements.ts'
import { getOperation, type OperationRecord } from './operations.ts'
import { insertReversal } from './operations-store.ts'
import { reversalJson, type SavedReversal } from './saved-reversal.ts'

export interface Reversing extends EntryDetail {
  operationId: string
  /** Whose operation it must be. A merged record stands for its survivor, on both sides. */
  customerId: string
}

/**
 * Gives the units of an accepted operation back to the grants that paid, in the caller's transaction, once: a repetition
 * gets the saved answer. Counters stay, and so does the saved decision. Throws `not_found` also for another customer's
 * operation, `conflict` for a denied one.
 */
export async function reverseOperation(
  tx: Tx,
  scope: Scope,
  { operationId, customerId, actor, note }: Reversing,
): Promise<{ operation: OperationRecord; reversal: SavedReversal; replay: boolean }> {
  const operation = await getOperation(tx.client, [scope], operationId)
  if (operation.customerId !== customerId) throw refuse('not_found')
  if (operation.reversal) return { operation, reversal: operation.reversal, replay: true }
  if (!operation.accepted) {
    throw refuse('conflict', { param: 'operation_id', message: 'The operation was denied: it spent nothing.' })
  }

  const { now, accounts } = await holdPayers(tx, scope, operation)
  const payments = operation.paid.map(({ grantId, ...part }) => ({ ...part, grant: grantId }))
  const decided = decideReverse(accounts, payments, { entity: operation.entityId, now })
  const reversal = { id: newId('rev'), ...namedParts(operation, decided), occurredAt: now, actor, note }

  // The row is the guard: whoever waited for it, or for the accounts, finds what the other one saved.
  const isFirst = await insertReversal(tx.client, scope, { operationId, at: now, result: reversalJson(reversal) })
  if (!isFirst) {
    const after = await getOperation(tx.client, [scope], operationId)
    return { operation: after, reversal: must(after.reversal, 'it was just met'), replay: true }
  }
  for (const account of accounts) {
    const changes = decided.changes.get(account.id)
    if (changes) await writeMovements(tx, scope, account, changes, { now, operationId, actor, note })
  }
  return { operation, reversal, replay: false }
}

/** What an unlimited grant covered was paid by none. */
async function holdPayers(tx: Tx, scope: Scope, { paid }: OperationRecord) {
  if (paid.length === 0) return { now: await selectClock(tx, scope), accounts: [] }
  return holdGrants(
    tx,
    scope,
    paid.map((part) => part.grantId),
  )
}

function namedParts({ paid }: OperationRecord, { returned, notReturned }: Reversal) {
  const features = new Map(paid.map(({ grantId, feature }) => [grantId, feature]))
  const named = <Part extends { grant: bigint }>({ grant, ...part }: Part) => ({
    grantId: grant,
    feature: must(features.get(grant), 'it paid'),
    ...part,
  })
  return { returned: returned.map(named), notReturned: notReturned.map(named) }
}
