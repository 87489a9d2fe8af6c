import Type from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { changeRole, listMembers, type Member, removeMember } from '../../tenancy/index.ts'
import { closed, instant } from '../schema.ts'
import { userOf } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, deleted, id } from './parts.ts'
import { role } from './people-parts.ts'

export const MemberObject = Type.Object(
  {
    object: Type.Literal('member'),
    id: Type.String({ description: 'Of the user.' }),
    email: Type.String(),
    name: Type.String(),
    role,
    created_at: instant,
  },
  { title: 'Member' },
)
const tag = 'Members'
const by = 'workspace_session'
const errors = [404, 409]

export function members({ get, patch, delete: remove }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/workspaces/:id/members',
      operationId: 'listMembers',
      tag,
      summary: 'List members',
      by,
      params: byId,
      query: closed(listQuery),
      answers: { 200: listOf(MemberObject) },
    },
    async ({ caller }, { query }) => {
      const page = pageOf(query, idsOf('usr'))
      const found = await listMembers(pool, caller.workspaceId, page)
      return listAnswer(found, page, { show: showMember, positionOf: ({ userId }) => userId })
    },
  )

  patch(
    {
      path: '/workspaces/:id/members/:user_id',
      operationId: 'updateMember',
      tag,
      summary: "Change a member's role",
      description: 'Only an owner makes owners, or makes one something else. A workspace keeps one owner.',
      by,
      role: 'admin',
      params: closed({ id, user_id: id }),
      body: closed({ role }),
      answers: { 200: MemberObject },
      errors,
    },
    async (change, { params, body }) => {
      const who = { actorId: userOf(change.caller).id, userId: params.user_id }
      const { before, after } = await changeRole(change.tx, change.caller.workspaceId, { ...who, role: body.role })
      await change.audit('update', 'member', params.user_id, { before: showMember(before), after: showMember(after) })
      return { status: 200, body: showMember(after) }
    },
  )

  remove(
    {
      path: '/workspaces/:id/members/:user_id',
      operationId: 'removeMember',
      tag,
      summary: 'Remove a member, or leave',
      description: 'Everybody may leave, but not the last owner. Only an owner removes an owner. API keys stay.',
      by,
      role: 'member',
      params: closed({ id, user_id: id }),
      answers: { 200: deleted('member') },
      errors,
    },
    async (change, { params }) => {
      const who = { actorId: userOf(change.caller).id, userId: params.user_id }
      const member = await removeMember(change.tx, change.caller.workspaceId, who)
      await change.audit('delete', 'member', member.userId, { before: showMember(member) })
      return { status: 200, body: { object: 'member', id: member.userId, deleted: true } }
    },
  )
}

export function showMember({ userId, email, name, role, createdAt }: Member): Type.Static<typeof MemberObject> {
  return { object: 'member', id: userId, email, name, role, created_at: createdAt.toISOString() }
}
