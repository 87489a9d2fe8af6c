import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import type { Balance, BalanceGrant, BalanceQuery } from '../../entitlements/index.ts'
import { getApp } from '../../tenancy/index.ts'
import { closed, instant, nullable, nullableNumber, nullableString, oneOf } from '../schema.ts'
import { amount, amountOf, nullableAmount, nullableInstantOf, numberOrText } from './amount.ts'
import { findCustomer } from './customers.ts'
import type { Endpoints } from './endpoint.ts'
import { listOf, wholeList } from './list.ts'
import { byId, entityId, id, key } from './parts.ts'

const BalanceObject = Type.Object(
  {
    object: Type.Literal('balance'),
    feature: Type.String({ description: 'Key of the Feature.' }),
    type: oneOf('boolean', 'metered', 'creditSystem'),
    entity_id: nullableString,
    allowed: Type.Boolean({ description: 'A check for one unit would be allowed; of a boolean Feature, live access.' }),
    live: Type.Boolean({ description: 'Some grant is live, drained or not.' }),
    unlimited: Type.Boolean(),
    balance: nullableNumber,
    credits: Type.Unsafe<number | string | null>({
      ...nullableAmount,
      description: 'Of a creditSystem, what is left to the last decimal.',
    }),
    used_total: amount,
    next_reset_at: nullable(instant),
    interval: nullableString,
    grants: Type.Array(
      Type.Object({
        id: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          description: 'Null for rolled-over units that no consume has written down yet.',
        }),
        feature: Type.String({ description: 'The Feature itself, or a creditSystem that pays for it.' }),
        entity_id: nullableString,
        source: oneOf('product', 'purchase', 'manual', 'journey', 'rollover'),
        allowance: nullableAmount,
        unlimited: Type.Boolean(),
        remaining: nullableAmount,
        starts_at: instant,
        expires_at: nullable(instant),
        next_reset_at: nullable(instant),
      }),
      { description: 'Live ones, in the order in which they are spent.' },
    ),
  },
  { title: 'Balance' },
)

export interface BalanceOptions {
  pool: Pool
  balances: (query: BalanceQuery) => Promise<Balance[]>
}

export function balances({ get }: Endpoints, { pool, balances }: BalanceOptions): void {
  get(
    {
      path: '/customers/:id/balances',
      operationId: 'listBalances',
      tag: 'Customers',
      summary: "List a customer's balances",
      description:
        'Of every published Feature the customer was ever granted, directly or in a creditSystem; or of the named one.',
      params: byId,
      query: closed({
        feature: Type.Optional(key),
        entity_id: Type.Optional(entityId),
        app_id: Type.Optional(id),
      }),
      answers: { 200: listOf(BalanceObject) },
      errors: [404],
    },
    async (look, { params, query }) => {
      const { customer, scope } = await findCustomer(pool, look.scopes(), params.id)
      const { workspaceId, environment } = look.caller
      const app = query.app_id === undefined ? null : await getApp(pool, workspaceId, environment, query.app_id)
      const found = await balances({
        scope,
        customerId: customer.id,
        feature: query.feature ?? null,
        entityId: query.entity_id ?? null,
        platform: app?.platform ?? null,
      })
      return wholeList(found.map(show))
    },
  )
}

function show(balance: Balance): Static<typeof BalanceObject> {
  const { feature } = balance
  return {
    object: 'balance',
    feature: feature.key,
    type: feature.type,
    entity_id: balance.entityId,
    allowed: balance.allowed,
    live: balance.live,
    unlimited: balance.unlimited,
    balance: balance.balance,
    credits: balance.credits === null ? null : numberOrText(balance.credits),
    used_total: amountOf(balance.used, 0),
    next_reset_at: nullableInstantOf(balance.nextResetAt),
    interval: balance.interval?.unit ?? null,
    grants: balance.grants.map(showGrant),
  }
}

function showGrant({ feature, grant, nextResetAt }: BalanceGrant): Static<typeof BalanceObject>['grants'][number] {
  const counted = feature.type !== 'boolean' && !grant.unlimited
  return {
    id: grant.id < 0n ? null : `grant_${grant.id}`,
    feature: feature.key,
    entity_id: grant.entityId,
    source: grant.origin,
    allowance: counted ? amountOf(grant.amount, feature.scale) : null,
    unlimited: grant.unlimited,
    remaining: counted ? amountOf(grant.remaining, feature.scale) : null,
    starts_at: nullableInstantOf(grant.effectiveAt) ?? '',
    expires_at: nullableInstantOf(grant.expiresAt),
    next_reset_at: nullableInstantOf(nextResetAt),
  }
}
