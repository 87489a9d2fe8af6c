import type { Sql, Tx } from '../db/pool.ts'
import { sqlState } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import { newId, randomText } from '../kernel/ids.ts'
import { slugCharsMax, workspacesPerUserMax } from '../kernel/limits.ts'
import type { Workspace } from './types.ts'
import {
  countWorkspacesOf,
  insertOwnedWorkspace,
  selectWorkspace,
  selectWorkspacesOf,
  updateWorkspaceRow,
} from './workspace-store.ts'

/** A workspace that the user owns. Without a slug it gets one from its name. Throws `conflict`. */
export async function createWorkspace(
  tx: Tx,
  ownerId: string,
  { name, slug }: { name: string; slug?: string | undefined },
): Promise<Workspace> {
  await refuseOneTooMany(tx, ownerId)
  const create = (taken: string) => insertOwnedWorkspace(tx, { id: newId('ws'), name, slug: taken, ownerId })
  const made =
    slug === undefined ? ((await create(slugOf(name))) ?? (await create(slugOf(name, true)))) : await create(slug)
  if (made) return made
  throw slugTaken()
}

/** Throws `conflict` for a user who is in as many workspaces as one may be. */
export async function refuseOneTooMany(tx: Tx, userId: string): Promise<void> {
  if ((await countWorkspacesOf(tx, userId)) >= workspacesPerUserMax) {
    throw refuse('conflict', { message: `A user may be in ${workspacesPerUserMax} workspaces.` })
  }
}

/** All of them, newest first. */
export function listWorkspaces(sql: Sql, userId: string): Promise<Workspace[]> {
  return selectWorkspacesOf(sql, userId, workspacesPerUserMax)
}

export async function getWorkspace(sql: Sql, id: string): Promise<Workspace> {
  return must(await selectWorkspace(sql, id, { lock: false }), 'the caller is a member of it')
}

/** The workspace, held until the transaction ends. */
export async function lockWorkspace(tx: Tx, id: string): Promise<Workspace> {
  return must(await selectWorkspace(tx, id, { lock: true }), 'the caller is a member of it')
}

export interface WorkspaceChanges {
  name?: string | undefined
  slug?: string | undefined
  logo?: string | null | undefined
}

/** Changes what is named. Throws `conflict` for a slug that is taken. */
export async function updateWorkspace(
  tx: Tx,
  id: string,
  { name, slug, logo }: WorkspaceChanges,
): Promise<{ before: Workspace; after: Workspace }> {
  const before = await lockWorkspace(tx, id)
  const wanted = {
    id,
    name: name ?? before.name,
    slug: slug ?? before.slug,
    logo: logo === undefined ? before.logo : logo,
  }
  const after = await updateWorkspaceRow(tx, wanted).catch((error: unknown) => {
    throw sqlState(error) === uniqueViolation ? slugTaken() : error
  })
  if (!after) throw slugTaken()
  return { before, after }
}

/** Of two requests that take one slug at the same instant, the second finds out from the index. */
const uniqueViolation = '23505'

function slugTaken() {
  return refuse('conflict', { param: 'slug', message: 'Another workspace has this slug.' })
}

/** `My workspace` becomes `my-workspace`; with a random end where that one is taken. */
export function slugOf(name: string, unique = false): string {
  const end = unique ? `-${randomText(6)}` : ''
  const words = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, slugCharsMax - end.length)
    .replace(/-+$/, '')
  return `${words === '' ? 'workspace' : words}${end}`
}
