import type { Sql, Tx } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import {
  type CredentialKind,
  type CredentialRow,
  deleteCredential,
  selectCredentials,
  upsertCredential,
} from './config-store.ts'
import { type NewCredential, publicFieldsOf, sealCredential } from './credentials.ts'

/** A record without its secrets. */
export interface CredentialRecord {
  kind: CredentialKind
  publicFields: Record<string, unknown>
  updatedAt: Date
  lastSuccessAt: Date | null
  lastErrorAt: Date | null
  lastError: string | null
}

export async function listCredentials(sql: Sql, scope: Scope, appId: string): Promise<CredentialRecord[]> {
  return (await selectCredentials(sql, scope, appId)).map(recordOf)
}

/** In place of the record of that kind, in the caller's transaction. Throws what `publicFieldsOf` throws. */
export async function putCredential(
  tx: Tx,
  scope: Scope,
  appId: string,
  { credential, sealingKey }: { credential: NewCredential; sealingKey: Buffer },
): Promise<CredentialRecord> {
  const publicFields = publicFieldsOf(scope.environment, credential)
  const sealed = sealCredential(sealingKey, scope, appId, credential)
  const [row] = await upsertCredential(tx, scope, appId, { ...sealed, publicFields })
  return recordOf(must(row, 'the row was written'))
}

/** Throws `not_found`. */
export async function removeCredential(
  tx: Tx,
  scope: Scope,
  appId: string,
  kind: CredentialKind,
): Promise<CredentialRecord> {
  const [row] = await deleteCredential(tx, scope, appId, kind)
  if (!row) throw refuse('not_found')
  return recordOf(row)
}

function recordOf(row: CredentialRow): CredentialRecord {
  return {
    kind: row.kind,
    publicFields: row.public_fields,
    updatedAt: row.updated_at,
    lastSuccessAt: row.last_success_at,
    lastErrorAt: row.last_error_at,
    lastError: row.last_error,
  }
}
