import type { Sql, Tx } from '../db/pool.ts'
import type { Environment, Scope } from '../tenancy/index.ts'
import type { StoreSettings } from './types.ts'

export const credentialKinds = ['appstore', 'playstore', 'stripe', 'appstore_trust', 'endpoints'] as const
export type CredentialKind = (typeof credentialKinds)[number]

export interface SealedCredential {
  kind: CredentialKind
  sealed: string
  wrappedKey: string
}

export interface StoreAppRow {
  id: string
  project_id: string
  bundle_id: string | null
  package_name: string | null
  account_token_namespace: string
  settings: Partial<StoreSettings> | null
  /** As sent by `credentials`. */
  credentials: { kind: CredentialKind; sealed: string; wrapped_key: string }[]
  clock_offset_ms: bigint
}

/** The app with all that verification needs, in one statement: every purchase asks for it. */
export async function selectStoreApp(sql: Sql, scope: Scope, appId: string): Promise<StoreAppRow | undefined> {
  const rows = await sql.query<StoreAppRow>(
    `select a.id, a.project_id, a.bundle_id, a.package_name, a.account_token_namespace, s.settings,
       coalesce((
         select jsonb_agg(jsonb_build_object('kind', c.kind, 'sealed', c.sealed, 'wrapped_key', c.wrapped_key))
         from store_credential c
         where c.scope_id = $1
           and c.app_id = a.id
       ), '[]') as credentials,
       coalesce((select offset_ms from test_clock where scope_id = $1), 0)::bigint as clock_offset_ms
     from app a
     left join store_setting s on s.scope_id = $1 and s.app_id = a.id
     where a.id = $2
       and a.project_id = $3
       and a.deleted_at is null`,
    [scope.scopeId, appId, scope.projectId],
    'purchases_store_app',
  )
  return rows[0]
}

export async function lockSettings(tx: Tx, scope: Scope, appId: string): Promise<Partial<StoreSettings>> {
  await tx.query(
    `insert into store_setting (scope_id, app_id, settings)
     values ($1, $2, '{}')
     on conflict do nothing`,
    [scope.scopeId, appId],
  )
  const [row] = await tx.query<{ settings: Partial<StoreSettings> }>(
    `select settings
     from store_setting
     where scope_id = $1
       and app_id = $2
     for update`,
    [scope.scopeId, appId],
  )
  return row?.settings ?? {}
}

export async function upsertSettings(
  tx: Tx,
  scope: Scope,
  appId: string,
  settings: Partial<StoreSettings>,
): Promise<void> {
  await tx.query(
    `update store_setting
     set settings = $3::jsonb
     where scope_id = $1
       and app_id = $2`,
    [scope.scopeId, appId, JSON.stringify(settings)],
  )
}

export interface CredentialRow {
  kind: CredentialKind
  public_fields: Record<string, unknown>
  updated_at: Date
  last_success_at: Date | null
  last_error_at: Date | null
  last_error: string | null
}

const credentialColumns = 'kind, public_fields, updated_at, last_success_at, last_error_at, last_error'

export function selectCredentials(sql: Sql, scope: Scope, appId: string): Promise<CredentialRow[]> {
  return sql.query<CredentialRow>(
    `select ${credentialColumns}
     from store_credential
     where scope_id = $1
       and app_id = $2
     order by kind`,
    [scope.scopeId, appId],
  )
}

export async function upsertCredential(
  tx: Tx,
  scope: Scope,
  appId: string,
  record: SealedCredential & { publicFields: object },
): Promise<CredentialRow[]> {
  return tx.query<CredentialRow>(
    `insert into store_credential (scope_id, app_id, kind, sealed, wrapped_key, public_fields)
     values ($1, $2, $3, $4, $5, $6::jsonb)
     on conflict (scope_id, app_id, kind) do update
     set sealed = excluded.sealed, wrapped_key = excluded.wrapped_key, public_fields = excluded.public_fields,
       updated_at = now(), last_success_at = null, last_error_at = null, last_error = null
     returning ${credentialColumns}`,
    [scope.scopeId, appId, record.kind, record.sealed, record.wrappedKey, JSON.stringify(record.publicFields)],
  )
}

export async function deleteCredential(
  tx: Tx,
  scope: Scope,
  appId: string,
  kind: CredentialKind,
): Promise<CredentialRow[]> {
  return tx.query<CredentialRow>(
    `delete from store_credential
     where scope_id = $1
       and app_id = $2
       and kind = $3
     returning ${credentialColumns}`,
    [scope.scopeId, appId, kind],
  )
}

/** How the last use of a credential went, or its check: told at most every so often by the caller. */
export async function noteCredential(
  sql: Sql,
  scope: Scope,
  appId: string,
  { kind, error }: { kind: CredentialKind; error: string | null },
): Promise<void> {
  await sql.query(
    `update store_credential
     set last_success_at = case when $4::text is null then now() else last_success_at end,
       last_error_at = case when $4::text is null then last_error_at else now() end,
       last_error = coalesce($4, last_error)
     where scope_id = $1
       and app_id = $2
       and kind = $3`,
    [scope.scopeId, appId, kind, error],
  )
}

export interface FailingCredential {
  app_id: string
  environment: Environment
  kind: CredentialKind
  last_error: string
  last_error_at: Date
}

/** Credentials whose last use failed, the latest first; `max` of them. */
export function selectFailingCredentials(sql: Sql, max: number): Promise<FailingCredential[]> {
  return sql.query<FailingCredential>(
    `select c.app_id, s.environment, c.kind, c.last_error, c.last_error_at
     from store_credential c
     join scope s on s.id = c.scope_id
     where c.last_error_at > coalesce(c.last_success_at, '-infinity')
     order by s.environment = 'live' desc, c.last_error_at desc
     limit $1`,
    [max],
  )
}

export interface LiveCredentialRow {
  app_id: string
  environment: Environment
  kind: CredentialKind
  sealed: string
  wrapped_key: string
}

/** Every record of live environments, for the check at start. */
export function selectLiveCredentials(sql: Sql): Promise<LiveCredentialRow[]> {
  return sql.query<LiveCredentialRow>(
    `select c.app_id, s.environment, c.kind, c.sealed, c.wrapped_key
     from store_credential c
     join scope s on s.id = c.scope_id
     where s.environment = 'live'`,
  )
}
