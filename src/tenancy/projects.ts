import type { Sql, Tx } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import type { Page } from '../kernel/page.ts'
import {
  insertProject,
  insertScopes,
  markProjectDeleted,
  selectProject,
  selectProjects,
  updateProjectRow,
} from './project-store.ts'
import type { ClientRuntime, Environment, Project, Scope } from './types.ts'

/** A project with its two environments, without apps. The caller announces it with `touchTenancy`. */
export async function createProject(
  tx: Tx,
  workspaceId: string,
  { name }: { name: string },
): Promise<{ project: Project; scopes: Record<Environment, Scope> }> {
  const [created] = await insertProject(tx, { id: newId('proj'), workspaceId, name })
  const project = must(created, 'the row was inserted')
  const numbers = await insertScopes(tx, project.id)
  const scope = (environment: Environment): Scope => {
    const row = numbers.find((number) => number.environment === environment)
    return { scopeId: must(row, 'both scopes were inserted').id, workspaceId, projectId: project.id, environment }
  }
  return { project, scopes: { test: scope('test'), live: scope('live') } }
}

export function listProjects(sql: Sql, workspaceId: string, page: Page): Promise<Project[]> {
  return selectProjects(sql, workspaceId, page)
}

/** Throws `not_found`. */
export async function getProject(sql: Sql, workspaceId: string, id: string): Promise<Project> {
  const project = await selectProject(sql, workspaceId, id, { lock: false })
  if (!project) throw refuse('not_found')
  return project
}

export interface ProjectChanges {
  name?: string | undefined
  deliverAlways?: boolean | null | undefined
  clientRuntime?: ClientRuntime | null | undefined
}

/** Changes what is named. Gives the project before and after. Throws `not_found`. */
export async function updateProject(
  tx: Tx,
  workspaceId: string,
  id: string,
  { name, deliverAlways, clientRuntime }: ProjectChanges,
): Promise<{ before: Project; after: Project }> {
  const before = await selectProject(tx, workspaceId, id, { lock: true })
  if (!before) throw refuse('not_found')
  const after = {
    ...before,
    name: name ?? before.name,
    deliverAlways: deliverAlways === undefined ? before.deliverAlways : deliverAlways,
    clientRuntime: clientRuntime === undefined ? before.clientRuntime : clientRuntime,
  }
  await updateProjectRow(tx, after)
  return { before, after }
}

/** Its apps, keys and data are out of reach from then on. The caller announces it. Throws `not_found`. */
export async function deleteProject(tx: Tx, workspaceId: string, id: string): Promise<Project> {
  const project = await selectProject(tx, workspaceId, id, { lock: true })
  if (!project) throw refuse('not_found')
  await markProjectDeleted(tx, id)
  return project
}
