import Type, { type Static } from 'typebox'
import {
  type Customer,
  deleteCustomer,
  type FindCustomer,
  getCustomer,
  type IdentityServices,
  listCustomers,
  parseCustomerId,
  patchProperties,
  resolveOrCreate,
  wireCustomerId,
} from '../../customers/index.ts'
import type { Pool, Sql } from '../../db/pool.ts'
import type { Warning } from '../../events/index.ts'
import { tellEdits } from '../../journeys/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Refusal, refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import { closed, customerId, instant } from '../schema.ts'
import { instantOf } from './amount.ts'
import type { Endpoints } from './endpoint.ts'
import { listAnswer, listOf, listQuery, pageOf, wholeList } from './list.ts'
import { byId, deleted, environment, inProject, projectId } from './parts.ts'
import { cleanProperties, editOf, PropertyEditBody } from './property-edit.ts'

export const CustomerObject = Type.Object(
  {
    object: Type.Literal('customer'),
    id: Type.String(),
    project_id: Type.String(),
    environment,
    distinct_ids: Type.Array(
      Type.Object({ distinct_id: Type.String(), identified: Type.Boolean(), first_seen_at: instant }),
    ),
    identified: Type.Boolean(),
    properties: Type.Record(Type.String(), Type.Unknown()),
    created_at: instant,
    updated_at: instant,
    warnings: Type.Optional(
      Type.Array(Type.Object({ code: Type.String(), detail: Type.Optional(Type.String()) }), {
        description: 'Only after a change, and only when a property could not be written; the others were.',
      }),
    ),
  },
  { title: 'Customer' },
)
const tag = 'Customers'
/** `<created, ms>_<uuid>`: what customers are listed by. */
const position = /^[0-9]{1,15}_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export interface CustomerServices {
  pool: Pool
  /** For reading one: those asked for at the same time are read together. */
  find: FindCustomer
  clock: Clock
  tombstoneKey: Buffer
  participants: IdentityServices['participants']
}

export function customers(
  { get, post, patch, delete: remove }: Endpoints,
  { pool, find, clock, tombstoneKey, participants }: CustomerServices,
): void {
  get(
    {
      path: '/customers',
      operationId: 'listCustomers',
      tag,
      summary: 'List customers',
      description: 'Newest first, or the one that a distinct id names.',
      query: closed({ ...listQuery, project_id: projectId, distinct_id: Type.Optional(customerId) }),
      answers: { 200: listOf(CustomerObject) },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, position)
      const scope = look.scope(query.project_id)
      if (query.distinct_id !== undefined) {
        const found = await find(scope, { distinctId: query.distinct_id })
        return wholeList(found ? [showCustomer(found, scope)] : [])
      }
      const [createdAt, id] = page.after?.split('_') ?? []
      const before = createdAt === undefined || id === undefined ? null : { createdAt: Number(createdAt), id }
      const found = await listCustomers(pool, scope, { limit: page.limit, before })
      return listAnswer(found, page, {
        show: (customer) => showCustomer(customer, scope),
        positionOf: (customer) => `${customer.createdAt}_${customer.id}`,
      })
    },
  )

  post(
    {
      path: '/customers',
      operationId: 'resolveCustomer',
      tag,
      summary: 'Find or create a customer',
      description: '201 when it is new, 200 when the distinct id names one already. Properties are set on either.',
      body: closed({
        project_id: projectId,
        distinct_id: customerId,
        properties: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      }),
      answers: { 200: CustomerObject, 201: CustomerObject },
      errors: [404, 409, 410],
    },
    async (change, { body }) => {
      const scope = change.scope(body.project_id)
      const properties = cleanProperties(body.properties ?? {}, 'properties')
      const options = { tombstoneKey, now: clock.now(), properties }
      const { customer, created, warnings } = await resolveOrCreate(change.tx, scope, body.distinct_id, options)
      const after = showCustomer(customer, scope, warnings)
      if (created || Object.keys(properties).length > 0) {
        await change.audit(created ? 'create' : 'update', 'customer', after.id, { after })
      }
      return { status: created ? 201 : 200, body: after }
    },
  )

  get(
    {
      path: '/customers/:id',
      operationId: 'getCustomer',
      tag,
      summary: 'Get a customer',
      description: 'The id of a merged customer gives the one it became.',
      params: byId,
      answers: { 200: CustomerObject },
      errors: [404],
    },
    async (look, { params }) => {
      const customerId = parseCustomerId(params.id)
      if (customerId === null) throw refuse('not_found')
      for (const scope of look.scopes()) {
        const customer = await find(scope, { customerId })
        if (customer) return showCustomer(customer, scope)
      }
      throw refuse('not_found')
    },
  )

  get(
    {
      path: '/customers/by_distinct_id/:distinct_id',
      operationId: 'getCustomerByDistinctId',
      tag,
      summary: 'Get the customer of a distinct id',
      description: 'The distinct id is percent-encoded.',
      params: closed({ distinct_id: customerId }),
      query: inProject,
      answers: { 200: CustomerObject },
      errors: [404],
    },
    async (look, { params, query }) => {
      const scope = look.scope(query.project_id)
      const customer = await find(scope, { distinctId: params.distinct_id })
      if (!customer) throw refuse('not_found')
      return showCustomer(customer, scope)
    },
  )

  patch(
    {
      path: '/customers/:id',
      operationId: 'updateCustomer',
      tag,
      summary: "Change a customer's properties",
      description: 'At once, by the rules of the directives `$set`, `$set_once`, `$unset` and `$increment`.',
      params: byId,
      body: closed({ properties: PropertyEditBody }),
      answers: { 200: CustomerObject },
      errors: [404],
    },
    async (change, { params, body }) => {
      const edit = editOf(body.properties)
      const { customer: before, scope } = await findCustomer(change.tx, change.scopes(), params.id)
      const now = clock.now()
      const { customer, warnings, pos } = await patchProperties(change.tx, scope, before.id, edit, now)
      await tellEdits(change.tx, scope, [{ customerId: customer.id, pos }], now)
      const states = { before: showCustomer(before, scope), after: showCustomer(customer, scope, warnings) }
      await change.audit('update', 'customer', states.after.id, states)
      return { status: 200, body: states.after }
    },
  )

  remove(
    {
      path: '/customers/:id',
      operationId: 'deleteCustomer',
      tag,
      summary: 'Delete a customer',
      description:
        'For ever. At once every distinct id of theirs is 410 `customer_deleted`, and events under way are dropped. What is ' +
        'stored of them is erased in the background: `erased_at` of `GET /customer_changes` tells when it was.',
      role: 'admin',
      params: byId,
      answers: { 200: deleted('customer') },
      errors: [404],
    },
    async (change, { params }) => {
      const { customer, scope } = await findCustomer(change.tx, change.scopes(), params.id)
      await deleteCustomer(change.tx, scope, customer.id, { tombstoneKey, participants })
      const id = wireCustomerId(customer.id)
      // No digest of what is to be forgotten.
      await change.audit('delete', 'customer', id, {})
      return { status: 200, body: { object: 'customer', id, deleted: true } }
    },
  )
}

/** The customer of a `cus_…` id, and where it lies. Throws `not_found`. */
export async function findCustomer(
  sql: Sql,
  scopes: Scope[],
  id: string,
): Promise<{ customer: Customer; scope: Scope }> {
  const customerId = parseCustomerId(id)
  if (customerId === null) throw refuse('not_found')
  for (const scope of scopes) {
    const customer = await getCustomer(sql, scope, customerId).catch(absent)
    if (customer) return { customer, scope }
  }
  throw refuse('not_found')
}

function absent(error: unknown): null {
  if (error instanceof Refusal && error.code === 'not_found') return null
  throw error
}

export function showCustomer(
  customer: Customer,
  scope: Scope,
  warnings: Warning[] = [],
): Static<typeof CustomerObject> {
  return {
    object: 'customer',
    id: wireCustomerId(customer.id),
    project_id: scope.projectId,
    environment: scope.environment,
    distinct_ids: customer.distinctIds.map(({ distinctId, identified, firstSeenAt }) => ({
      distinct_id: distinctId,
      identified,
      first_seen_at: instantOf(firstSeenAt),
    })),
    identified: customer.identified,
    properties: customer.properties,
    created_at: instantOf(customer.createdAt),
    updated_at: instantOf(customer.updatedAt),
    ...(warnings.length === 0 ? {} : { warnings }),
  }
}
