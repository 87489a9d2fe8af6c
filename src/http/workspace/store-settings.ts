import Type, { type Static } from 'typebox'
import { parseCustomerId, wireCustomerId } from '../../customers/index.ts'
import type { Pool, Sql } from '../../db/pool.ts'
import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'
import {
  cardGraceHoursMax,
  checkoutReturnUrlsMax,
  pollLeaseHoursMax,
  returnUrlCharsMax,
  reviewCustomersMax,
  storeIdCharsMax,
  tokenNamespacesMax,
} from '../../kernel/limits.ts'
import { isReturnUrl, type LoadStoreApp, type StoreSettings, updateSettings } from '../../purchases/index.ts'
import { type App, getApp, type Scope } from '../../tenancy/index.ts'
import { closed, instant, nullable, oneOf } from '../schema.ts'
import { instantOf } from './amount.ts'
import type { Caller } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { timeOf } from './grants.ts'
import { byId, environment } from './parts.ts'

const fields = {
  sandbox_in_live: oneOf('review', 'anybody', 'nobody'),
  review_open_until: nullable(instant),
  review_customers: Type.Array(Type.String({ maxLength: 64 }), { maxItems: reviewCustomersMax, uniqueItems: true }),
  unbound_purchases: oneOf('reject', 'first_claim'),
  transfer_policy: oneOf('keep', 'transfer_if_inactive', 'transfer'),
  client_token_namespaces: nullable(
    Type.Array(Type.String({ minLength: 1, maxLength: storeIdCharsMax, 'x-storable': true }), {
      maxItems: tokenNamespacesMax,
      description:
        'Base addresses and fixed words that clients derive account tokens with; null: those of this deployment.',
    }),
  ),
  revocation: oneOf('background', 'strict'),
  poll_lease_hours: Type.Integer({ minimum: 0, maximum: pollLeaseHoursMax }),
  play_voided_order_ends_access: Type.Boolean(),
  checkout_return_urls: Type.Array(
    Type.String({ minLength: 1, maxLength: returnUrlCharsMax, 'x-storable': true, 'x-trimmed': true }),
    {
      maxItems: checkoutReturnUrlsMax,
      uniqueItems: true,
      description:
        'Where payment pages may send people back to: an address with any query; what is below it too when it ends with a slash. The first is the usual one; none: no payments by card.',
    },
  ),
  card_grace_hours: Type.Integer({
    minimum: 0,
    maximum: cardGraceHoursMax,
    description: 'How long a subscription goes on whose card was declined.',
  }),
}

const SettingsObject = Type.Object(
  { object: Type.Literal('store_settings'), app_id: Type.String(), environment, ...fields },
  { title: 'StoreSettings' },
)

const Changes = closed({
  sandbox_in_live: Type.Optional(fields.sandbox_in_live),
  review_open_until: Type.Optional(fields.review_open_until),
  review_customers: Type.Optional(fields.review_customers),
  unbound_purchases: Type.Optional(fields.unbound_purchases),
  transfer_policy: Type.Optional(fields.transfer_policy),
  client_token_namespaces: Type.Optional(fields.client_token_namespaces),
  revocation: Type.Optional(fields.revocation),
  poll_lease_hours: Type.Optional(fields.poll_lease_hours),
  play_voided_order_ends_access: Type.Optional(fields.play_voided_order_ends_access),
  checkout_return_urls: Type.Optional(fields.checkout_return_urls),
  card_grace_hours: Type.Optional(fields.card_grace_hours),
})

export interface StoreServices {
  pool: Pool
  clock: Clock
  sealingKey: Buffer
  loadStoreApp: LoadStoreApp
}

export function storeSettings({ get, patch }: Endpoints, { pool, clock, loadStoreApp }: StoreServices): void {
  get(
    {
      path: '/apps/:id/store_settings',
      operationId: 'getStoreSettings',
      tag: 'Stores',
      summary: 'Get what an app accepts from its stores',
      params: byId,
      answers: { 200: SettingsObject },
      errors: [404],
    },
    async (look, { params }) => {
      const { app, scope } = await appAndScope(pool, look, params.id)
      const { settings } = await loadStoreApp(pool, scope, app.id)
      return show(app, scope, settings)
    },
  )

  patch(
    {
      path: '/apps/:id/store_settings',
      operationId: 'updateStoreSettings',
      tag: 'Stores',
      summary: 'Change what an app accepts from its stores',
      description: 'Changes the named fields only.',
      role: 'admin',
      params: byId,
      body: Changes,
      answers: { 200: SettingsObject },
      errors: [404],
    },
    async (change, { params, body }) => {
      const { app, scope } = await appAndScope(change.tx, change, params.id)
      const { before, after } = await updateSettings(change.tx, scope, app.id, {
        changes: changesOf(body, scope.environment),
        now: clock.now(),
      })
      const states = { before: show(app, scope, before), after: show(app, scope, after) }
      await change.audit('update', 'store_settings', app.id, states)
      return { status: 200, body: states.after }
    },
  )
}

/** An app of the caller's workspace and the scope of its data. Throws `not_found`. */
export async function appAndScope(
  sql: Sql,
  { caller, scope }: { caller: Caller; scope: (projectId?: string) => Scope },
  id: string,
): Promise<{ app: App; scope: Scope }> {
  const app = await getApp(sql, caller.workspaceId, caller.environment, id)
  return { app, scope: scope(app.projectId) }
}

function changesOf(body: Static<typeof Changes>, where: Scope['environment']): Partial<StoreSettings> {
  const changes: Partial<StoreSettings> = {
    ...(body.sandbox_in_live === undefined ? {} : { sandboxInLive: body.sandbox_in_live }),
    ...(body.unbound_purchases === undefined ? {} : { unboundPurchases: body.unbound_purchases }),
    ...(body.transfer_policy === undefined ? {} : { transferPolicy: body.transfer_policy }),
    ...(body.client_token_namespaces === undefined ? {} : { clientTokenNamespaces: body.client_token_namespaces }),
    ...(body.revocation === undefined ? {} : { revocation: body.revocation }),
    ...(body.card_grace_hours === undefined ? {} : { cardGraceHours: body.card_grace_hours }),
    ...(body.poll_lease_hours === undefined ? {} : { pollLeaseHours: body.poll_lease_hours }),
  }
  if (body.play_voided_order_ends_access !== undefined) {
    changes.playVoidedOrderEndsAccess = body.play_voided_order_ends_access
  }
  if (body.review_open_until !== undefined) {
    changes.reviewOpenUntil = timeOf(body.review_open_until, 'review_open_until')
  }
  if (body.review_customers !== undefined) changes.reviewCustomers = body.review_customers.map(recordId)
  if (body.checkout_return_urls !== undefined) {
    changes.checkoutReturnUrls = body.checkout_return_urls.map((text) => returnUrl(text, where))
  }
  return changes
}

function returnUrl(text: string, where: Scope['environment']): string {
  if (isReturnUrl(text, where)) return text
  throw refuse('invalid_request', {
    param: 'checkout_return_urls',
    message: 'checkout_return_urls are https addresses, in test also local ones',
  })
}

function recordId(text: string): string {
  const id = parseCustomerId(text)
  if (id !== null) return id
  throw refuse('invalid_request', {
    param: 'review_customers',
    message: 'review_customers are ids of customers: cus_…',
  })
}

function show(app: App, { environment: where }: Scope, settings: StoreSettings): Static<typeof SettingsObject> {
  return {
    object: 'store_settings',
    app_id: app.id,
    environment: where,
    sandbox_in_live: settings.sandboxInLive,
    review_open_until: settings.reviewOpenUntil === null ? null : instantOf(settings.reviewOpenUntil),
    review_customers: settings.reviewCustomers.map(wireCustomerId),
    unbound_purchases: settings.unboundPurchases,
    transfer_policy: settings.transferPolicy,
    client_token_namespaces: settings.clientTokenNamespaces,
    revocation: settings.revocation,
    poll_lease_hours: settings.pollLeaseHours,
    play_voided_order_ends_access: settings.playVoidedOrderEndsAccess,
    checkout_return_urls: settings.checkoutReturnUrls,
    card_grace_hours: settings.cardGraceHours,
  }
}
