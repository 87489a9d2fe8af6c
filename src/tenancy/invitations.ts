import type { Sql, Tx } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { invitationDays, membersMax } from '../kernel/limits.ts'
import type { Page } from '../kernel/page.ts'
import {
  closeInvitation,
  countOpenInvitations,
  insertInvitation,
  lockOpenInvitation,
  revokeOpenInvitation,
  selectOpenInvitations,
} from './invitation-store.ts'
import { decideRole } from './member-rules.ts'
import { countMembers, insertMember, selectMemberByEmail, selectMemberById } from './member-store.ts'
import { permit } from './members.ts'
import type { Invitation, Member, Role, User } from './types.ts'
import { lockWorkspace, refuseOneTooMany } from './workspaces.ts'

/** Replaces an open invitation of the same address. Throws `conflict` for a member, and what `decideRole` refuses. */
export async function invite(
  tx: Tx,
  workspaceId: string,
  { actorId, email, role }: { actorId: string; email: string; role: Role },
): Promise<Invitation> {
  await lockWorkspace(tx, workspaceId)
  const actor = await selectMemberById(tx, workspaceId, actorId)
  if (!actor) throw refuse('workspace_access_denied')
  const { members, owners } = await countMembers(tx, workspaceId)
  permit(decideRole({ actor: actor.role, from: null, to: role, owners }))
  const address = email.toLowerCase()
  if (await selectMemberByEmail(tx, workspaceId, address)) {
    throw refuse('conflict', { param: 'email', message: 'Somebody with this address is a member already.' })
  }
  await revokeOpenInvitation(tx, workspaceId, address)
  if (members + (await countOpenInvitations(tx, workspaceId)) >= membersMax) {
    throw refuse('conflict', { message: `A workspace has at most ${membersMax} members and open invitations.` })
  }
  const [made] = await insertInvitation(tx, {
    id: newId('inv'),
    workspaceId,
    email: address,
    role,
    invitedBy: actorId,
    days: invitationDays,
  })
  return must(made, 'the row was inserted')
}

/** Those that can still be accepted. */
export function listInvitations(sql: Sql, workspaceId: string, page: Page): Promise<Invitation[]> {
  return selectOpenInvitations(sql, workspaceId, page)
}

/** Throws `not_found`. */
export async function revokeInvitation(tx: Tx, workspaceId: string, id: string): Promise<Invitation> {
  const invitation = await lockOpenInvitation(tx, id)
  if (invitation?.workspaceId !== workspaceId) throw refuse('not_found')
  await closeInvitation(tx, id, 'revoked_at')
  return invitation
}

/** Makes the invited user a member. To everybody else the invitation does not exist. Throws `not_found`. */
export async function acceptInvitation(
  tx: Tx,
  id: string,
  user: Pick<User, 'id' | 'email'>,
): Promise<{ invitation: Invitation; member: Member }> {
  const invitation = await lockOpenInvitation(tx, id)
  if (invitation?.email !== user.email.toLowerCase()) throw refuse('not_found')
  await refuseOneTooMany(tx, user.id)
  await insertMember(tx, invitation.workspaceId, user.id, invitation.role)
  await closeInvitation(tx, id, 'accepted_at')
  const member = await selectMemberById(tx, invitation.workspaceId, user.id)
  return { invitation, member: must(member, 'the row was inserted') }
}
