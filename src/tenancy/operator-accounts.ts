import type { Sql, Tx } from '../db/pool.ts'
import { refuse } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { note } from './operator.ts'
import {
  lockAccess,
  lockUserByEmail,
  markEmailVerified,
  type OperatorKey,
  type OperatorUser,
  type OperatorWorkspace,
  replacePassword,
  selectKeysForOperator,
  selectRoles,
  selectUsersForOperator,
  selectWorkspaceOfKey,
  selectWorkspacesForOperator,
  updateAccess,
} from './operator-account-store.ts'
import { insertVerifiedUser } from './owner-store.ts'
import { hashPassword } from './password.ts'
import { createSecretKey, revokeSecretKey } from './secret-keys.ts'
import { deleteSessionsOf } from './session-store.ts'
import { touchTenancy } from './store.ts'
import type { SecretKey, WorkspaceAccess } from './types.ts'
import { createWorkspace } from './workspaces.ts'

/**
 * What the operator does from the machine, over all workspaces and without a role in any. Each change is in the audit log
 * of the workspaces it concerns. Verbs throw `not_found` and `conflict`.
 */

export function operatorUsers(sql: Sql, limit: number): Promise<OperatorUser[]> {
  return selectUsersForOperator(sql, limit)
}

export function operatorWorkspaces(sql: Sql, limit: number): Promise<OperatorWorkspace[]> {
  return selectWorkspacesForOperator(sql, limit)
}

export function operatorKeys(
  sql: Sql,
  { workspaceId, limit }: { workspaceId: string | null; limit: number },
): Promise<OperatorKey[]> {
  return selectKeysForOperator(sql, { workspaceId, limit })
}

/** A user whose address counts as verified, with a workspace of their own when `workspace` names it. */
export async function addUser(
  tx: Tx,
  {
    email,
    name,
    password,
    workspace,
  }: { email: string; name: string; password: string; workspace: string | undefined },
): Promise<{ userId: string; workspaceId: string | undefined }> {
  if (await lockUserByEmail(tx, email)) throw refuse('conflict', { message: `There is a user ${email} already.` })
  const userId = newId('usr')
  await insertVerifiedUser(tx, {
    id: userId,
    email: email.toLowerCase(),
    name,
    credentialId: newId('cred'),
    passwordHash: await hashPassword(password),
  })
  const made = workspace === undefined ? undefined : await createWorkspace(tx, userId, { name: workspace })
  if (made) {
    await note(tx, made.id, { action: 'create', object: 'workspace', objectId: made.id })
    await touchTenancy(tx)
  }
  return { userId, workspaceId: made?.id }
}

/** False when the address was verified before. */
export async function verifyUser(tx: Tx, email: string): Promise<boolean> {
  const user = await theUser(tx, email)
  if (user.emailVerified) return false
  await markEmailVerified(tx, user.id)
  await noteForUser(tx, user.id, 'verify')
  return true
}

/** Ends all of the user's sessions too. */
export async function setPassword(tx: Tx, email: string, password: string): Promise<void> {
  const user = await theUser(tx, email)
  await replacePassword(tx, {
    userId: user.id,
    credentialId: newId('cred'),
    passwordHash: await hashPassword(password),
  })
  await deleteSessionsOf(tx, user.id)
  await noteForUser(tx, user.id, 'set_password')
}

export async function signOut(tx: Tx, email: string): Promise<void> {
  const user = await theUser(tx, email)
  await deleteSessionsOf(tx, user.id)
  await noteForUser(tx, user.id, 'sign_out')
}

/** What it was before. */
export async function setAccess(tx: Tx, workspaceId: string, access: WorkspaceAccess): Promise<WorkspaceAccess> {
  const before = await lockAccess(tx, workspaceId)
  if (before === undefined) throw refuse('not_found', { message: `There is no workspace ${workspaceId}.` })
  if (before === access) return before
  await updateAccess(tx, workspaceId, access)
  await note(tx, workspaceId, { action: `set_access_${access}`, object: 'workspace', objectId: workspaceId })
  await touchTenancy(tx)
  return before
}

export async function addSecretKey(
  tx: Tx,
  workspaceId: string,
  key: { name: string; expiresInDays: number | null },
): Promise<{ created: SecretKey; secret: string }> {
  if ((await lockAccess(tx, workspaceId)) === undefined) {
    throw refuse('not_found', { message: `There is no workspace ${workspaceId}.` })
  }
  const made = await createSecretKey(tx, workspaceId, { ...key, userId: null })
  await note(tx, workspaceId, { action: 'create', object: 'api_key', objectId: made.created.id })
  await touchTenancy(tx)
  return made
}

export async function withdrawSecretKey(tx: Tx, keyId: string): Promise<void> {
  const workspaceId = await selectWorkspaceOfKey(tx, keyId)
  if (workspaceId === undefined) throw refuse('not_found', { message: `There is no key ${keyId}.` })
  await revokeSecretKey(tx, workspaceId, keyId)
  await note(tx, workspaceId, { action: 'revoke', object: 'api_key', objectId: keyId })
  await touchTenancy(tx)
}

async function noteForUser(tx: Tx, userId: string, action: string): Promise<void> {
  for (const { workspaceId } of await selectRoles(tx, userId)) {
    await note(tx, workspaceId, { action, object: 'user', objectId: userId })
  }
}

async function theUser(tx: Tx, email: string): Promise<{ id: string; emailVerified: boolean }> {
  const user = await lockUserByEmail(tx, email)
  if (!user) throw refuse('not_found', { message: `There is no user ${email}.` })
  return user
}
