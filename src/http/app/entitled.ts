import type { Static } from 'typebox'
import Type from 'typebox'
import type { AccessAnswer, AccessQuery } from '../../entitlements/index.ts'
import { refuse } from '../../kernel/errors.ts'
import { entityIdBytesMax, featureIdCharsMax, unitsMax } from '../../kernel/limits.ts'
import { ok } from '../answer.ts'
import { closed, nullableNumber, oneOf, usageCustomerId, usageId } from '../schema.ts'
import type { Operation } from './operation.ts'
import { appErrors } from './responses.ts'

const units = (description: string) => Type.Integer({ minimum: 1, maximum: unitsMax, description })

const Body = closed({
  apiKey: Type.String({ description: 'Publishable key.' }),
  customerId: usageCustomerId,
  featureId: usageId('Published Feature key.', { charsMax: featureIdCharsMax }),
  requiredBalance: Type.Optional(units('Units to check; 1 when absent.')),
  requiredQuantity: Type.Optional(units('Alias of `requiredBalance`; if both are sent they must be equal.')),
  entityId: Type.Optional(usageId('Entity-scoped allowance.', { bytesMax: entityIdBytesMax })),
})

const featureType = oneOf('boolean', 'metered', 'creditSystem')

const Decision = Type.Object(
  {
    customerId: Type.String(),
    featureId: Type.String(),
    requiredBalance: Type.Integer(),
    code: oneOf('feature_found', 'customer_missing', 'feature_inapplicable'),
    allowed: Type.Boolean(),
    unlimited: Type.Boolean(),
    balance: nullableNumber,
    type: featureType,
  },
  { title: 'AccessDecision' },
)

export interface EntitledOptions {
  check: (query: AccessQuery) => Promise<AccessAnswer>
}

/** `POST /entitled`: reads Feature access, spends nothing. */
export function entitled({ check }: EntitledOptions): Operation<Static<typeof Body>> {
  return {
    path: '/entitled',
    schema: {
      operationId: 'checkAccess',
      summary: 'Check Feature access',
      description: 'Reads access and spends nothing. Look at `allowed`: a denial is a 200 too.',
      tags: ['Features'],
      body: Body,
      response: { 200: Decision, ...appErrors(400, 401, 403, 404, 410, 413, 503) },
    },
    run: async ({ app, body }) => {
      const { customerId: distinctId, featureId, requiredBalance, requiredQuantity, entityId } = body
      if (requiredBalance !== undefined && requiredQuantity !== undefined && requiredBalance !== requiredQuantity) {
        throw refuse('invalid_request', {
          issues: [{ path: 'requiredQuantity', message: 'must equal requiredBalance' }],
          message: 'requiredQuantity must equal requiredBalance',
        })
      }
      const required = requiredBalance ?? requiredQuantity ?? 1
      const decision = await check({
        scope: app,
        distinctId,
        featureKey: featureId,
        required: BigInt(required),
        entityId: entityId ?? null,
      })
      const answer = {
        customerId: distinctId,
        featureId,
        requiredBalance: required,
        code: decision.code,
        allowed: decision.allowed,
        unlimited: decision.unlimited,
        balance: decision.balance,
        type: decision.type,
      } satisfies Static<typeof Decision>
      return ok(JSON.stringify(answer))
    },
  }
}
