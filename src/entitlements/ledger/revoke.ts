import type { Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import { decideRevoke } from '../engine/revoke.ts'
import type { Ms } from '../types.ts'
import type { EntryDetail } from './entry-detail.ts'
import { type GrantRecord, recordOf } from './grant-record.ts'
import { selectGrant } from './grants-store.ts'
import { holdGrants, writeMovements } from './movements.ts'

export interface Revoking extends EntryDetail {
  /** Null or past: at once. Until a later instant the units stay usable. */
  at: Ms | null
}

/**
 * Ends a grant in the caller's transaction; spent units stay spent. Again, or later than it ends already, changes nothing.
 * Throws `not_found`.
 */
export async function revokeGrant(
  tx: Tx,
  scopes: Scope[],
  grantId: bigint,
  { at, actor, note }: Revoking,
): Promise<{ before: GrantRecord; after: GrantRecord }> {
  const { record: before, scope } = await getGrant(tx, scopes, grantId)
  const { now, accounts } = await holdGrants(tx, scope, [grantId])
  const account = must(accounts[0], 'the grant has an account')
  const changes = decideRevoke(account, grantId, { now, at })
  if (changes.length > 0) await writeMovements(tx, scope, account, changes, { now, operationId: null, actor, note })
  return { before, after: (await getGrant(tx, [scope], grantId)).record }
}

async function getGrant(tx: Tx, scopes: Scope[], id: bigint): Promise<{ record: GrantRecord; scope: Scope }> {
  const row = await selectGrant(tx, scopes, id)
  const scope = row && scopes.find(({ scopeId }) => scopeId === Number(row[1]))
  if (!row || !scope) throw refuse('not_found')
  return { record: recordOf(row.slice(2), row[0] ?? ''), scope }
}
