import Type, { type Static } from 'typebox'
import { wireCustomerId } from '../../customers/index.ts'
import type { Pool } from '../../db/pool.ts'
import { type EntityRecord, listEntities, registerEntity, retireEntity } from '../../entitlements/index.ts'
import { closed, instant } from '../schema.ts'
import { amount, amountOf, instantOf } from './amount.ts'
import { findCustomer } from './customers.ts'
import type { Endpoints } from './endpoint.ts'
import { listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, deleted, entityId, key } from './parts.ts'

const EntityObject = Type.Object(
  {
    object: Type.Literal('entity'),
    id: Type.String({ description: 'Of this registration: one that is retired and registered again gets another.' }),
    customer_id: Type.String(),
    feature: Type.String({ description: 'Key of the Feature.' }),
    entity_id: Type.String({ description: 'Your name for the seat, team or device: the `entityId` of the App API.' }),
    used_total: amount,
    registered_at: instant,
  },
  { title: 'Entity' },
)
const tag = 'Entities'

export function entities({ get, post, delete: del }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/customers/:id/entities',
      operationId: 'listEntities',
      tag,
      summary: "List a customer's entities",
      description: 'The registered ones, newest first.',
      params: byId,
      query: closed({ ...listQuery, feature: Type.Optional(key) }),
      answers: { 200: listOf(EntityObject) },
      errors: [404],
    },
    async (look, { params, query }) => {
      const page = pageOf(query, /^[0-9]{1,18}$/)
      const { customer, scope } = await findCustomer(pool, look.scopes(), params.id)
      const wanted = { customerId: customer.id, feature: query.feature ?? null }
      const found = await listEntities(pool, scope, wanted, page)
      return listAnswer(found, page, { show, positionOf: ({ registration }) => registration.toString() })
    },
  )

  post(
    {
      path: '/customers/:id/entities',
      operationId: 'registerEntity',
      tag,
      summary: 'Register an entity',
      description:
        'Gives it, once, what the attached Products of the customer give each entity of the Feature. 201 when it is new, 200 when it was registered already.',
      params: byId,
      body: closed({ feature: key, entity_id: entityId }),
      answers: { 200: EntityObject, 201: EntityObject },
      errors: [404],
    },
    async (change, { params, body }) => {
      const { customer, scope } = await findCustomer(change.tx, change.scopes(), params.id)
      const name = { customerId: customer.id, feature: body.feature, entityId: body.entity_id }
      const { entity, created, grants } = await registerEntity(change.tx, scope, name, change.caller.actor.id)
      const after = show(entity)
      if (created || grants.length > 0) await change.audit('register', 'entity', after.id, { after })
      return { status: created ? 201 : 200, body: after }
    },
  )

  del(
    {
      path: '/customers/:id/entities',
      operationId: 'retireEntity',
      tag,
      summary: 'Retire an entity',
      description:
        'Revokes every grant of its own at once. Its usage counter and the shared grants stay. Registered again, it gets nothing from attachments that gave it something before.',
      params: byId,
      query: closed({ feature: key, entity_id: entityId }),
      answers: { 200: deleted('entity') },
      errors: [404],
    },
    async (change, { params, query }) => {
      const { customer, scope } = await findCustomer(change.tx, change.scopes(), params.id)
      const name = { customerId: customer.id, feature: query.feature, entityId: query.entity_id }
      const detail = { actor: change.caller.actor.id, note: 'entity retired' }
      const before = show(await retireEntity(change.tx, scope, name, detail))
      await change.audit('retire', 'entity', before.id, { before })
      return { status: 200, body: { object: 'entity', id: before.id, deleted: true } }
    },
  )
}

function show(entity: EntityRecord): Static<typeof EntityObject> {
  return {
    object: 'entity',
    id: `ent_${entity.registration}`,
    customer_id: wireCustomerId(entity.customerId),
    feature: entity.featureKey,
    entity_id: entity.entityId,
    used_total: amountOf(entity.used, 0),
    registered_at: instantOf(entity.registeredAt),
  }
}
