import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { type LedgerEntry, listEntries } from '../../entitlements/index.ts'
import { operationIdCharsMax } from '../../kernel/limits.ts'
import { closed, instant, nullableString, usageId } from '../schema.ts'
import { amount, amountOf, instantOf } from './amount.ts'
import { findCustomer } from './customers.ts'
import type { Endpoints } from './endpoint.ts'
import { listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, key } from './parts.ts'

const EntryObject = Type.Object(
  {
    object: Type.Literal('ledger_entry'),
    id: Type.String(),
    operation_id: nullableString,
    grant_id: Type.String(),
    feature: Type.String({ description: 'Key of the Feature whose units moved.' }),
    entity_id: nullableString,
    delta: amount,
    remaining_after: amount,
    reason: Type.String({
      description: 'grant, draw, refill, lapse, rollover, revoke, restore, reverse, shrink or move',
    }),
    actor: Type.Unsafe<string | null>({
      ...nullableString,
      description: 'Id of the key or user, where a person moved it.',
    }),
    note: Type.Unsafe<string | null>({ ...nullableString, description: 'The words that were given for it.' }),
    occurred_at: instant,
  },
  { title: 'LedgerEntry' },
)

export function ledger({ get }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/customers/:id/ledger',
      operationId: 'listLedgerEntries',
      tag: 'Customers',
      summary: "List the entries of a customer's ledger",
      description: 'Newest first. Entries never change: their sum per grant is what is left of it.',
      params: byId,
      query: closed({
        ...listQuery,
        feature: Type.Optional(key),
        operation_id: Type.Optional(usageId('Of one operation.', { charsMax: operationIdCharsMax })),
        grant_id: Type.Optional(Type.String({ pattern: '^grant_[0-9]{1,18}$' })),
      }),
      answers: { 200: listOf(EntryObject) },
      errors: [404],
    },
    async (look, { params, query }) => {
      const page = pageOf(query, /^[0-9]{1,16}(_[0-9]{1,18}){2}_[0-9]{1,5}$/)
      const { customer, scope } = await findCustomer(pool, look.scopes(), params.id)
      const wanted = {
        customerId: customer.id,
        feature: query.feature ?? null,
        operationId: query.operation_id ?? null,
        grantId: query.grant_id === undefined ? null : BigInt(query.grant_id.slice('grant_'.length)),
      }
      const found = await listEntries(pool, scope, wanted, page)
      return listAnswer(found, page, { show, positionOf: ({ position }) => position })
    },
  )
}

function show(entry: LedgerEntry): Static<typeof EntryObject> {
  const { scale } = entry.feature
  return {
    object: 'ledger_entry',
    id: `entry_${entry.position}`,
    operation_id: entry.operationId,
    grant_id: `grant_${entry.grantId}`,
    feature: entry.feature.key,
    entity_id: entry.entityId,
    delta: amountOf(entry.delta, scale),
    remaining_after: amountOf(entry.remainingAfter, scale),
    reason: entry.kind,
    actor: entry.actor,
    note: entry.note,
    occurred_at: instantOf(entry.at),
  }
}
