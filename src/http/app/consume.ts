import type { Static } from 'typebox'
import Type from 'typebox'
import type { ConsumeAnswer, ConsumeCommand } from '../../entitlements/index.ts'
import { refuse } from '../../kernel/errors.ts'
import {
  entityIdBytesMax,
  evidenceBodyBytesMax,
  featureIdCharsMax,
  operationIdCharsMax,
  purchaseTokenCharsMax,
  signedTransactionBytesMax,
  unitsMax,
} from '../../kernel/limits.ts'
import type { Evidence, PaidConsume } from '../../purchases/index.ts'
import { ok } from '../answer.ts'
import { closed, nullableNumber, oneOf, usageCustomerId, usageId } from '../schema.ts'
import type { Operation } from './operation.ts'
import { appErrors } from './responses.ts'

const purchaseCommon = {
  productId: Type.Optional(Type.String()),
  basePlanId: Type.Optional(Type.String()),
  purchaseOptionId: Type.Optional(Type.String()),
  offerId: Type.Optional(Type.String()),
  productType: Type.Optional(oneOf('subscription', 'one_time')),
}
const storeText = { minLength: 1, 'x-storable': true }
const AppStorePurchase = closed({
  type: oneOf('appstore'),
  signedTransaction: Type.String({ ...storeText, 'x-bytes-max': signedTransactionBytesMax }),
  ...purchaseCommon,
})
const PlayStorePurchase = closed({
  type: oneOf('playstore'),
  purchaseToken: Type.String({ ...storeText, maxLength: purchaseTokenCharsMax }),
  ...purchaseCommon,
})

const Body = closed({
  apiKey: Type.String({ description: 'Publishable key.' }),
  customerId: usageCustomerId,
  featureId: usageId('Published Feature key.', { charsMax: featureIdCharsMax }),
  operationId: usageId('Stable per action; reuse it on retries.', { charsMax: operationIdCharsMax }),
  quantity: Type.Integer({
    minimum: 1,
    maximum: unitsMax,
    description: 'Units, or the cumulative total in `set_usage`.',
  }),
  mode: Type.Optional(oneOf('consume', 'set_usage')),
  entityId: Type.Optional(usageId('Entity-scoped allowance.', { bytesMax: entityIdBytesMax })),
  purchase: Type.Optional(
    Type.Union([AppStorePurchase, PlayStorePurchase], { description: 'Store evidence applied with the first spend.' }),
  ),
})

const Decision = Type.Object(
  {
    operationId: Type.String(),
    customerId: Type.String(),
    featureId: Type.String(),
    accepted: Type.Boolean({ description: 'Do the paid work only when this is true.' }),
    type: oneOf('boolean', 'metered', 'creditSystem'),
    code: oneOf(
      'consumed',
      'insufficient_balance',
      'access_inactive',
      'feature_inapplicable',
      'feature_not_consumable',
      'customer_missing',
    ),
    quantity: Type.Integer(),
    balance: nullableNumber,
    unlimited: Type.Boolean(),
    active: Type.Boolean(),
    occurredAtMs: nullableNumber,
    idempotentReplay: Type.Boolean(),
    entityId: Type.Optional(Type.String()),
  },
  { title: 'UsageDecision' },
)

export interface ConsumeOptions {
  consume: (command: ConsumeCommand) => Promise<ConsumeAnswer>
  paidConsume: (command: PaidConsume) => Promise<ConsumeAnswer>
}

/** Read as the decision it is, or as an error, by whoever looks at the status first. */
const Short = Type.Object(
  { ...Decision.properties, message: Type.String(), request_id: Type.String() },
  { title: 'UsageShort' },
)

/** `POST /feature/consume`: spends units once per operation id. */
export function featureConsume({ consume, paidConsume }: ConsumeOptions): Operation<Static<typeof Body>> {
  return {
    path: '/feature/consume',
    bodyLimit: evidenceBodyBytesMax,
    schema: {
      operationId: 'consumeFeature',
      summary: 'Spend units of a Feature',
      description:
        'Idempotent per `operationId`: a retry answers the saved decision with `idempotentReplay: true`. A denial is a 200 with `accepted: false` and the reason in `code`.',
      tags: ['Features'],
      body: Body,
      response: { 200: Decision, 402: Short, ...appErrors(400, 401, 403, 404, 409, 410, 413, 429, 503) },
    },
    run: async ({ app, body, requestId }) => {
      if (body.purchase && body.mode === 'set_usage') throw purchaseWithTotal()
      const command: ConsumeCommand = {
        scope: app,
        distinctId: body.customerId,
        featureKey: body.featureId,
        operationId: body.operationId,
        quantity: BigInt(body.quantity),
        mode: body.mode ?? 'consume',
        entityId: body.entityId ?? null,
      }
      const { purchase } = body
      const decision = await (purchase ? paidConsume({ ...command, evidence: evidenceOf(purchase) }) : consume(command))
      // Only who paid for it is told by status: everybody else reads `accepted`.
      const isShort = purchase !== undefined && decision.code === 'insufficient_balance'
      const answer = {
        operationId: body.operationId,
        customerId: body.customerId,
        featureId: body.featureId,
        accepted: decision.accepted,
        type: decision.type,
        code: decision.code,
        quantity: body.quantity,
        balance: decision.balance,
        unlimited: decision.unlimited,
        active: decision.active,
        occurredAtMs: decision.occurredAt,
        idempotentReplay: decision.replay,
        ...(body.entityId === undefined ? {} : { entityId: body.entityId }),
      } satisfies Static<typeof Decision>
      if (!isShort) return ok(JSON.stringify(answer))
      const short = {
        ...answer,
        message: 'Not enough units, even with the purchase. It stays attached.',
        request_id: requestId,
      } satisfies Static<typeof Short>
      return { status: 402, body: JSON.stringify(short) }
    },
  }
}

function evidenceOf(purchase: NonNullable<Static<typeof Body>['purchase']>): Evidence {
  const { productId, basePlanId, purchaseOptionId, offerId, productType } = purchase
  return {
    store: purchase.type,
    text: purchase.type === 'appstore' ? purchase.signedTransaction : purchase.purchaseToken,
    claims: { productId, basePlanId, purchaseOptionId, offerId, productType },
    consume: false,
  }
}

function purchaseWithTotal() {
  return refuse('invalid_request', {
    message: 'purchase cannot be combined with set_usage',
    issues: [{ path: 'purchase', message: 'cannot be combined with set_usage' }],
  })
}
