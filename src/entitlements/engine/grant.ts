import type { Grant, Ms } from '../types.ts'
import { periodAt, periodStart } from './cycle.ts'

/** Half-open: from the instant it takes effect until just before it expires or is revoked. Drained or not. */
export function live(grant: Grant, t: Ms): boolean {
  const { effectiveAt, expiresAt, revokedAt } = grant
  return effectiveAt <= t && (expiresAt === null || t < expiresAt) && (revokedAt === null || t < revokedAt)
}

/** An entity sees its own grants and the shared ones; a request without entity sees the shared ones only. */
export function visible(grant: Grant, entity: string | null): boolean {
  return grant.entityId === null || grant.entityId === entity
}

/** The first instant at which the grant is no longer live, by expiry or revocation; null is never. */
export function endOf(grant: Grant): Ms | null {
  const { expiresAt, revokedAt } = grant
  if (expiresAt === null || revokedAt === null) return expiresAt ?? revokedAt
  return Math.min(expiresAt, revokedAt)
}

/** When a settled grant refills next; null when it never will: not recurring, ended by then, or not paid that far. */
export function nextReset(grant: Grant, t: Ms): Ms | null {
  const { cycle, periodNo, paidUntil } = grant
  if (cycle === null || grant.unlimited) return null
  const following = periodStart(cycle, periodNo + 1n)
  // Behind t only when the last period has begun already, or begun before the grant took effect.
  const next = t < following ? following : periodAt(cycle, t).end
  const end = endOf(grant)
  return (paidUntil === null || next < paidUntil) && (end === null || next < end) ? next : null
}
