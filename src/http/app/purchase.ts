import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import Type from 'typebox'
import { wireCustomerId } from '../../customers/index.ts'
import { activeFeatures, type Catalogues, type WholeStanding, type Whose } from '../../entitlements/index.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import {
  evidenceBodyBytesMax,
  purchaseTokenCharsMax,
  signedTransactionBytesMax,
  storeIdCharsMax,
} from '../../kernel/limits.ts'
import type { Evidence, PurchaseAnswer, PurchaseCommand } from '../../purchases/index.ts'
import type { AppScope } from '../../tenancy/index.ts'
import { customerId, nullableNumber, nullableString, oneOf } from '../schema.ts'
import { appErrors } from './responses.ts'

const storeId = Type.Optional(Type.String({ maxLength: storeIdCharsMax, 'x-storable': true }))

/** Fields that it does not name are ignored: existing clients send more. */
const Body = Type.Object({
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
  },
  { title: 'PurchaseResult' },
)

export interface PurchaseOptions {
  purchase: (command: PurchaseCommand) => Promise<PurchaseAnswer>
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
        'Verified with the store before it gives access. The same evidence again answers the same with `idempotent_replay: true` and grants nothing twice. `detail` says why a purchase is `unsupported`.',
      tags: ['Purchases'],
      body: Body,
      response: { 200: Result, ...appErrors(400, 401, 403, 409, 410, 413, 429, 503) },
    },
    handler: async (request, reply) => {
      const scope = must(request.app, 'the route is authenticated')
      const { body } = request
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

function evidenceOf(body: Static<typeof Body>): Evidence {
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
