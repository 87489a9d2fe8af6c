import Type, { type Static } from 'typebox'
import { wireCustomerId } from '../../customers/index.ts'
import type { Pool } from '../../db/pool.ts'
import {
  attachProduct,
  type GrantRecord,
  grantUnits,
  listGrants,
  publishedFeatures,
  revokeGrant,
} from '../../entitlements/index.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { randomText } from '../../kernel/ids.ts'
import { noteCharsMax } from '../../kernel/limits.ts'
import { closed, instant, nullable, nullableString, oneOf } from '../schema.ts'
import { amount, amountOf, instantOf, nullableAmount, nullableInstantOf } from './amount.ts'
import { findCustomer } from './customers.ts'
import type { Endpoints } from './endpoint.ts'
import { allowance, interval, rollover, rolloverOf, unlimited } from './grant-terms.ts'
import { listAnswer, listOf, listQuery, pageOf, wholeList } from './list.ts'
import { byId, entityId, idOrKey, key } from './parts.ts'

const GrantObject = Type.Object(
  {
    object: Type.Literal('grant'),
    id: Type.String(),
    customer_id: Type.String(),
    feature: Type.String({ description: 'Key of the Feature.' }),
    entity_id: nullableString,
    allowance: nullableAmount,
    unlimited: Type.Boolean(),
    interval: nullableString,
    rollover: nullable(Type.Object({ max: nullableAmount, periods: nullable(Type.Integer()) })),
    remaining: nullableAmount,
    starts_at: instant,
    expires_at: nullable(instant),
    revoked_at: nullable(instant),
    state: oneOf('scheduled', 'live', 'drained', 'expired', 'revoked'),
    source: Type.Object({
      type: oneOf('product', 'purchase', 'manual', 'journey', 'rollover'),
      id: Type.Unsafe<string | null>({
        type: ['string', 'null'],
        description: 'Of a Product or a purchase its id, of a rollover the grant it was left of.',
      }),
    }),
    note: nullableString,
    uncollected: amount,
    created_at: instant,
  },
  { title: 'Grant' },
)

const startsAt = Type.Optional(nullable(instant))
const expiresAt = Type.Optional(nullable(instant))
const tag = 'Grants'

export function grants({ get, post }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/customers/:id/grants',
      operationId: 'listGrants',
      tag,
      summary: "List a customer's grants",
      description: 'Newest first, ended ones included. `remaining` is as of now.',
      params: byId,
      query: closed(listQuery),
      answers: { 200: listOf(GrantObject) },
      errors: [404],
    },
    async (look, { params, query }) => {
      const page = pageOf(query, /^[0-9]{1,18}$/)
      const { customer, scope } = await findCustomer(pool, look.scopes(), params.id)
      const found = await listGrants(pool, scope, customer.id, page)
      return listAnswer(found, page, { show, positionOf: ({ grant }) => grant.id.toString() })
    },
  )

  post(
    {
      path: '/customers/:id/grants',
      operationId: 'createGrant',
      tag,
      summary: 'Grant a Feature',
      description:
        'Boolean Features take neither allowance nor interval; the others need an allowance or `unlimited`. Rollover needs an interval.',
      params: byId,
      body: closed({
        feature: key,
        allowance,
        unlimited,
        interval: Type.Optional(interval),
        rollover: Type.Optional(rollover),
        starts_at: startsAt,
        expires_at: expiresAt,
        entity_id: Type.Optional(nullable(entityId)),
        note: Type.Optional(nullable(Type.String({ maxLength: noteCharsMax, 'x-storable': true }))),
      }),
      answers: { 201: GrantObject },
      errors: [404, 409, 410],
    },
    async (change, { params, body }) => {
      const { customer, scope } = await findCustomer(change.tx, change.scopes(), params.id)
      const [feature] = await publishedFeatures(change.tx, scope, [body.feature], () => 'feature')
      const rolled = rolloverOf(body.rollover)
      const [made] = await grantUnits(change.tx, scope, [
        {
          customerId: customer.id,
          feature: must(feature, 'a Feature for the key'),
          entityId: body.entity_id ?? null,
          allowance: units(body.allowance),
          unlimited: body.unlimited ?? false,
          interval: body.interval ?? null,
          rollover: rolled && { max: units(rolled.max), periods: rolled.periods },
          startsAt: timeOf(body.starts_at, 'starts_at'),
          expiresAt: timeOf(body.expires_at, 'expires_at'),
          source: { origin: 'manual', ref: `manual:${randomText(24)}`, rank: 0, productId: null },
          note: body.note ?? null,
          actor: change.caller.actor.id,
        },
      ])
      const after = show(must(made, 'a grant for the command'))
      await change.audit('create', 'grant', after.id, { after })
      return { status: 201, body: after }
    },
  )

  post(
    {
      path: '/customers/:id/products',
      operationId: 'attachProduct',
      tag,
      summary: 'Attach a Product by hand',
      description:
        'Makes the grants of the Product as it is now, and answers them. Templates per entity give each registered entity a grant of its own, also those that are registered later. Attaching it again grants again.',
      params: byId,
      body: closed({ product: idOrKey, starts_at: startsAt, expires_at: expiresAt }),
      answers: { 201: listOf(GrantObject) },
      errors: [404, 409, 410],
    },
    async (change, { params, body }) => {
      const { customer, scope } = await findCustomer(change.tx, change.scopes(), params.id)
      const made = await attachProduct(change.tx, scope, {
        customerId: customer.id,
        product: body.product,
        startsAt: timeOf(body.starts_at, 'starts_at'),
        expiresAt: timeOf(body.expires_at, 'expires_at'),
        actor: change.caller.actor.id,
      })
      const after = wholeList(made.map(show))
      await change.audit('attach_product', 'customer', wireCustomerId(customer.id), { after })
      return { status: 201, body: after }
    },
  )

  post(
    {
      path: '/grants/:id/revoke',
      operationId: 'revokeGrant',
      tag,
      summary: 'Revoke a grant',
      description:
        'At once, its unspent units leave; until a later `at` they stay usable. Spent units stay spent, and so does what ended periods have rolled over. A revocation can be brought forward, not put off: repeated, it answers the same.',
      params: closed({ id: Type.String({ pattern: '^grant_[0-9]{1,18}$' }) }),
      body: closed({
        reason: Type.Optional(nullable(Type.String({ maxLength: noteCharsMax, 'x-storable': true }))),
        at: Type.Optional(nullable(instant)),
      }),
      answers: { 200: GrantObject },
      errors: [404],
    },
    async (change, { params, body }) => {
      const grantId = BigInt(params.id.slice('grant_'.length))
      const { before, after } = await revokeGrant(change.tx, change.scopes(), grantId, {
        at: timeOf(body.at, 'at'),
        actor: change.caller.actor.id,
        note: body.reason ?? null,
      })
      const states = { before: show(before), after: show(after) }
      if (states.before.revoked_at !== states.after.revoked_at) {
        await change.audit('revoke', 'grant', states.after.id, states)
      }
      return { status: 200, body: states.after }
    },
  )
}

function units(count: number | null | undefined): bigint | null {
  return count === null || count === undefined ? null : BigInt(count)
}

/** The schema knows the form of an instant, not the calendar. */
export function timeOf(text: string | null | undefined, param: string): number | null {
  if (text === null || text === undefined) return null
  const ms = Date.parse(text)
  // A zone may take the last hours of 9999 into a year of five digits, which no answer can show.
  if (Number.isNaN(ms) || ms < 0 || ms > lastInstantMs) {
    throw refuse('invalid_request', { param, message: `${param} must be an instant from 1970 to 9999` })
  }
  return ms
}

const lastInstantMs = Date.parse('9999-12-31T23:59:59.999Z')

export function dateOf(text: string | null | undefined, param: string): Date | null {
  const ms = timeOf(text, param)
  return ms === null ? null : new Date(ms)
}

function sourceIdOf({ grant, productId, sourceRef }: GrantRecord): string | null {
  if (grant.rolledFrom !== null) return `grant_${grant.rolledFrom}`
  return grant.origin === 'purchase' ? (sourceRef.split(':')[1] ?? null) : productId
}

function show(record: GrantRecord): Static<typeof GrantObject> {
  const { grant, feature } = record
  const counted = feature.type !== 'boolean' && !grant.unlimited
  const shown = (stored: bigint) => amountOf(stored, feature.scale)
  return {
    object: 'grant',
    id: `grant_${grant.id}`,
    customer_id: wireCustomerId(record.customerId),
    feature: feature.key,
    entity_id: grant.entityId,
    allowance: counted ? shown(grant.amount) : null,
    unlimited: grant.unlimited,
    interval: grant.cycle?.unit ?? null,
    rollover: grant.rollover && {
      max: grant.rollover.max === null ? null : shown(grant.rollover.max),
      periods: grant.rollover.periods,
    },
    remaining: counted ? shown(grant.remaining) : null,
    starts_at: instantOf(grant.effectiveAt),
    expires_at: nullableInstantOf(grant.expiresAt),
    revoked_at: nullableInstantOf(grant.revokedAt),
    state: record.state,
    source: {
      type: grant.origin,
      id: sourceIdOf(record),
    },
    note: record.note,
    uncollected: shown(record.uncollected),
    created_at: instantOf(grant.createdAt),
  }
}
