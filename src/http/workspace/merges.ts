import Type, { type Static } from 'typebox'
import {
  type IdentityServices,
  listMerges,
  type Merge,
  mergeCustomers,
  splitMerge,
  wireCustomerId,
} from '../../customers/index.ts'
import type { Pool } from '../../db/pool.ts'
import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'
import { closed, instant, nullableString, oneOf } from '../schema.ts'
import { instantOf } from './amount.ts'
import { findCustomer } from './customers.ts'
import type { Endpoints } from './endpoint.ts'
import { listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, id } from './parts.ts'

const MergeObject = Type.Object(
  {
    object: Type.Literal('merge'),
    id: Type.String(),
    customer_id: Type.String({ description: 'Whom the target id named afterwards.' }),
    source_customer_id: Type.Unsafe<string | null>({
      ...nullableString,
      description: 'The record that went in, or came out again; null where the source id only got a customer.',
    }),
    source_distinct_id: Type.String({ description: 'Empty for the id of a deleted customer.' }),
    target_distinct_id: Type.String(),
    event_uuid: Type.Unsafe<string | null>({
      ...nullableString,
      description: 'The `$identify`; null for a merge by hand.',
    }),
    position: Type.Integer({ description: 'Where it stands in the order of all changes.' }),
    status: oneOf('merged', 'refused', 'split'),
    reason: Type.Unsafe<string | null>({
      ...nullableString,
      description: 'Of a refusal: same_id, illegal_id, source_deleted, source_identified or id_cap',
    }),
    created_at: instant,
  },
  { title: 'Merge' },
)
const tag = 'Customers'

/** Longer than any id, so that the rules can say what is wrong with one. */
const sourceIdCharsMax = 1024

export type MergeServices = IdentityServices & { pool: Pool; clock: Clock }

export function merges({ get, post }: Endpoints, services: MergeServices): void {
  const { pool, clock } = services
  get(
    {
      path: '/customers/:id/merges',
      operationId: 'listMerges',
      tag,
      summary: "List a customer's merges",
      description:
        'Newest first: every merge and every refusal, those of customers that were merged into this one included.',
      params: byId,
      query: closed(listQuery),
      answers: { 200: listOf(MergeObject) },
      errors: [404],
    },
    async (look, { params, query }) => {
      const page = pageOf(query, /^[0-9]{1,18}$/)
      const { customer, scope } = await findCustomer(pool, look.scopes(), params.id)
      const before = page.after === null ? null : BigInt(page.after)
      const found = await listMerges(pool, scope, customer.id, { limit: page.limit, before })
      return listAnswer(found, page, { show, positionOf: (merge) => String(merge.id) })
    },
  )

  post(
    {
      path: '/customers/:id/merge',
      operationId: 'mergeCustomers',
      tag,
      summary: 'Merge another customer into this one',
      description:
        'By the rules of `$identify`, at once: this customer goes on, with all ids, grants and events of the other. ' +
        '409 `identity_conflict` with `details.reason` where a rule forbids it; nothing is changed then. ' +
        '`force` joins two identified customers. What was merged before is answered with that merge.',
      params: byId,
      body: closed({
        source_distinct_id: Type.String({
          maxLength: sourceIdCharsMax,
          description: 'Any distinct id of the other customer, or one that names nobody yet.',
        }),
        force: Type.Optional(Type.Boolean({ description: 'Also a source that is identified. Both must exist.' })),
      }),
      answers: { 200: MergeObject },
      errors: [404, 409],
    },
    async (change, { params, body }) => {
      const { customer, scope } = await findCustomer(change.tx, change.scopes(), params.id)
      const command = {
        ...{ customerId: customer.id, sourceDistinctId: body.source_distinct_id },
        ...{ force: body.force ?? false, now: clock.now() },
      }
      const { merge, replay } = await mergeCustomers(change.tx, scope, command, services)
      const after = show(merge)
      if (!replay) await change.audit('merge', 'customer', wireCustomerId(customer.id), { after })
      return { status: 200, body: after }
    },
  )

  post(
    {
      path: '/customers/:id/merges/:merge_id/split',
      operationId: 'splitMerge',
      tag,
      summary: 'Take a merge back',
      description:
        'The newest merge of a customer first. The source is a customer of its own again, with its ids, its properties as ' +
        'they were, its events, and what is unspent of its grants. What was written or granted since stays here.',
      params: closed({ id, merge_id: id }),
      answers: { 200: MergeObject },
      errors: [404, 409],
    },
    async (change, { params }) => {
      const { customer, scope } = await findCustomer(change.tx, change.scopes(), params.id)
      const command = { customerId: customer.id, mergeId: parseMergeId(params.merge_id) }
      const { merge, replay } = await splitMerge(change.tx, scope, command, services)
      const after = show(merge)
      if (!replay) await change.audit('split', 'customer', wireCustomerId(customer.id), { after })
      return { status: 200, body: after }
    },
  )
}

function parseMergeId(text: string): bigint {
  const digits = /^merge_([0-9]{1,18})$/.exec(text)?.[1]
  if (digits === undefined) throw refuse('not_found')
  return BigInt(digits)
}

export function wireMergeId(mergeId: bigint): string {
  return `merge_${mergeId}`
}

function show(merge: Merge): Static<typeof MergeObject> {
  return {
    object: 'merge',
    id: wireMergeId(merge.id),
    customer_id: wireCustomerId(merge.customerId),
    source_customer_id: merge.sourceCustomerId && wireCustomerId(merge.sourceCustomerId),
    source_distinct_id: merge.sourceDistinctId,
    target_distinct_id: merge.targetDistinctId,
    event_uuid: merge.eventUuid,
    position: Number(merge.position),
    status: merge.status,
    reason: merge.reason,
    created_at: instantOf(merge.createdAt),
  }
}
