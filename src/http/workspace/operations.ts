import Type, { type Static } from 'typebox'
import { parseCustomerId, wireCustomerId } from '../../customers/index.ts'
import type { Pool } from '../../db/pool.ts'
import {
  getOperation,
  listOperations,
  type OperationRecord,
  type PaidPart,
  type ReversedPart,
  reverseOperation,
  type SavedReversal,
} from '../../entitlements/index.ts'
import { refuse } from '../../kernel/errors.ts'
import { noteCharsMax, operationIdCharsMax } from '../../kernel/limits.ts'
import { closed, instant, nullable, nullableNumber, nullableString, oneOf, usageId } from '../schema.ts'
import { amount, amountOf, instantOf } from './amount.ts'
import { findCustomer } from './customers.ts'
import type { Endpoints } from './endpoint.ts'
import { listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, id, inProject } from './parts.ts'

const part = {
  grant_id: Type.String(),
  feature: Type.String({ description: 'Key of the Feature whose units moved: the one asked for, or a creditSystem.' }),
  units: amount,
}

const ReversalObject = Type.Object(
  {
    object: Type.Literal('reversal'),
    id: Type.String(),
    operation_id: Type.String(),
    customer_id: Type.String(),
    returned: Type.Array(Type.Object(part), { description: 'Last drawn first.' }),
    not_returned: Type.Array(
      Type.Object({
        ...part,
        reason: Type.String({ description: 'grant_revoked, grant_expired, period_reset or grant_full' }),
      }),
    ),
    actor: nullableString,
    note: nullableString,
    occurred_at: instant,
  },
  { title: 'Reversal' },
)

const OperationObject = Type.Object(
  {
    object: Type.Literal('operation'),
    id: Type.String({ description: 'The operation id that the app sent.' }),
    customer_id: Type.String(),
    feature: Type.String({ description: 'Key of the Feature.' }),
    type: oneOf('boolean', 'metered', 'creditSystem'),
    entity_id: nullableString,
    mode: oneOf('consume', 'set_usage'),
    quantity: amount,
    accepted: Type.Boolean(),
    code: Type.String({ description: 'As the app was answered.' }),
    balance: Type.Unsafe<number | null>({ ...nullableNumber, description: 'Right after the decision.' }),
    unlimited: Type.Boolean(),
    active: Type.Boolean(),
    paid: Type.Array(Type.Object({ ...part, entity_id: nullableString }), {
      description: 'Which grants paid, in draw order. Empty for denials, and while an unlimited grant was live.',
    }),
    reversal: nullable(ReversalObject),
    occurred_at: instant,
  },
  { title: 'Operation' },
)

const operationId = usageId('Percent-encoded.', { charsMax: operationIdCharsMax })
const byOperation = closed({ operation_id: operationId })
const tag = 'Operations'

export function operations({ get, post }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/operations/:operation_id',
      operationId: 'getOperation',
      tag,
      summary: 'Get an operation',
      description: 'The saved decision of a `/feature/consume`, a denial too, and the grants that paid for it.',
      params: byOperation,
      query: inProject,
      answers: { 200: OperationObject },
      errors: [404],
    },
    async (look, { params, query }) => {
      const scopes = look.scopes(query.project_id)
      return show(await pool.connected((client) => getOperation(client, scopes, params.operation_id)))
    },
  )

  get(
    {
      path: '/customers/:id/operations',
      operationId: 'listOperations',
      tag,
      summary: "List a customer's operations",
      description: 'Newest first, denials included, and those of customers that were merged into this one.',
      params: byId,
      query: closed(listQuery),
      answers: { 200: listOf(OperationObject) },
      errors: [404],
    },
    async (look, { params, query }) => {
      const page = pageOf(query, /^[0-9]{1,16}_[0-9a-f]{64}$/)
      const { customer, scope } = await findCustomer(pool, look.scopes(), params.id)
      const found = await pool.connected((client) => listOperations(client, scope, customer.id, page))
      return listAnswer(found, page, { show, positionOf: ({ position }) => position })
    },
  )

  post(
    {
      path: '/operations/:operation_id/reverse',
      operationId: 'reverseOperation',
      tag,
      summary: 'Reverse an operation',
      description:
        'Gives the units back to the very grants that paid, last drawn first, at most once; again it answers the same. Units of a period that has been reset, and of a grant that has ended, cannot go back: `not_returned` says which. Usage counters and the saved decision stay.',
      params: byOperation,
      body: closed({
        customer_id: id,
        reason: Type.Optional(nullable(Type.String({ maxLength: noteCharsMax, 'x-storable': true }))),
      }),
      answers: { 200: ReversalObject },
      errors: [404, 409],
    },
    async (change, { params, body }) => {
      if (parseCustomerId(body.customer_id) === null) throw refuse('not_found', { param: 'customer_id' })
      const { customer, scope } = await findCustomer(change.tx, change.scopes(), body.customer_id)
      const { operation, reversal, replay } = await reverseOperation(change.tx, scope, {
        operationId: params.operation_id,
        customerId: customer.id,
        actor: change.caller.actor.id,
        note: body.reason ?? null,
      })
      const after = showReversal(reversal, operation)
      if (!replay) await change.audit('reverse', 'operation', params.operation_id, { after })
      return { status: 200, body: after }
    },
  )
}

function show(operation: OperationRecord): Static<typeof OperationObject> {
  return {
    object: 'operation',
    id: operation.operationId,
    customer_id: wireCustomerId(operation.customerId),
    feature: operation.featureKey,
    type: operation.type,
    entity_id: operation.entityId,
    mode: operation.mode,
    quantity: amountOf(operation.quantity, 0),
    accepted: operation.accepted,
    code: operation.code,
    balance: operation.balance,
    unlimited: operation.unlimited,
    active: operation.active,
    paid: operation.paid.map((each) => ({ ...showPart(each), entity_id: each.entityId })),
    reversal: operation.reversal && showReversal(operation.reversal, operation),
    occurred_at: instantOf(operation.occurredAt),
  }
}

function showReversal(reversal: SavedReversal, operation: OperationRecord): Static<typeof ReversalObject> {
  return {
    object: 'reversal',
    id: reversal.id,
    operation_id: operation.operationId,
    customer_id: wireCustomerId(operation.customerId),
    returned: reversal.returned.map(showPart),
    not_returned: reversal.notReturned.map((each) => ({ ...showPart(each), reason: each.reason })),
    actor: reversal.actor,
    note: reversal.note,
    occurred_at: instantOf(reversal.occurredAt),
  }
}

function showPart({ grantId, feature, units }: PaidPart | ReversedPart) {
  return { grant_id: `grant_${grantId}`, feature: feature.key, units: amountOf(units, feature.scale) }
}
