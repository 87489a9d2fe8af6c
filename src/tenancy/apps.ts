import type { Sql, Tx } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import type { Page } from '../kernel/page.ts'
import { insertApp, markAppDeleted, selectAppById, selectApps, updateAppRow } from './app-store.ts'
import { selectProject } from './project-store.ts'
import type { App, Environment, Platform } from './types.ts'

export interface NewApp {
  projectId: string
  platform: Platform
  name: string
  bundleId?: string | null | undefined
  packageName?: string | null | undefined
}

/** An app without keys. The caller announces it with `touchTenancy`. Throws `not_found` for the project. */
export async function createApp(tx: Tx, workspaceId: string, app: NewApp): Promise<App> {
  const project = await selectProject(tx, workspaceId, app.projectId, { lock: true })
  if (!project) throw refuse('not_found', { param: 'project_id' })
  const { platform, name, bundleId = null, packageName = null } = app
  const [created] = await insertApp(tx, {
    id: newId('app'),
    projectId: project.id,
    platform,
    name,
    bundleId,
    packageName,
  })
  return must(created, 'the row was inserted')
}

/** `projectId` null: of the whole workspace. */
export function listApps(
  sql: Sql,
  workspaceId: string,
  environment: Environment,
  list: { projectId: string | null; page: Page },
): Promise<App[]> {
  return selectApps(sql, workspaceId, environment, list)
}

/** Throws `not_found`. */
export async function getApp(sql: Sql, workspaceId: string, environment: Environment, id: string): Promise<App> {
  const app = await selectAppById(sql, workspaceId, environment, { id, lock: false })
  if (!app) throw refuse('not_found')
  return app
}

/** The app, held until the transaction ends. Throws `not_found`. */
export async function lockApp(tx: Tx, workspaceId: string, environment: Environment, id: string): Promise<App> {
  const app = await selectAppById(tx, workspaceId, environment, { id, lock: true })
  if (!app) throw refuse('not_found')
  return app
}

export interface AppChanges {
  name?: string | undefined
  bundleId?: string | null | undefined
  packageName?: string | null | undefined
}

/** Changes what is named. The caller announces it. Throws `not_found`. */
export async function updateApp(
  tx: Tx,
  workspaceId: string,
  environment: Environment,
  id: string,
  { name, bundleId, packageName }: AppChanges,
): Promise<{ before: App; after: App }> {
  const before = await lockApp(tx, workspaceId, environment, id)
  const after = {
    ...before,
    name: name ?? before.name,
    bundleId: bundleId === undefined ? before.bundleId : bundleId,
    packageName: packageName === undefined ? before.packageName : packageName,
  }
  await updateAppRow(tx, after)
  return { before, after }
}

/** Its keys stop working. The caller announces it. Throws `not_found`. */
export async function deleteApp(tx: Tx, workspaceId: string, environment: Environment, id: string): Promise<App> {
  const app = await lockApp(tx, workspaceId, environment, id)
  await markAppDeleted(tx, id)
  return app
}
