import type { Sql, Tx } from '../db/pool.ts'
import type { Page } from '../kernel/page.ts'
import type { App, Environment, Platform } from './types.ts'

interface AppRow {
  id: string
  project_id: string
  platform: Platform
  name: string
  bundle_id: string | null
  package_name: string | null
  account_token_namespace: string
  created_at: Date
  last_connected_at: Date | null
}

/** `$1` is the workspace, `$2` the environment that `last_connected_at` is about. */
const selectApp = `select a.id, a.project_id, a.platform, a.name, a.bundle_id, a.package_name, a.account_token_namespace,
       a.created_at, c.last_connected_at
     from app a
     join project p on p.id = a.project_id
     left join app_connection c on c.app_id = a.id and c.environment = $2
     where p.workspace_id = $1
       and p.deleted_at is null
       and a.deleted_at is null`

function appOf(row: AppRow): App {
  return {
    id: row.id,
    projectId: row.project_id,
    platform: row.platform,
    name: row.name,
    bundleId: row.bundle_id,
    packageName: row.package_name,
    accountTokenNamespace: row.account_token_namespace,
    createdAt: row.created_at,
    lastConnectedAt: row.last_connected_at,
  }
}

export async function insertApp(
  tx: Tx,
  app: Pick<App, 'id' | 'projectId' | 'platform' | 'name' | 'bundleId' | 'packageName'>,
): Promise<App[]> {
  const rows = await tx.query<AppRow>(
    `insert into app (id, project_id, platform, name, bundle_id, package_name)
     values ($1, $2, $3, $4, $5, $6)
     returning id, project_id, platform, name, bundle_id, package_name, account_token_namespace, created_at,
       null::timestamptz as last_connected_at`,
    [app.id, app.projectId, app.platform, app.name, app.bundleId, app.packageName],
  )
  return rows.map(appOf)
}

export async function selectApps(
  sql: Sql,
  workspaceId: string,
  environment: Environment,
  { projectId, page }: { projectId: string | null; page: Page },
): Promise<App[]> {
  const rows = await sql.query<AppRow>(
    `${selectApp}
       and ($3::text is null or a.project_id = $3)
       and ($4::text is null or (a.created_at, a.id) < (select created_at, id from app where id = $4))
     order by a.created_at desc, a.id desc
     limit $5`,
    [workspaceId, environment, projectId, page.after, page.limit],
  )
  return rows.map(appOf)
}

/** `lock`: nobody changes or deletes it, nor makes keys for it, before this transaction ends. */
export async function selectAppById(
  sql: Sql,
  workspaceId: string,
  environment: Environment,
  { id, lock }: { id: string; lock: boolean },
): Promise<App | undefined> {
  const rows = await sql.query<AppRow>(
    `${selectApp}
       and a.id = $3
     ${lock ? 'for update of a' : ''}`,
    [workspaceId, environment, id],
  )
  return rows.map(appOf)[0]
}

export async function updateAppRow(
  tx: Tx,
  { id, name, bundleId, packageName }: Pick<App, 'id' | 'name' | 'bundleId' | 'packageName'>,
): Promise<void> {
  await tx.query(
    `update app
     set name = $2, bundle_id = $3, package_name = $4
     where id = $1`,
    [id, name, bundleId, packageName],
  )
}

export async function markAppDeleted(tx: Tx, id: string): Promise<void> {
  await tx.query(`update app set deleted_at = now() where id = $1`, [id])
}
