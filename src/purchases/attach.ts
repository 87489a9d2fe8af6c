import { byDistinctId, type Customer, getCustomer, resolveOrCreate, survivorsOf } from '../customers/index.ts'
import type { Tx } from '../db/pool.ts'
import { appendFacts } from '../events/index.ts'
import { must } from '../kernel/assert.ts'
import { claimDays, dayMs } from '../kernel/limits.ts'
import { retryAfterS } from '../kernel/retry-after.ts'
import { accountTokensOf } from './account-tokens.ts'
import { applyState } from './apply-state.ts'
import {
  deleteClaims,
  insertBinding,
  insertOutbox,
  insertResult,
  insertTransfer,
  selectBinding,
  selectClaim,
  selectResult,
  selectTransfers,
  upsertClaim,
} from './claim-store.ts'
import { isConsumable } from './consumable.ts'
import { giveTo } from './give-to.ts'
import { type Lineage, placeOf } from './lineage-store.ts'
import { decideOwner, type Ownership, type TokenOwner } from './ownership.ts'
import { type Period, selectPeriods } from './period-store.ts'
import { isOpen, moveGrants, syncGrants } from './sync-grants.ts'
import type { Ms, PurchaseIdentity, Refused, StoreApp, Unsupported, VerifiedPurchase } from './types.ts'

export interface AttachServices {
  tombstoneKey: Buffer
  sealingKey: Buffer
  /** Public addresses of this deployment, as clients are configured with them. */
  baseUrls: readonly string[]
}

export type Attached =
  | { kind: 'attached'; customerId: string; replay: boolean; identity: PurchaseIdentity }
  | Refused
  /** Nobody brought it, and nothing says whose it is. */
  | { kind: 'unowned' }

/** Periods of a lineage that are looked at: the current ones and the grants that may still stand are among the newest. */
const periodsLookedAt = 50

/** Details that may turn into access by themselves. */
const hopeful: readonly string[] = [
  'billing_retry',
  'duration_not_configured',
  'on_hold',
  'paused',
  'purchase_pending',
] satisfies Unsupported[]

/**
 * Writes what was verified and gives it to whom it belongs, in the caller's transaction, which commits whatever the outcome:
 * an authentic purchase that nobody could be given stays, and a later binding, notification or transfer attaches it.
 * `distinctId` null: a store told us, nobody asks. Throws `customer_deleted`.
 */
export async function attach(
  tx: Tx,
  services: AttachServices,
  app: StoreApp,
  purchase: VerifiedPurchase,
  distinctId: string | null,
): Promise<Attached> {
  const { lineage, now } = await applyState(tx, app, purchase, { sealingKey: services.sealingKey })
  const periods = await selectPeriods(tx, lineage, periodsLookedAt)
  const state: State = { tx, services, app, purchase, lineage, periods, now }
  const owner = await ownerOf(state)
  // Whoever asks: what the store says of it is true for its owner at once.
  if (owner.kind === 'customer') {
    await syncGrants(tx, app, lineage, { periods, ownerId: owner.id, now })
    // Renewals need no word, but every change of plan, top-up and resubscription does, and whoever wants it consumed now.
    await insertOutbox(tx, placeOf(app, purchase), purchase.outbox)
  }
  return distinctId === null ? attachUnasked(state, owner) : attachTo(state, owner, distinctId)
}

interface State {
  tx: Tx
  services: AttachServices
  app: StoreApp
  purchase: VerifiedPurchase
  lineage: Lineage
  periods: Period[]
  now: Ms
}

type Owner = Parameters<typeof decideOwner>[0]['owner']

/** As the record that it is by now. */
async function ownerOf({ tx, app, lineage }: State): Promise<Owner> {
  if (lineage.ownerDeleted) return { kind: 'deleted' }
  if (lineage.ownerId === null) return { kind: 'none' }
  const survivor = (await survivorsOf(tx, app.scope, [lineage.ownerId])).get(lineage.ownerId)
  return survivor === undefined ? { kind: 'deleted' } : { kind: 'customer', id: survivor }
}

async function attachTo(state: State, owner: Owner, distinctId: string): Promise<Attached> {
  const { tx, app, lineage, purchase, periods, now } = state
  const claimant = await byDistinctId(tx, app.scope, distinctId)
  const [lastTransfer] = owner.kind === 'customer' ? await selectTransfers(tx, lineage, 1) : []
  const hasAccess = periods.some((period) => isOpen(period, now))
  const isOthers = owner.kind === 'customer' && owner.id !== claimant?.id
  const ownership = decideOwner({
    ...{ owner, hasAccess, now, claimantId: claimant?.id ?? null, familyShared: purchase.familyShared },
    tokens: await tokenOwners(state, claimant, distinctId),
    isConsumable: isOthers && (await isConsumable(tx, app, purchase, state)),
    lastTransferAt: lastTransfer?.at ?? null,
    settings: app.settings,
  })
  switch (ownership.kind) {
    case 'conflict':
      return refused('conflict', 'another customer has it')
    case 'owner_unverified':
      return refused('owner_unverified', 'its account token is not one of the customer')
    case 'owned':
      return answered(state, must(claimant, 'owners have a record').id, { replay: true })
    case 'transfer':
      return transferTo(state, owner, distinctId)
    case 'attach':
      if (purchase.consumedElsewhere) return refused('conflict', 'it was used up already')
      return hasAccess ? give(state, distinctId, ownership) : refuseClosed(state, claimant, distinctId)
  }
}

/** A store told us: it belongs to whoever its token names, or else to whoever claimed it before. */
async function attachUnasked(state: State, owner: Owner): Promise<Attached> {
  const { tx, app, lineage, purchase, periods, now } = state
  if (owner.kind === 'customer') return answered(state, owner.id, { replay: true })
  if (owner.kind === 'deleted' || purchase.consumedElsewhere) return { kind: 'unowned' }
  if (!periods.some((period) => isOpen(period, now))) return { kind: 'unowned' }
  const claim = await selectClaim(tx, placeOf(app, purchase), keysOf(state), now)
  const bound = await boundCustomer(state, lineage.accountToken ?? purchase.renewalAccountToken)
  if (bound !== null) return give(state, { customerId: bound }, { kind: 'attach', first: false })
  if (!claim) return { kind: 'unowned' }
  return give(state, claim.distinctId, { kind: 'attach', first: false })
}

async function transferTo(state: State, owner: Owner, distinctId: string): Promise<Attached> {
  const { tx, services, app, lineage, now } = state
  const { customer } = await resolveOrCreate(tx, app.scope, distinctId, { tombstoneKey: services.tombstoneKey, now })
  // Read again: the owner so far was given what the new state says.
  const periods = await selectPeriods(tx, lineage, periodsLookedAt)
  const fromId = owner.kind === 'customer' ? owner.id : null
  const nth = (await selectTransfers(tx, lineage, 1000)).length + 1
  const ownerId = await giveTo(tx, app.scope, lineage, { customerId: customer.id, now })
  await moveGrants(tx, app, lineage, { periods, ownerId, now, nth })
  await insertTransfer(tx, lineage, { fromId, toId: ownerId, cause: 'claim', actor: null, reason: null, at: now })
  return answered(state, ownerId, { replay: false })
}

async function give(
  state: State,
  whom: string | { customerId: string },
  { first }: Extract<Ownership, { kind: 'attach' }>,
): Promise<Attached> {
  const { tx, services, app, purchase, lineage, periods, now } = state
  const { customerId: foundId, distinctId } = await recipient(state, whom)
  const customerId = await giveTo(tx, app.scope, lineage, { customerId: foundId, now })
  await syncGrants(tx, app, lineage, { periods, ownerId: customerId, now })
  const place = placeOf(app, purchase)
  await insertOutbox(tx, place, purchase.outbox)
  if (first) await remember(state, customerId, services)
  await deleteClaims(tx, place, keysOf(state))
  if (distinctId !== null) await tellCompleted(state, distinctId)
  return answered(state, customerId, { replay: false })
}

async function recipient(
  { tx, services, app, now }: State,
  whom: string | { customerId: string },
): Promise<{ customerId: string; distinctId: string | null }> {
  if (typeof whom === 'string') {
    const { customer } = await resolveOrCreate(tx, app.scope, whom, { tombstoneKey: services.tombstoneKey, now })
    return { customerId: customer.id, distinctId: whom }
  }
  return { ...whom, distinctId: await firstDistinctId(tx, app, whom.customerId) }
}

async function firstDistinctId(tx: Tx, app: StoreApp, customerId: string): Promise<string | null> {
  return (await getCustomer(tx, app.scope, customerId)).distinctIds[0]?.distinctId ?? null
}

/** What it carries is the customer's from now on; one of Apple's that carries nothing gets a token of theirs. */
async function remember({ tx, app, purchase, lineage, now }: State, customerId: string, services: AttachServices) {
  const { store, accountToken, familyShared, storeEnvironment } = purchase
  if (accountToken !== null) {
    await insertBinding(tx, app.scope, {
      ...{ appId: app.appId, store, value: accountToken, customerId, source: 'first_claim', now },
    })
    return
  }
  if (store !== 'appstore' || familyShared || storeEnvironment === 'xcode' || !app.credentials.appstore?.api) return
  const distinctId = await firstDistinctId(tx, app, customerId)
  if (distinctId === null) return
  const [token] = accountTokensOf(app, store, distinctId, services.baseUrls)
  const payload = {
    originalTransactionId: lineage.rootKey,
    appAccountToken: must(token, 'the standard rule gives one'),
  }
  const item = { kind: 'account_token', key: lineage.rootKey, payload, deadline: null } as const
  await insertOutbox(tx, placeOf(app, purchase), [item])
}

async function answered(
  { tx, app, purchase, now }: State,
  customerId: string,
  { replay }: { replay: boolean },
): Promise<Attached> {
  const place = placeOf(app, purchase)
  const { evidenceKey } = purchase
  const saved = await selectResult(tx, place, evidenceKey)
  if (!saved) await insertResult(tx, place, { evidenceKey, customerId, body: purchase.result, now })
  return { kind: 'attached', customerId, replay, identity: saved ?? purchase.result }
}

/** It is the caller's, but gives nothing now; what may come back is kept for them. */
async function refuseClosed(state: State, claimant: Customer | null, distinctId: string): Promise<Refused> {
  const { tx, app, purchase, lineage, now } = state
  // Time alone may have ended what the store last called active.
  const detail = lineage.status === 'active' || lineage.status === 'grace' ? 'expired' : lineage.status
  if (hopeful.includes(detail)) {
    await upsertClaim(tx, placeOf(app, purchase), {
      ...{ evidenceKey: purchase.evidenceKey, customerId: claimant?.id ?? null, distinctId, reason: detail },
      ...{ storeProductId: null, evidenceSealed: null, now, expiresAt: now + claimDays * dayMs },
    })
  }
  return { ...refused('unsupported', detail), ...(detail === 'duration_not_configured' ? unmeasuredOf(state) : {}) }
}

/** How long it lasts is for the catalogue to say: with its evidence it can be given as soon as it does. */
function unmeasuredOf({ purchase, periods }: State): Pick<Refused, 'unmeasured'> {
  const { storeEnvironment, evidenceKey } = purchase
  const period = periods.find((each) => each.evidenceKey === evidenceKey)
  return period ? { unmeasured: { storeEnvironment, evidenceKey, storeProductId: period.storeProductId } } : {}
}

async function tokenOwners(state: State, claimant: Customer | null, distinctId: string): Promise<TokenOwner[]> {
  const { lineage, purchase } = state
  const own = lineage.accountToken ?? purchase.accountToken
  const tokens = [own, purchase.renewalAccountToken]
  const ids = new Set([distinctId, ...(claimant?.distinctIds ?? []).map((each) => each.distinctId)])
  const owners: TokenOwner[] = []
  for (const token of tokens) owners.push(await tokenOwner(state, token, ids, claimant))
  return owners
}

async function tokenOwner(
  state: State,
  token: string | null,
  ids: ReadonlySet<string>,
  claimant: Customer | null,
): Promise<TokenOwner> {
  if (token === null) return { kind: 'none' }
  const { app, purchase, services } = state
  const isTheirs = [...ids].some((id) => accountTokensOf(app, purchase.store, id, services.baseUrls).includes(token))
  if (isTheirs) return { kind: 'claimant' }
  const customerId = await boundCustomer(state, token)
  if (customerId === null) return { kind: 'unknown' }
  return customerId === claimant?.id ? { kind: 'claimant' } : { kind: 'other', customerId }
}

async function boundCustomer({ tx, app, purchase }: State, token: string | null): Promise<string | null> {
  if (token === null) return null
  const { appId, scope } = app
  const binding = await selectBinding(tx, scope, { appId, store: purchase.store, value: token })
  if (!binding) return null
  return (await survivorsOf(tx, scope, [binding.customerId])).get(binding.customerId) ?? null
}

async function tellCompleted({ tx, app, purchase, periods, now }: State, distinctId: string): Promise<void> {
  const { store, storeEnvironment, evidenceKey, result } = purchase
  const period = periods.find((each) => each.evidenceKey === evidenceKey) ?? periods[0]
  await appendFacts(tx, [
    {
      ...{ scopeId: app.scope.scopeId, event: '$purchase_completed', distinctId, at: now, entityId: null },
      identity: `${app.appId} ${store} ${storeEnvironment} ${evidenceKey}`,
      properties: {
        ...{ store, store_environment: storeEnvironment, app_id: app.appId },
        ...{ product_id: period?.productId ?? null, store_product_id: period?.storeProductId ?? null },
        ...{ quantity: period?.quantity ?? 1, transaction_id: result.transactionId ?? null },
        order_id: result.orderId ?? null,
      },
    },
  ])
}

function keysOf({ purchase, periods }: State): string[] {
  return [...new Set([purchase.evidenceKey, ...purchase.linkedKeys, ...periods.map(({ evidenceKey }) => evidenceKey)])]
}

function refused(suffix: Refused['suffix'], detail: string): Refused {
  const isTemporary = suffix === 'unavailable' || suffix === 'reconciliation_retryable'
  return { kind: 'refused', suffix, detail, ...(isTemporary ? { retryAfterS: retryAfterS() } : {}) }
}
