import type { Pool } from '../db/pool.ts'
import { refuse } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { type CredentialKind, noteCredential, selectCredentials } from './config-store.ts'
import type { LoadStoreApp } from './store-app.ts'
import type { StoreApp } from './types.ts'

/** One harmless call upstream; text says what is wrong. */
export type CredentialCheck = (app: StoreApp) => Promise<string | null>

export interface CheckServices {
  pool: Pool
  loadStoreApp: LoadStoreApp
  /** Kinds without one are only tried when they are put. */
  checks: Partial<Record<CredentialKind, CredentialCheck>>
}

export interface CredentialVerdict {
  kind: CredentialKind
  ok: boolean
  /** Null: nothing is wrong. */
  problem: string | null
}

/** Tries a stored record, and keeps how that went beside it. Throws `not_found` for a kind that was never put. */
export function createCheckCredential({ pool, loadStoreApp, checks }: CheckServices) {
  return async (scope: Scope, appId: string, kind: CredentialKind): Promise<CredentialVerdict> => {
    const records = await selectCredentials(pool, scope, appId)
    if (!records.some((record) => record.kind === kind)) throw refuse('not_found')
    const check = checks[kind]
    if (!check) throw refuse('invalid_request', { param: 'kind', message: `${kind} is tried when it is put` })
    const problem = await check(await loadStoreApp(pool, scope, appId))
    await noteCredential(pool, scope, appId, { kind, error: problem })
    return { kind, ok: problem === null, problem }
  }
}
