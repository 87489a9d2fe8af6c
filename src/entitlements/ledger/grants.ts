import type { Tx } from '../../db/pool.ts'
import { assert, must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type GrantTerms, type Interval, type StoredTerms, storedTerms } from '../catalogue/grant-terms.ts'
import type { Feature, Grant, GrantOrigin, Ms } from '../types.ts'
import { detailJson } from './entry-detail.ts'
import { changedAccess, tell } from './facts.ts'
import { type GrantRecord, stateAt } from './grant-record.ts'
import { grantOf } from './grant-row.ts'
import {
  advanceAccounts,
  type GrantInsert,
  insertGrantEntries,
  insertGrants,
  type LockedAccount,
  lockAccountsOf,
  selectClock,
} from './grants-store.ts'
import { holdCustomers } from './hold-customers.ts'
import { selectGrantsIn } from './movements-store.ts'
import { insertAccounts } from './usage-store.ts'

/** Where a grant comes from. One source makes at most one grant per Feature and entity, ever. */
export interface GrantSource {
  origin: GrantOrigin
  /** Unique in the scope, such as `manual:…` or a store transaction. */
  ref: string
  /** 0 recurring, free or given; 1 purchased. */
  rank: 0 | 1
  productId: string | null
}

export interface NewGrant extends GrantTerms {
  /** UUID of the customer record. A merged one stands for its survivor. */
  customerId: string
  feature: Pick<Feature, 'id' | 'key' | 'type' | 'scale'>
  entityId: string | null
  /** Null: at once. */
  startsAt: Ms | null
  /** Half-open; null is never. */
  expiresAt: Ms | null
  /** Null: refills as long as it lives. */
  paidUntil?: Ms | null
  source: GrantSource
  note: string | null
  /** Who makes it, for the ledger: the id of a key or user; absent when Turnpike itself does. */
  actor?: string
}

/**
 * Makes grants in the caller's transaction, one ledger entry for each, in order. The one way units come into being: by
 * hand, through Products, purchases and journeys. Throws `invalid_request` for terms that do not fit, `not_found` for a
 * customer that is not there, `service_unavailable` when merges keep moving it.
 */
export async function grantUnits(tx: Tx, scope: Scope, grants: NewGrant[]): Promise<GrantRecord[]> {
  if (grants.length === 0) return []
  const terms = grants.map((grant) => storedTerms(grant.feature, grant))
  const owners = await holdCustomers(tx, scope, [...new Set(grants.map((grant) => grant.customerId))])
  const accounts = await openAccounts(tx, scope, grants, owners)
  const now = await selectClock(tx, scope)

  const rows = grants.map((grant, i) => {
    const account = accounts.get(accountKey(owners, grant))
    return rowOf(grant, must(terms[i], 'terms for each'), must(account, 'the account was made and locked'), now)
  })
  const ids = await insertGrants(tx, scope, rows)
  assert(ids.length === rows.length, 'every grant has its row')
  await enter(tx, scope, [...accounts.values()], rows, ids)
  await tellGranted(tx, [...accounts.values()], rows, ids)
  return rows.map((row, i) => {
    const grant = must(grants[i], 'a row for each')
    return {
      grant: { ...row, id: must(ids[i], 'an id for each') },
      customerId: must(owners.get(grant.customerId), 'an owner for each'),
      feature: grant.feature,
      productId: row.productId,
      sourceRef: row.sourceRef,
      note: row.note,
      state: stateAt(row, grant.feature.type, row.createdAt),
      uncollected: 0n,
    }
  })
}

/** The accounts of all (owner, Feature) pairs, made where missing, locked. */
async function openAccounts(
  tx: Tx,
  scope: Scope,
  grants: NewGrant[],
  owners: Map<string, string>,
): Promise<Map<string, LockedAccount>> {
  const pairs = new Map(
    grants.map((grant) => [
      accountKey(owners, grant),
      { customerId: must(owners.get(grant.customerId), 'an owner for each'), featureId: grant.feature.id },
    ]),
  )
  await insertAccounts(
    tx.client,
    [...pairs.values()].map((pair) => ({ scopeId: scope.scopeId, ...pair })),
  )
  const locked = await lockAccountsOf(tx, scope, [...pairs.values()])
  return new Map(locked.map((account) => [`${account.customer_id} ${account.feature_id}`, account]))
}

function accountKey(owners: Map<string, string>, { customerId, feature }: NewGrant): string {
  return `${owners.get(customerId)} ${feature.id}`
}

function rowOf(grant: NewGrant, terms: StoredTerms, account: LockedAccount, now: Ms): GrantInsert {
  const at = Math.max(now, Number(account.last_at_ms))
  const { startsAt, expiresAt, source } = grant
  const effectiveAt = startsAt ?? at
  if (expiresAt !== null && expiresAt <= effectiveAt) {
    throw refuse('invalid_request', { param: 'expires_at', message: 'expires_at must be after starts_at' })
  }
  return {
    id: 0n,
    accountId: account.id,
    featureId: grant.feature.id,
    entityId: grant.entityId,
    origin: source.origin,
    sourceRef: source.ref,
    productId: source.productId,
    note: grant.note,
    actor: grant.actor ?? null,
    rolledFrom: null,
    rank: source.rank,
    unlimited: terms.unlimited,
    amount: terms.amount,
    remaining: terms.amount,
    effectiveAt,
    expiresAt,
    paidUntil: grant.paidUntil ?? null,
    cycle: cycleOf(terms.interval, effectiveAt),
    periodNo: 0n,
    rollover: terms.rollover,
    revokedAt: null,
    createdAt: at,
  }
}

function cycleOf(unit: Interval | null, anchor: Ms): Grant['cycle'] {
  return unit && { unit, count: 1, anchor }
}

/** One version per account, one line per grant. */
async function enter(
  tx: Tx,
  scope: Scope,
  accounts: LockedAccount[],
  rows: GrantInsert[],
  ids: bigint[],
): Promise<void> {
  const lines = new Map<bigint, number>()
  const lastAt = new Map<bigint, Ms>()
  const entries = rows.map((row, i) => {
    const line = lines.get(row.accountId) ?? 0
    lines.set(row.accountId, line + 1)
    lastAt.set(row.accountId, row.createdAt)
    const account = accounts.find(({ id }) => id === row.accountId)
    return {
      at: row.createdAt,
      accountId: row.accountId,
      version: must(account, 'grants of these accounts').version + 1n,
      line,
      grantId: must(ids[i], 'an id for each'),
      amount: row.amount,
      detail: detailJson({ actor: row.actor, note: row.note }),
    }
  })
  await insertGrantEntries(tx, scope, entries)
  await advanceAccounts(
    tx,
    accounts.map(({ id, version }) => ({ id, version: version + 1n, lastAt: lastAt.get(id) ?? 0 })),
  )
}

async function tellGranted(tx: Tx, accounts: LockedAccount[], rows: GrantInsert[], ids: bigint[]): Promise<void> {
  const held = await selectGrantsIn(
    tx,
    accounts.map(({ id }) => id),
    [],
  )
  const grants = held.map((row) => grantOf(row, 0))
  const made = new Set(ids)
  await tell(
    tx,
    accounts.map(({ id, version }) => {
      const granted = rows.flatMap((row, i) =>
        row.accountId === id
          ? [{ grant: { ...row, id: must(ids[i], 'an id for each') }, productId: row.productId }]
          : [],
      )
      const at = must(granted[0], 'no account without a grant').grant.createdAt
      const after = grants.filter(({ accountId }) => accountId === id)
      const before = after.filter((grant) => !made.has(grant.id))
      const what = { accountId: id, version: version + 1n, at, operationId: null, granted, changes: [] }
      return { ...what, exhausted: false, access: changedAccess(before, after, at) }
    }),
  )
}
