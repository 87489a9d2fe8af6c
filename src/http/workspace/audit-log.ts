import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { nameCharsMax } from '../../kernel/limits.ts'
import { type AuditRow, listAudit } from '../../tenancy/index.ts'
import { closed, instant, nullableString, oneOf } from '../schema.ts'
import type { Endpoints } from './endpoint.ts'
import { dateOf } from './grants.ts'
import { listAnswer, listOf, listQuery, pageOf } from './list.ts'

const AuditEntry = Type.Object(
  {
    object: Type.Literal('audit_entry'),
    id: Type.String(),
    actor: Type.Object({
      type: oneOf('secret_key', 'user', 'operator'),
      id: Type.String({ description: 'The id of the key or the user; of an operator, the account on the machine.' }),
    }),
    action: Type.String({ description: 'Such as `create`, `update`, `archive`, `revoke`.' }),
    target: Type.Object({ object: Type.String(), id: Type.String() }, { description: 'What was changed.' }),
    before_digest: nullableString,
    after_digest: nullableString,
    request_id: Type.String({ description: 'The `X-Request-Id` of the request that did it.' }),
    created_at: instant,
  },
  { title: 'AuditEntry' },
)

const word = Type.String({ minLength: 1, maxLength: nameCharsMax, 'x-storable': true })

/** Positions in the log: no more digits than an id can have. */
const position = /^[1-9][0-9]{0,17}$/

export function auditLog({ get }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/audit_log',
      operationId: 'listAuditLog',
      tag: 'Use and changes',
      summary: 'List changes',
      description:
        'Every change through the Workspace API or by the operator, written in the transaction that made it. The digests are SHA-256 of the object as the API shows it, in canonical JSON; null where there was none. Filters are joined by and.',
      role: 'admin',
      query: closed({
        ...listQuery,
        action: Type.Optional(word),
        object: Type.Optional(word),
        object_id: Type.Optional(word),
        actor_id: Type.Optional(word),
        request_id: Type.Optional(word),
        from: Type.Optional(Type.String({ format: 'date-time', description: 'From this instant on.' })),
        to: Type.Optional(Type.String({ format: 'date-time', description: 'Before this instant.' })),
      }),
      answers: { 200: listOf(AuditEntry) },
    },
    async ({ caller }, { query }) => {
      const page = pageOf(query, position)
      const { action, object, object_id: objectId, actor_id: actorId, request_id: requestId } = query
      const range = { from: dateOf(query.from, 'from'), to: dateOf(query.to, 'to') }
      const filter = { action, object, objectId, actorId, requestId, ...range }
      const rows = await listAudit(pool, caller.workspaceId, filter, page)
      return listAnswer(rows, page, { show, positionOf: ({ id }) => String(id) })
    },
  )
}

function show(row: AuditRow): Static<typeof AuditEntry> {
  return {
    object: 'audit_entry',
    id: `audit_${row.id}`,
    actor: { type: row.actorType, id: row.actorId },
    action: row.action,
    target: { object: row.object, id: row.objectId },
    before_digest: row.beforeDigest,
    after_digest: row.afterDigest,
    request_id: row.requestId,
    created_at: row.at.toISOString(),
  }
}
