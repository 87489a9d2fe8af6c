import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import Type from 'typebox'
import { wireCustomerId } from '../../customers/index.ts'
import { activeFeatures, type Catalogues, type WholeStanding, type Whose } from '../../entitlements/index.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import {
  checkoutProductsMax,
  evidenceBodyBytesMax,
  purchaseTokenCharsMax,
  returnUrlCharsMax,
  signedTransactionBytesMax,
  storeIdCharsMax,
} from '../../kernel/limits.ts'
import type {
  CheckoutAnswer,
  CheckoutCommand,
  Evidence,
  PurchaseAnswer,
  PurchaseCommand,
} from '../../purchases/index.ts'
import type { AppScope } from '../../tenancy/index.ts'
import { customerId, instant, nullableNumber, nullableString, oneOf } from '../schema.ts'
import { appErrors } from './responses.ts'

const storeId = Type.Optional(Type.String({ maxLength: storeIdCharsMax, 'x-storable': true }))

/** Fields that it does not name are ignored: existing clients send more. */
const Store = Type.Object({
  apiKey: Type.String({ description: 'Publishable key of the app that sold it.' }),
  type: oneOf('appstore', 'playstore'),
  distinct_id: customerId,
  transaction_jwt: Type.Optional(
    Type.String({ 'x-bytes-max': signedTransactionBytesMax, description: 'For `appstore`: the signed transaction.' }),
  ),
  purchase_token: Type.Optional(Type.String({ maxLength: purchaseTokenCharsMax, description: 'For `playstore`.' })),
  product_id: storeId,
  base_plan_id: storeId,
  purchase_option_id: storeId,
  offer_id: storeId,
  product_type: Type.Optional(oneOf('subscription', 'one_time')),
  package_name: storeId,
  consume_purchase: Type.Optional(
    Type.Boolean({ description: 'Android: consume it once it is attached. Only for consumable store links.' }),
  ),
})

const returnUrl = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: returnUrlCharsMax, 'x-storable': true, description }))

const Card = Type.Object({
  apiKey: Type.String({ description: 'Publishable key of the app, whatever its platform.' }),
  type: oneOf('stripe'),
  customerId,
  productIds: Type.Array(
    Type.String({ minLength: 1, maxLength: storeIdCharsMax, 'x-storable': true, description: 'Id or key.' }),
    {
      minItems: 1,
      maxItems: checkoutProductsMax,
      uniqueItems: true,
      description: 'Products that have a Stripe price.',
    },
  ),
  successUrl: returnUrl("On the app's list; without it the first address of the list."),
  cancelUrl: returnUrl("On the app's list."),
  idempotencyKey: Type.Optional(
    Type.String({
      ...{ minLength: 1, maxLength: storeIdCharsMax, 'x-storable': true },
      description: 'The same command with the same key has one payment page, also after it was paid.',
    }),
  ),
})

/** One form for each `type`, and what is wrong is told of that form alone. */
const Body = Type.Unsafe<Static<typeof Store> | Static<typeof Card>>({
  type: 'object',
  required: ['type'],
  discriminator: { propertyName: 'type' },
  oneOf: [Store, Card],
})

const Result = Type.Object(
  {
    success: Type.Boolean(),
    customer_id: Type.String(),
    features: Type.Array(
      Type.Object({
        id: Type.String(),
        ext_id: Type.String({ description: 'The published key, as `id`.' }),
        type: oneOf('boolean', 'metered', 'creditSystem'),
        allowed: Type.Boolean({ description: 'One unit would be allowed now.' }),
        balance: nullableNumber,
        unlimited: Type.Boolean(),
      }),
    ),
    idempotent_replay: Type.Boolean({ description: 'This customer held it already; `features` are as of now.' }),
    transaction_id: Type.Optional(Type.String()),
    purchase_token: Type.Optional(Type.String()),
    order_id: Type.Optional(Type.String()),
    catalog_product: Type.Optional(
      Type.Object({
        id: Type.String(),
        store_product_id: Type.String(),
        base_plan_id: nullableString,
        purchase_option_id: nullableString,
        offer_id: nullableString,
        store_product_type: oneOf('subscription', 'one_time'),
      }),
    ),
    checkout: Type.Optional(
      Type.Object(
        { id: Type.String(), url: Type.String(), expires_at: instant },
        { description: 'For `stripe`: the page to pay on. `success` is false, for nothing is attached yet.' },
      ),
    ),
  },
  { title: 'PurchaseResult' },
)

export interface PurchaseOptions {
  purchase: (command: PurchaseCommand) => Promise<PurchaseAnswer>
  checkout: (command: CheckoutCommand) => Promise<CheckoutAnswer>
  standing: (query: Whose) => Promise<WholeStanding>
  catalogues: Catalogues
}

/** `POST /purchase`: store evidence becomes access, once. */
export function purchase(server: FastifyInstance, options: PurchaseOptions): void {
  server.post<{ Body: Static<typeof Body> }>('/purchase', {
    bodyLimit: evidenceBodyBytesMax,
    schema: {
      operationId: 'synchronizePurchase',
      summary: 'Synchronize a store purchase',
      description:
        'Verified with the store before it gives access. The same evidence again answers the same with `idempotent_replay: true` and grants nothing twice. `stripe` opens a payment page instead: access follows once it was paid. `detail` says why a purchase is `unsupported`.',
      tags: ['Purchases'],
      body: Body,
      response: { 200: Result, ...appErrors(400, 401, 403, 409, 410, 413, 429, 503) },
    },
    handler: async (request, reply) => {
      const scope = must(request.app, 'the route is authenticated')
      const { body } = request
      if (body.type === 'stripe') return reply.send(await cardAnswer(options, scope, body))
      const evidence = evidenceOf(body)
      const {
        customerId: id,
        replay,
        ...identity
      } = await options.purchase({
        scope,
        distinctId: body.distinct_id,
        evidence,
      })
      return reply.send({
        success: true,
        customer_id: wireCustomerId(id),
        features: await featuresOf(options, scope, id),
        idempotent_replay: replay,
        ...(identity.transactionId === undefined ? {} : { transaction_id: identity.transactionId }),
        ...(evidence.store === 'playstore' ? { purchase_token: evidence.text } : {}),
        ...(identity.orderId === undefined ? {} : { order_id: identity.orderId }),
        ...(identity.catalogProduct === undefined ? {} : { catalog_product: identity.catalogProduct }),
      } satisfies Static<typeof Result>)
    },
  })
}

/** A page to pay on: access follows from what Stripe signs once it was paid. */
async function cardAnswer(
  options: PurchaseOptions,
  scope: AppScope,
  { customerId: distinctId, productIds, successUrl, cancelUrl, idempotencyKey }: Static<typeof Card>,
): Promise<Static<typeof Result>> {
  const command = { scope, distinctId, productIds, successUrl, cancelUrl, idempotencyKey }
  const { customerId: id, replay, checkout } = await options.checkout(command)
  return {
    success: false,
    customer_id: wireCustomerId(id),
    features: await featuresOf(options, scope, id),
    idempotent_replay: replay,
    checkout: { id: checkout.id, url: checkout.url, expires_at: new Date(checkout.expiresAt).toISOString() },
  }
}

function evidenceOf(body: Static<typeof Store>): Evidence {
  const field = body.type === 'appstore' ? 'transaction_jwt' : 'purchase_token'
  const text = body[field]
  if (text === undefined) {
    const words = `is required for ${body.type}`
    throw refuse('invalid_request', { message: `${field} ${words}`, issues: [{ path: field, message: words }] })
  }
  return {
    store: body.type,
    text,
    claims: {
      productId: body.product_id,
      basePlanId: body.base_plan_id,
      purchaseOptionId: body.purchase_option_id,
      offerId: body.offer_id,
      productType: body.product_type,
      packageName: body.package_name,
    },
    consume: body.consume_purchase ?? false,
  }
}

/** As of now, what was just attached included: those that the profile would list. Clients keep them by `id`. */
async function featuresOf({ standing, catalogues }: PurchaseOptions, scope: AppScope, id: string) {
  const catalogue = catalogues.current(scope) ?? (await catalogues.load(scope))
  const { features } = activeFeatures(catalogue, scope.platform, await standing({ scope, customerId: id }))
  return features.map(({ id: key, type, balance, unlimited }) => ({
    ...{ id: key, ext_id: key, type },
    allowed: type === 'boolean' || unlimited || (balance ?? 0) >= 1,
    ...{ balance, unlimited },
  }))
}
