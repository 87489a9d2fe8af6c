import { must } from '../../kernel/assert.ts'
import type { Account, Change, Grant, Ms } from '../types.ts'
import { withChanges } from './apply.ts'
import { endOf } from './grant.ts'
import { settle } from './settle.ts'

const nothing: readonly Change[] = Object.freeze([])

/**
 * Ends a grant at `at`; at once when that is null or past. At once, its due resets come first, so that what ended periods
 * rolled over lives on, and then the unspent units leave. Before a later instant nothing moves. A revocation is only ever
 * brought forward: nothing changes when the grant is revoked by then already.
 */
export function decideRevoke(
  account: Account,
  grantId: bigint,
  { now, at }: { now: Ms; at: Ms | null },
): readonly Change[] {
  const grant = grantIn(account, grantId)
  const revokedAt = Math.max(now, at ?? now)
  if (grant.revokedAt !== null && grant.revokedAt <= revokedAt) return nothing
  if (revokedAt > now) return [revoke(grant, { revokedAt, takes: false })]

  const family = account.grants.filter((other) => other.id === grantId || other.rolledFrom === grantId)
  const resets = settle({ ...account, grants: family }, grant.entityId, now)
  return [...resets, revoke(grantIn(withChanges(account, resets), grantId), { revokedAt, takes: true })]
}

/** Ends every grant of one entity that has not ended: the live ones, the scheduled ones and what they rolled over. */
export function decideRetire(account: Account, entity: string, now: Ms): readonly Change[] {
  const own = { ...account, grants: account.grants.filter((grant) => grant.entityId === entity) }
  const resets = settle(own, entity, now)
  const ended = withChanges(own, resets).grants.filter((grant) => !hasEnded(grant, now))
  if (ended.length === 0) return nothing
  return [...resets, ...ended.map((grant) => revoke(grant, { revokedAt: now, takes: true }))]
}

function hasEnded(grant: Grant, now: Ms): boolean {
  const end = endOf(grant)
  return end !== null && end <= now
}

function revoke(grant: Grant, { revokedAt, takes }: { revokedAt: Ms; takes: boolean }): Change {
  const { accountId, id, periodNo, amount, remaining } = grant
  return {
    kind: 'revoke',
    account: accountId,
    grant: id,
    period: periodNo,
    delta: takes ? -remaining : 0n,
    remaining: takes ? 0n : remaining,
    revokedAt,
    uncollected: takes ? amount - remaining : 0n,
  }
}

function grantIn(account: Account, id: bigint): Grant {
  return must(
    account.grants.find((grant) => grant.id === id),
    'the grant lies in the account',
  )
}
