import type { Sql, Tx } from '../db/pool.ts'
import { refuse } from '../kernel/errors.ts'
import type { Page } from '../kernel/page.ts'
import { decideRemoval, decideRole, type Verdict } from './member-rules.ts'
import { countMembers, deleteMember, selectMemberById, selectMembers, updateMemberRole } from './member-store.ts'
import type { Member, Role } from './types.ts'
import { lockWorkspace } from './workspaces.ts'

export function listMembers(sql: Sql, workspaceId: string, page: Page): Promise<Member[]> {
  return selectMembers(sql, workspaceId, page)
}

/** Throws `not_found`, and what `decideRole` refuses. */
export async function changeRole(
  tx: Tx,
  workspaceId: string,
  { actorId, userId, role }: { actorId: string; userId: string; role: Role },
): Promise<{ before: Member; after: Member }> {
  const { actor, member, owners } = await lockMembers(tx, workspaceId, actorId, userId)
  permit(decideRole({ actor: actor.role, from: member.role, to: role, owners }))
  await updateMemberRole(tx, workspaceId, userId, role)
  return { before: member, after: { ...member, role } }
}

/** Removes a member, or lets one leave. Throws `not_found`, and what `decideRemoval` refuses. */
export async function removeMember(
  tx: Tx,
  workspaceId: string,
  { actorId, userId }: { actorId: string; userId: string },
): Promise<Member> {
  const { actor, member, owners } = await lockMembers(tx, workspaceId, actorId, userId)
  permit(decideRemoval({ actor: actor.role, member: member.role, self: actorId === userId, owners }))
  await deleteMember(tx, workspaceId, userId)
  return member
}

/** The workspace is held, and the actor read again under the lock: two owners can't both leave as the last but one. */
async function lockMembers(tx: Tx, workspaceId: string, actorId: string, userId: string) {
  await lockWorkspace(tx, workspaceId)
  const actor = await selectMemberById(tx, workspaceId, actorId)
  if (!actor) throw refuse('workspace_access_denied')
  const member = userId === actorId ? actor : await selectMemberById(tx, workspaceId, userId)
  if (!member) throw refuse('not_found')
  return { actor, member, owners: (await countMembers(tx, workspaceId)).owners }
}

export function permit(verdict: Verdict): void {
  if (verdict.allowed) return
  throw refuse(verdict.code, verdict.message === undefined ? {} : { message: verdict.message })
}
