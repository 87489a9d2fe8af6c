import Type from 'typebox'
import type { Pool } from '../../db/pool.ts'
import {
  acceptInvitation,
  getWorkspace,
  type Invitation,
  invitationMail,
  invite,
  listInvitations,
  queueMail,
  revokeInvitation,
} from '../../tenancy/index.ts'
import { closed, instant } from '../schema.ts'
import { userOf } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { MemberObject, showMember } from './members.ts'
import { byId, deleted, id } from './parts.ts'
import { email, role } from './people-parts.ts'

const InvitationObject = Type.Object(
  {
    object: Type.Literal('invitation'),
    id: Type.String(),
    workspace_id: Type.String(),
    email: Type.String(),
    role,
    created_at: instant,
    expires_at: instant,
  },
  { title: 'Invitation' },
)
const tag = 'Members'
const by = 'workspace_session'

export interface InvitationServices {
  pool: Pool
  sealingKey: Buffer
  publicUrl: string
}

export function invitations({ get, post, delete: remove }: Endpoints, services: InvitationServices): void {
  const { pool, sealingKey, publicUrl } = services
  post(
    {
      path: '/workspaces/:id/invitations',
      operationId: 'createInvitation',
      tag,
      summary: 'Invite somebody',
      description:
        'Mails the address how to join, within a week. An open invitation of the same address is replaced. Only an owner invites owners.',
      by,
      role: 'admin',
      params: byId,
      body: closed({ email, role }),
      answers: { 201: InvitationObject },
      errors: [409],
    },
    async (change, { body }) => {
      const { tx, caller } = change
      const { workspaceId } = caller
      const actor = userOf(caller)
      const invitation = await invite(tx, workspaceId, { actorId: actor.id, ...body })
      const { name } = await getWorkspace(tx, workspaceId)
      await queueMail(tx, sealingKey, invitationMail(invitation, { publicUrl, workspace: name, from: actor.name }))
      await change.audit('create', 'invitation', invitation.id, { after: show(invitation) })
      return { status: 201, body: show(invitation) }
    },
  )

  get(
    {
      path: '/workspaces/:id/invitations',
      operationId: 'listInvitations',
      tag,
      summary: 'List open invitations',
      by,
      role: 'admin',
      params: byId,
      query: closed(listQuery),
      answers: { 200: listOf(InvitationObject) },
    },
    async ({ caller }, { query }) => {
      const page = pageOf(query, idsOf('inv'))
      const found = await listInvitations(pool, caller.workspaceId, page)
      return listAnswer(found, page, { show, positionOf: (invitation) => invitation.id })
    },
  )

  remove(
    {
      path: '/workspaces/:id/invitations/:invitation_id',
      operationId: 'revokeInvitation',
      tag,
      summary: 'Take an invitation back',
      by,
      params: closed({ id, invitation_id: id }),
      answers: { 200: deleted('invitation') },
      errors: [404],
    },
    async (change, { params }) => {
      const invitation = await revokeInvitation(change.tx, change.caller.workspaceId, params.invitation_id)
      await change.audit('revoke', 'invitation', invitation.id, { before: show(invitation) })
      return { status: 200, body: { object: 'invitation', id: invitation.id, deleted: true } }
    },
  )

  post(
    {
      path: '/invitations/:id/accept',
      operationId: 'acceptInvitation',
      tag,
      summary: 'Accept an invitation',
      description: 'As the user whose verified address was invited; for anybody else it does not exist.',
      by: 'session',
      params: byId,
      answers: { 201: MemberObject },
      errors: [404, 409],
    },
    async (change, { params }) => {
      const { invitation, member } = await acceptInvitation(change.tx, params.id, userOf(change.caller))
      const { workspaceId } = invitation
      await change.audit('accept', 'invitation', invitation.id, { before: show(invitation), workspaceId })
      return { status: 201, body: showMember(member) }
    },
  )
}

function show({
  id,
  workspaceId,
  email,
  role,
  createdAt,
  expiresAt,
}: Invitation): Type.Static<typeof InvitationObject> {
  return {
    object: 'invitation',
    id,
    workspace_id: workspaceId,
    email,
    role,
    created_at: createdAt.toISOString(),
    expires_at: expiresAt.toISOString(),
  }
}
