import Type, { type Static } from 'typebox'
import { parseCustomerId, wireCustomerId } from '../../customers/index.ts'
import { refuse } from '../../kernel/errors.ts'
import { noteCharsMax } from '../../kernel/limits.ts'
import {
  type Binding,
  getPurchase,
  type Lineage,
  listPurchases,
  type PurchaseRecord,
  registerBinding,
  transferPurchase,
} from '../../purchases/index.ts'
import type { Scope } from '../../tenancy/index.ts'
import { closed, instant, nullable, nullableString, oneOf } from '../schema.ts'
import { instantOf, nullableInstantOf } from './amount.ts'
import { findCustomer } from './customers.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, environment, id } from './parts.ts'
import type { Ask } from './route.ts'
import { appAndScope, type StoreServices } from './store-settings.ts'

const store = oneOf('appstore', 'playstore', 'stripe')

const common = {
  object: Type.Literal('purchase'),
  id: Type.String(),
  environment,
  app_id: Type.String(),
  customer_id: nullableString,
  store,
  store_environment: oneOf('production', 'sandbox', 'xcode'),
  status: Type.String({
    description: 'Of its newest state, such as `active`, `grace`, `billing_retry`, `expired`, `revoked`.',
  }),
  active: Type.Boolean({ description: 'It gives access now.' }),
  auto_renews: nullable(Type.Boolean()),
  pending_product: nullableString,
  family_shared: Type.Boolean(),
  unpolled: Type.Boolean({ description: 'Known by signed strings alone: the store was not asked.' }),
  attached_at: nullable(instant),
  last_read_at: nullable(instant),
  next_check_at: nullable(instant),
  created_at: instant,
  periods: Type.Array(
    Type.Object({
      evidence: Type.String({ description: 'Transaction id, or the hash of the token.' }),
      product: Type.String({ description: 'Id of the Product.' }),
      store_product_id: Type.String(),
      base_plan_id: nullableString,
      purchase_option_id: nullableString,
      offer_id: nullableString,
      quantity: Type.Integer(),
      order_id: nullableString,
      starts_at: instant,
      access_until: nullable(instant),
      revoked_at: nullable(instant),
      superseded_at: nullable(instant),
      granted: Type.Boolean(),
    }),
    { description: 'Newest first; the last fifty.' },
  ),
}
const PurchaseObject = Type.Object(common, { title: 'Purchase' })
const PurchaseTrail = Type.Object(
  {
    ...common,
    root: Type.String({ description: 'Original transaction id, or the hash of the first token.' }),
    transactions: Type.Array(
      Type.Object({
        evidence: Type.String(),
        superseded_by: nullableString,
        verified_at: instant,
        claims: Type.Record(Type.String(), Type.Unknown(), { description: 'As the store signed or answered them.' }),
      }),
    ),
    transfers: Type.Array(
      Type.Object({
        from_customer_id: nullableString,
        to_customer_id: Type.String(),
        cause: oneOf('claim', 'operator'),
        actor: nullableString,
        reason: nullableString,
        at: instant,
      }),
    ),
  },
  { title: 'PurchaseTrail' },
)
const BindingObject = Type.Object(
  {
    object: Type.Literal('checkout_binding'),
    id: Type.String(),
    customer_id: Type.String(),
    app_id: Type.String(),
    environment,
    store,
    value: Type.String(),
    created_at: instant,
  },
  { title: 'CheckoutBinding' },
)
const tag = 'Purchases'

export interface PurchaseServices extends StoreServices {
  /** Asks the store how a purchase stands. Throws `not_found`, and what verification throws. */
  reverify: (scopes: Scope[], purchaseId: string) => Promise<PurchaseRecord>
}

export function purchases({ get, post, ask }: Endpoints, { pool, loadStoreApp, reverify }: PurchaseServices): void {
  get(
    {
      path: '/customers/:id/purchases',
      operationId: 'listPurchases',
      tag,
      summary: "List a customer's purchases",
      description: 'Newest first. A subscription with all its renewals is one.',
      params: byId,
      query: closed(listQuery),
      answers: { 200: listOf(PurchaseObject) },
      errors: [404],
    },
    async (look, { params, query }) => {
      const page = pageOf(query, idsOf('pur'))
      const { customer, scope } = await findCustomer(pool, look.scopes(), params.id)
      const found = await listPurchases(pool, scope, customer.id, page)
      return listAnswer(found, page, {
        show: (record) => show(record, scope),
        positionOf: ({ lineage }) => lineage.publicId,
      })
    },
  )

  get(
    {
      path: '/purchases/:id',
      operationId: 'getPurchase',
      tag,
      summary: 'Get a purchase',
      description: 'With what was verified of it, and whose it was.',
      params: byId,
      answers: { 200: PurchaseTrail },
      errors: [404],
    },
    async (look, { params }) => trail(await getPurchase(pool, look.scopes(), params.id)),
  )

  ask(
    {
      path: '/purchases/:id/reverify',
      operationId: 'reverifyPurchase',
      tag,
      summary: 'Ask the store again',
      description:
        'Reads how the purchase stands, and grants or takes back what follows. 503 when the store says nothing.',
      params: byId,
      body: closed({}),
      answers: { 200: PurchaseTrail },
      errors: [404],
    },
    async (asked: Ask, { params }) => ({ status: 200, body: trail(await reverify(asked.scopes(), params.id)) }),
  )

  post(
    {
      path: '/purchases/:id/transfer',
      operationId: 'transferPurchase',
      tag,
      summary: 'Give a purchase to a customer',
      description: 'What it gave its owner so far is taken back, what is left of it is given to the new one.',
      role: 'admin',
      params: byId,
      body: closed({
        customer_id: id,
        reason: Type.String({ minLength: 1, maxLength: noteCharsMax, 'x-not-blank': true, 'x-storable': true }),
      }),
      answers: { 200: PurchaseTrail },
      errors: [404, 409],
    },
    async (change, { params, body }) => {
      const customerId = parseCustomerId(body.customer_id)
      if (customerId === null) throw refuse('not_found', { param: 'customer_id' })
      const scopes = change.scopes()
      const before = trail(await getPurchase(change.tx, scopes, params.id))
      const transferring = { purchaseId: params.id, customerId, reason: body.reason, actor: change.caller.actor.id }
      await transferPurchase(change.tx, loadStoreApp, scopes, transferring)
      const after = trail(await getPurchase(change.tx, scopes, params.id))
      await change.audit('transfer', 'purchase', params.id, { before, after })
      return { status: 200, body: after }
    },
  )

  post(
    {
      path: '/customers/:id/checkout_bindings',
      operationId: 'createCheckoutBinding',
      tag,
      summary: 'Say whose an account token is',
      description:
        'For tokens that your apps make by a rule of their own. The same value for another customer is a 409. In the environment of the request.',
      params: byId,
      body: closed({
        app_id: id,
        value: Type.String({ minLength: 1, maxLength: 64, 'x-trimmed': true, 'x-storable': true }),
      }),
      answers: { 201: BindingObject },
      errors: [404, 409],
    },
    async (change, { params, body }) => {
      const { app, scope } = await appAndScope(change.tx, change, body.app_id)
      const { customer } = await findCustomer(change.tx, [scope], params.id)
      const binding = await registerBinding(change.tx, scope, {
        ...{ app, customerId: customer.id, value: body.value, loadStoreApp },
      })
      const after = showBinding(binding, scope)
      await change.audit('create', 'checkout_binding', after.id, { after })
      return { status: 201, body: after }
    },
  )
}

function show(
  { lineage, periods, active }: PurchaseRecord,
  scope: Pick<Scope, 'environment'>,
): Static<typeof PurchaseObject> {
  return {
    ...{ object: 'purchase', id: lineage.publicId, environment: scope.environment, app_id: lineage.appId },
    ...{ customer_id: lineage.ownerId && wireCustomerId(lineage.ownerId), store: lineage.store },
    ...{ store_environment: lineage.storeEnvironment, status: lineage.status, active, auto_renews: lineage.autoRenews },
    ...{ pending_product: lineage.pendingProduct, family_shared: lineage.familyShared, unpolled: lineage.unpolled },
    ...timesOf(lineage),
    periods: periods.map((period) => ({
      ...{ evidence: period.evidenceKey, product: period.productId, store_product_id: period.storeProductId },
      ...{ base_plan_id: period.basePlanId, purchase_option_id: period.purchaseOptionId, offer_id: period.offerId },
      ...{ quantity: period.quantity, order_id: period.orderId, starts_at: instantOf(period.startsAt) },
      access_until: nullableInstantOf(period.accessUntil),
      revoked_at: nullableInstantOf(period.revokedAt),
      superseded_at: nullableInstantOf(period.supersededAt),
      granted: period.grantedTo !== null,
    })),
  }
}

function timesOf({ attachedAt, lastReadAt, nextCheckAt, createdAt }: Lineage) {
  return {
    attached_at: nullableInstantOf(attachedAt),
    last_read_at: nullableInstantOf(lastReadAt),
    next_check_at: nullableInstantOf(nextCheckAt),
    created_at: instantOf(createdAt),
  }
}

function trail(record: PurchaseRecord): Static<typeof PurchaseTrail> {
  const { lineage, transactions, transfers, scope } = record
  return {
    ...show(record, scope),
    root: lineage.rootKey,
    transactions: transactions.map((each) => ({
      ...{ evidence: each.evidenceKey, superseded_by: each.supersededBy, claims: each.claims },
      verified_at: instantOf(each.createdAt),
    })),
    transfers: transfers.map((each) => ({
      from_customer_id: each.fromId && wireCustomerId(each.fromId),
      to_customer_id: wireCustomerId(each.toId),
      ...{ cause: each.cause, actor: each.actor, reason: each.reason, at: instantOf(each.at) },
    })),
  }
}

function showBinding(binding: Binding, scope: Scope): Static<typeof BindingObject> {
  return {
    ...{ object: 'checkout_binding', id: binding.publicId, customer_id: wireCustomerId(binding.customerId) },
    ...{ app_id: binding.appId, environment: scope.environment, store: binding.store, value: binding.value },
    created_at: instantOf(binding.createdAt),
  }
}
