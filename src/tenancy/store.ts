import type { Sql, Tx } from '../db/pool.ts'
import type { Environment, Platform, WorkspaceAccess } from './types.ts'

export interface ScopeRow {
  id: number
  workspace_id: string
  project_id: string
  environment: Environment
}

export interface PublishableKeyRow {
  id: string
  key: string
  scope_id: number
  app_id: string
  app_name: string
  platform: Platform
}

export interface SecretKeyRow {
  id: string
  workspace_id: string
  access: WorkspaceAccess
  hash: Buffer
  expires_at: Date | null
}

export interface Revisions {
  instance: bigint
  scopes: Map<number, bigint>
}

/** What the check every half second compares. */
export async function readRevisions(sql: Sql): Promise<Revisions> {
  const rows = await sql.query<{ id: number | null; revision: bigint }>(
    `select null::int as id, revision from instance
     union all
     select id, revision from scope`,
  )
  const scopes = new Map<number, bigint>()
  let instance = 0n
  for (const row of rows) {
    if (row.id === null) instance = row.revision
    else scopes.set(row.id, row.revision)
  }
  return { instance, scopes }
}

export function readScopes(tx: Sql): Promise<ScopeRow[]> {
  return tx.query<ScopeRow>(
    `select s.id, p.workspace_id, s.project_id, s.environment
     from scope s
     join project p on p.id = s.project_id
     where p.deleted_at is null`,
  )
}

/** Live publishable keys only: a revoked one is as unknown as one that never was. */
export function readPublishableKeys(tx: Sql): Promise<PublishableKeyRow[]> {
  return tx.query<PublishableKeyRow>(
    `select k.id, k.key, s.id as scope_id, a.id as app_id, a.name as app_name, a.platform
     from publishable_key k
     join app a on a.id = k.app_id
     join project p on p.id = a.project_id
     join scope s on s.project_id = a.project_id and s.environment = k.environment
     where k.revoked_at is null
       and a.deleted_at is null
       and p.deleted_at is null`,
  )
}

export function readSecretKeys(tx: Sql): Promise<SecretKeyRow[]> {
  return tx.query<SecretKeyRow>(
    `select k.id, k.workspace_id, w.access, k.hash, k.expires_at
     from secret_key k
     join workspace w on w.id = k.workspace_id
     where k.revoked_at is null`,
  )
}

/** Tells every process that keys, apps, projects or workspaces changed; call in the transaction that changes them. */
export async function touchTenancy(tx: Tx): Promise<void> {
  await tx.query(`update instance set revision = revision + 1 where id = 1`)
  await tx.query(`select pg_notify('turnpike_revision', '')`)
}

/** Tells every process that the catalogue of one scope changed; call in the transaction that changes it. */
export async function touchCatalogue(tx: Tx, scopeId: number): Promise<void> {
  await tx.query(`update scope set revision = revision + 1 where id = $1`, [scopeId])
  await tx.query(`select pg_notify('turnpike_revision', '')`)
}

export async function markKeyUsed(sql: Sql, kind: 'publishable' | 'secret', keyId: string): Promise<void> {
  const table = kind === 'publishable' ? 'publishable_key' : 'secret_key'
  await sql.query(`update ${table} set last_used_at = now() where id = $1`, [keyId])
}

export async function markAppConnected(sql: Sql, appId: string, environment: Environment): Promise<void> {
  await sql.query(
    `insert into app_connection (app_id, environment, last_connected_at)
     values ($1, $2, now())
     on conflict (app_id, environment) do update set last_connected_at = excluded.last_connected_at`,
    [appId, environment],
  )
}

export async function insertInstance(tx: Tx, sealedSecrets: string): Promise<void> {
  await tx.query(`insert into instance (id, sealed_secrets) values (1, $1) on conflict (id) do nothing`, [
    sealedSecrets,
  ])
}

export async function readSealedSecrets(tx: Sql): Promise<string | undefined> {
  const [row] = await tx.query<{ sealed_secrets: string }>(`select sealed_secrets from instance where id = 1`)
  return row?.sealed_secrets
}

/** Held until the transaction ends. */
export async function lockSealedSecrets(tx: Tx): Promise<string | undefined> {
  const [row] = await tx.query<{ sealed_secrets: string }>(
    `select sealed_secrets from instance where id = 1 for update`,
  )
  return row?.sealed_secrets
}

export async function updateSealedSecrets(tx: Tx, sealedSecrets: string): Promise<void> {
  await tx.query(`update instance set sealed_secrets = $1 where id = 1`, [sealedSecrets])
}

/** Whether the first run has been. */
export async function hasWorkspaces(sql: Sql): Promise<boolean> {
  return (await sql.query(`select 1 from workspace limit 1`)).length > 0
}
