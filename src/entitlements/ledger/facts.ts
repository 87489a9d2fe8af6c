import type { Tx } from '../../db/pool.ts'
import { appendFacts, type Fact, type JsonObject } from '../../events/index.ts'
import { unitsMax } from '../../kernel/limits.ts'
import { decimalText } from '../catalogue/decimals.ts'
import { accessIntervals, type Interval, sameIntervals } from '../engine/intervals.ts'
import type { Change, Grant, Ms, Units } from '../types.ts'
import { selectAccountNames } from './facts-store.ts'

/** What one command did to one account, as far as the customer's events tell of it. */
export interface Happening {
  accountId: bigint
  /** Of the account, after the command. */
  version: bigint
  at: Ms
  operationId: string | null
  granted: readonly { grant: Grant; productId: string | null }[]
  changes: readonly Change[]
  /** The spend took the last unit: nothing is left until somebody grants or a reset comes. */
  exhausted: boolean
  /** When access is live by now; null when that did not change. */
  access: Interval[] | null
}

/** How events name an account. */
export interface AccountName {
  scopeId: number
  distinctId: string
  feature: { key: string; scale: number }
}

/** The access that a command left, if it is another than before. */
export function changedAccess(before: readonly Grant[], after: readonly Grant[], now: Ms): Interval[] | null {
  const access = accessIntervals(after, now)
  return sameIntervals(accessIntervals(before, now), access) ? null : access
}

/** Logs in the caller's transaction what happened to accounts. A customer whom no id names has no events. */
export async function tell(tx: Tx, happenings: readonly Happening[]): Promise<void> {
  const telling = happenings.filter(tells)
  if (telling.length === 0) return
  const names = await selectAccountNames(tx, [...new Set(telling.map(({ accountId }) => accountId))])
  await appendFacts(
    tx,
    telling.flatMap((happening) => {
      const name = names.get(happening.accountId)
      return name ? factsOf(happening, name) : []
    }),
  )
}

function tells({ granted, changes, exhausted, access }: Happening): boolean {
  return exhausted || access !== null || granted.length > 0 || changes.some(({ kind }) => toldKinds.has(kind))
}

const toldKinds = new Set<Change['kind']>(['revoke', 'refill', 'reverse'])

/** In the order in which they happened; access comes last, as what all of it led to. */
export function factsOf(happening: Happening, name: AccountName): Fact[] {
  const { accountId, version, at, operationId, granted, changes, exhausted, access } = happening
  const facts: Fact[] = []
  const state = (event: string, part: string, properties: JsonObject, entityId: string | null = null) => {
    facts.push({
      ...{ scopeId: name.scopeId, distinctId: name.distinctId, event, at, entityId },
      identity: `${accountId} ${version} ${part}`,
      properties: { feature: name.feature.key, version: String(version), ...properties },
    })
  }
  const units = (stored: Units) => amount(stored, name.feature.scale)

  for (const change of changes) {
    if (change.kind === 'refill') {
      const grant = { grant_id: grantName(change.grant), period: Number(change.period) }
      state('$feature_reset', String(change.grant), { ...grant, units: units(change.remaining) })
    } else if (change.kind === 'revoke') {
      const end = { grant_id: grantName(change.grant), revoked_at: instant(change.revokedAt) }
      state('$feature_revoked', String(change.grant), { ...end, units: units(-change.delta) })
    }
  }
  for (const { grant, productId } of granted) {
    const terms = { allowance: grant.unlimited ? null : units(grant.amount), unlimited: grant.unlimited }
    const ends = grant.expiresAt === null ? null : instant(grant.expiresAt)
    const times = { starts_at: instant(grant.effectiveAt), expires_at: ends }
    const source = { grant_id: grantName(grant.id), source: grant.origin, product_id: productId }
    state(
      '$feature_granted',
      String(grant.id),
      { ...source, ...terms, interval: grant.cycle?.unit ?? null, ...times },
      grant.entityId,
    )
  }
  const returned = changes.filter((change) => change.kind === 'reverse')
  if (returned.length > 0) {
    const total = returned.reduce((sum, { delta }) => sum + delta, 0n)
    state('$feature_reversed', '', { operation_id: operationId, units: units(total) })
  }
  if (exhausted) state('$feature_exhausted', operationId ?? '', { operation_id: operationId })
  if (access !== null) state('$feature_access_changed', '', { intervals: access.map((interval) => [...interval]) })
  return facts
}

/** As the Workspace API names it. */
function grantName(id: bigint): string {
  return `grant_${id}`
}

function instant(at: Ms): string {
  return new Date(at).toISOString()
}

/** A number, for filters and sums; its decimal text where a number would not be exact. */
function amount(stored: Units, scale: number): number | string {
  return stored <= unitsMax ? Number(decimalText(stored, scale)) : decimalText(stored, scale)
}
