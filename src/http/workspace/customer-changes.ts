import Type, { type Static } from 'typebox'
import { type CustomerChange, listChanges, wireCustomerId } from '../../customers/index.ts'
import type { Pool } from '../../db/pool.ts'
import { closed, instant, nullable, nullableString, oneOf } from '../schema.ts'
import { instantOf, nullableInstantOf } from './amount.ts'
import type { Endpoints } from './endpoint.ts'
import { cursorOf, listQuery, pageOf } from './list.ts'
import { wireMergeId } from './merges.ts'
import { projectId } from './parts.ts'

const ChangeObject = Type.Object(
  {
    object: Type.Literal('customer_change'),
    id: Type.String(),
    type: oneOf('merge', 'split', 'delete'),
    position: Type.Integer({ description: 'Where it stands in the order of all changes of events and customers.' }),
    customer_id: Type.String({ description: 'Who goes on after a merge or split; who was deleted.' }),
    source_customer_id: Type.Unsafe<string | null>({
      ...nullableString,
      description: 'Who went into a merge, or came out of it by a split; null where a merge only added a distinct id.',
    }),
    merge_id: nullableString,
    created_at: instant,
    erased_at: nullable(instant),
  },
  { title: 'CustomerChange' },
)

export function customerChanges({ get }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/customer_changes',
      operationId: 'listCustomerChanges',
      tag: 'Customers',
      summary: 'List merges, splits and deletions',
      description:
        'For copies elsewhere: oldest first, by position. `next_cursor` is never null and resumes for ever; what appears ' +
        'later has a later position. `erased_at` tells when everything of a deleted customer was erased.',
      query: closed({ ...listQuery, project_id: projectId }),
      answers: {
        200: Type.Object({
          object: Type.Literal('list'),
          data: Type.Array(ChangeObject),
          has_more: Type.Boolean(),
          next_cursor: Type.String(),
        }),
      },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, /^[0-9]{1,18}$/)
      const scope = look.scope(query.project_id)
      const found = await listChanges(pool, scope, { limit: page.limit, after: BigInt(page.after ?? 0) })
      const shown = found.slice(0, page.limit - 1)
      return {
        object: 'list' as const,
        data: shown.map(show),
        has_more: found.length > shown.length,
        next_cursor: cursorOf(String(shown.at(-1)?.position ?? page.after ?? 0)),
      }
    },
  )
}

function show(change: CustomerChange): Static<typeof ChangeObject> {
  return {
    object: 'customer_change',
    id: `change_${change.position}`,
    type: change.kind,
    position: Number(change.position),
    customer_id: wireCustomerId(change.customerId),
    source_customer_id: change.sourceCustomerId && wireCustomerId(change.sourceCustomerId),
    merge_id: change.mergeId === null ? null : wireMergeId(change.mergeId),
    created_at: instantOf(change.createdAt),
    erased_at: nullableInstantOf(change.erasedAt),
  }
}
