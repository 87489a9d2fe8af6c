import Type, { type Static } from 'typebox'
import {
  createSegment,
  deleteSegment,
  explainMembership,
  getSegment,
  listMembers,
  listSegments,
  type Membership,
  membershipsOf,
  previewSegment,
  type UsedSegment,
  updateSegment,
  wireCustomerId,
} from '../../customers/index.ts'
import type { Pool } from '../../db/pool.ts'
import { usesOfSegment } from '../../experiences/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'
import { segmentPreviewSamples } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { closed, instant, nullable, oneOf } from '../schema.ts'
import { instantOf } from './amount.ts'
import { scopeIn } from './caller.ts'
import { findCustomer } from './customers.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf, wholeList } from './list.ts'
import { byId, deleted, environment, id, name, projectId } from './parts.ts'

export const definition = Type.Record(Type.String(), Type.Unknown(), {
  description: '`{version: 1, where}`: conditions joined by `all`, `any` and `not`; see the guide on segments.',
})

const SegmentObject = Type.Object(
  {
    object: Type.Literal('segment'),
    id: Type.String(),
    project_id: Type.String(),
    environment,
    name: Type.String(),
    definition,
    version: Type.Integer({ description: 'Counts its definitions.' }),
    status: oneOf('backfilling', 'ready', 'failed'),
    member_count: Type.Integer({ description: 'By the definition that serves.' }),
    used_by: Type.Array(Type.Object({ object: Type.Literal('segment'), id: Type.String() })),
    created_at: instant,
    updated_at: instant,
  },
  { title: 'Segment' },
)

const MembershipObject = Type.Object(
  {
    object: Type.Literal('membership'),
    segment_id: Type.String(),
    segment_name: Type.String(),
    customer_id: Type.String(),
    since: instant,
  },
  { title: 'Membership' },
)

const PreviewObject = Type.Object(
  {
    object: Type.Literal('segment_preview'),
    count: Type.Integer(),
    exact: Type.Boolean({ description: 'False: an estimate from the customers seen in a few seconds.' }),
    customers_seen: Type.Integer(),
    customers_total: Type.Integer(),
    samples: Type.Array(Type.String(), {
      description: `Up to ${segmentPreviewSamples} customers that would be members.`,
    }),
  },
  { title: 'SegmentPreview' },
)

const ExplanationObject = Type.Object(
  {
    object: Type.Literal('segment_explanation'),
    segment_id: Type.String(),
    customer_id: Type.String(),
    member: Type.Boolean(),
    since: nullable(instant),
    leaves: Type.Array(
      Type.Object({
        path: Type.String({ description: 'Where it stands in the definition.' }),
        holds: Type.Boolean(),
        observed: Type.Unknown({
          description:
            'What was counted, when it happened, the property, when the Feature is active; null: nothing known.',
        }),
        changes_at: nullable(instant),
      }),
    ),
  },
  { title: 'SegmentExplanation' },
)

const tag = 'Segments'
/** `<since, ms>_<uuid>`: what members are listed by. */
const position = /^[0-9]{1,15}_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export interface SegmentServices {
  pool: Pool
  clock: Clock
  /** How many days events are kept. */
  eventRetentionDays: number
}

export function segments(to: Endpoints, { pool, clock, eventRetentionDays: keptDays }: SegmentServices): void {
  changes(to, keptDays)
  reads(to, { pool, clock, keptDays })
}

function changes({ post, patch, delete: remove }: Endpoints, keptDays: number): void {
  post(
    {
      path: '/segments',
      operationId: 'createSegment',
      tag,
      summary: 'Create a segment',
      description:
        'Every customer is looked at in the background; until then it is `backfilling` and has no members. What is wrong with a definition is told with its place, in `issues`.',
      body: closed({ project_id: projectId, name, definition }),
      answers: { 201: SegmentObject },
      errors: [404, 409],
    },
    async (change, { body }) => {
      const scope = change.scope(body.project_id)
      const created = await createSegment(change.tx, scope, { name: body.name, definition: body.definition, keptDays })
      const after = showSegment(created, scope)
      await change.audit('create', 'segment', after.id, { after })
      return { status: 201, body: after }
    },
  )

  patch(
    {
      path: '/segments/:id',
      operationId: 'updateSegment',
      tag,
      summary: 'Change a segment',
      description:
        'The definition before goes on serving until the new one knows every customer; then it takes its place at once, also in segments that ask for this one.',
      params: byId,
      body: closed({ name: Type.Optional(name), definition: Type.Optional(definition) }),
      answers: { 200: SegmentObject },
      errors: [404, 409],
    },
    async (change, { params, body }) => {
      const { before, after, scope } = await updateSegment(change.tx, change.scopes(), params.id, { ...body, keptDays })
      const states = { before: showSegment(before, scope), after: showSegment(after, scope) }
      await change.audit('update', 'segment', states.after.id, states)
      return { status: 200, body: states.after }
    },
  )

  remove(
    {
      path: '/segments/:id',
      operationId: 'deleteSegment',
      tag,
      summary: 'Delete a segment',
      description:
        '409 while another segment asks for it, a live or paused Experience names it, or it is the audience of an experiment that is not over; `details.used_by` names them.',
      params: byId,
      answers: { 200: deleted('segment') },
      errors: [404, 409],
    },
    async (change, { params }) => {
      const { before, scope } = await deleteSegment(change.tx, change.scopes(), params.id)
      const uses = await usesOfSegment(change.tx, scope, params.id)
      if (uses.length > 0) throw refuse('conflict', { message: 'The segment is in use.', details: { used_by: uses } })
      await change.audit('delete', 'segment', params.id, { before: showSegment(before, scope) })
      return { status: 200, body: { object: 'segment', id: params.id, deleted: true } }
    },
  )
}

function reads(
  { get, ask }: Endpoints,
  { pool, clock, keptDays }: { pool: Pool; clock: Clock; keptDays: number },
): void {
  get(
    {
      path: '/segments',
      operationId: 'listSegments',
      tag,
      summary: 'List segments',
      query: closed({ ...listQuery, project_id: projectId }),
      answers: { 200: listOf(SegmentObject) },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, idsOf('seg'))
      const scope = look.scope(query.project_id)
      const found = await listSegments(pool, scope, page)
      return listAnswer(found, page, {
        show: (one) => showSegment(one, scope),
        positionOf: ({ segment }) => segment.publicId,
      })
    },
  )

  get(
    {
      path: '/segments/:id',
      operationId: 'getSegment',
      tag,
      summary: 'Get a segment',
      params: byId,
      answers: { 200: SegmentObject },
      errors: [404],
    },
    async (look, { params }) => {
      const scopes = look.scopes()
      const found = await getSegment(pool, scopes, params.id)
      return showSegment(found, scopeIn(scopes, found.segment))
    },
  )

  ask(
    {
      path: '/segments/preview',
      operationId: 'previewSegment',
      tag,
      summary: 'Try a definition',
      description:
        'How many customers would be members, and some of them. Exact when all could be looked at in a few seconds; otherwise an estimate that says so. Nothing is saved.',
      body: closed({ project_id: projectId, definition }),
      answers: { 200: PreviewObject },
      errors: [404],
    },
    async (look, { body }) => {
      const { count, exact, seen, total, samples } = await previewSegment(
        pool,
        look.scope(body.project_id),
        { definition: body.definition, keptDays },
        clock,
      )
      const counts = { count, exact, customers_seen: seen, customers_total: total }
      return { status: 200, body: { object: 'segment_preview', ...counts, samples: samples.map(wireCustomerId) } }
    },
  )

  get(
    {
      path: '/segments/:id/members',
      operationId: 'listSegmentMembers',
      tag,
      summary: "List a segment's members",
      description: 'The newest first.',
      params: byId,
      query: closed(listQuery),
      answers: { 200: listOf(MembershipObject) },
      errors: [404],
    },
    async (look, { params, query }) => {
      const page = pageOf(query, position)
      const scopes = look.scopes()
      const { segment } = await getSegment(pool, scopes, params.id)
      const [since, customerId = ''] = page.after?.split('_') ?? []
      const before = since === undefined ? null : { since: Number(since), customerId }
      const found = await listMembers(pool, scopeIn(scopes, segment), segment, { limit: page.limit, before })
      return listAnswer(found, page, {
        show: showMembership,
        positionOf: (member) => `${member.since}_${member.customerId}`,
      })
    },
  )

  get(
    {
      path: '/segments/:id/explain',
      operationId: 'explainMembership',
      tag,
      summary: 'Explain a membership',
      description: 'Each condition of the definition that serves, and what is known of the customer.',
      params: byId,
      query: closed({ customer_id: id }),
      answers: { 200: ExplanationObject },
      errors: [404, 409],
    },
    async (look, { params, query }) => {
      const scopes = look.scopes()
      const { segment } = await getSegment(pool, scopes, params.id)
      const scope = scopeIn(scopes, segment)
      const { customer } = await findCustomer(pool, [scope], query.customer_id)
      const now = clock.now()
      const { member, since, leaves } = await explainMembership(pool, scope, { segment, customerId: customer.id, now })
      return {
        object: 'segment_explanation',
        segment_id: segment.publicId,
        customer_id: wireCustomerId(customer.id),
        member,
        since: since === null ? null : instantOf(since),
        leaves: leaves.map(({ path, holds, observed, changesAt }) => ({
          ...{ path, holds, observed },
          changes_at: changesAt === null ? null : instantOf(changesAt),
        })),
      }
    },
  )

  get(
    {
      path: '/customers/:id/memberships',
      operationId: 'listMemberships',
      tag,
      summary: "List a customer's memberships",
      params: byId,
      answers: { 200: listOf(MembershipObject) },
      errors: [404],
    },
    async (look, { params }) => {
      const { customer, scope } = await findCustomer(pool, look.scopes(), params.id)
      const found = await membershipsOf(pool, scope, [customer.id])
      return wholeList((found.get(customer.id) ?? []).filter(({ isInternal }) => !isInternal).map(showMembership))
    },
  )
}

export function showSegment({ segment, usedBy }: UsedSegment, scope: Scope) {
  return {
    object: 'segment' as const,
    id: segment.publicId,
    project_id: scope.projectId,
    environment: scope.environment,
    name: segment.name,
    definition: segment.definition,
    version: segment.version,
    status: segment.status,
    member_count: segment.memberCount,
    used_by: usedBy.map((user) => ({ object: 'segment' as const, id: user })),
    created_at: segment.createdAt.toISOString(),
    updated_at: segment.updatedAt.toISOString(),
  }
}

function showMembership({
  segmentId,
  name: segmentName,
  customerId,
  since,
}: Membership): Static<typeof MembershipObject> {
  return {
    object: 'membership',
    segment_id: segmentId,
    segment_name: segmentName,
    customer_id: wireCustomerId(customerId),
    since: instantOf(since),
  }
}
