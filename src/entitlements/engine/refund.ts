import { must } from '../../kernel/assert.ts'
import type { Account, Change, Grant, Ms, Units } from '../types.ts'
import { withChanges } from './apply.ts'
import { settle } from './settle.ts'

const nothing: readonly Change[] = Object.freeze([])

/**
 * Takes `units` back from what one grant has left, and from nothing else; due resets come first. What was spent already stays
 * spent and is counted as uncollected, on top of `uncollected` from earlier refunds.
 */
export function decideShrink(
  account: Account,
  grantId: bigint,
  { units, uncollected, now }: { units: Units; uncollected: Units; now: Ms },
): readonly Change[] {
  const before = grantIn(account, grantId)
  if (units <= 0n || before.unlimited || before.revokedAt !== null) return nothing
  const family = account.grants.filter((other) => other.id === grantId || other.rolledFrom === grantId)
  const resets = settle({ ...account, grants: family }, before.entityId, now)
  const { accountId, id, periodNo, remaining } = grantIn(withChanges(account, resets), grantId)
  const taken = units < remaining ? units : remaining
  return [
    ...resets,
    {
      ...{ kind: 'shrink', account: accountId, grant: id, period: periodNo },
      ...{ delta: -taken, remaining: remaining - taken, uncollected: uncollected + units - taken },
    },
  ]
}

/**
 * Gives back what refunds took from one grant, at most `units` and never beyond its amount, and lets it live on. A grant that
 * has ended meanwhile stays as it is.
 */
export function decideRestore(
  account: Account,
  grantId: bigint,
  { units, now }: { units: Units; now: Ms },
): readonly Change[] {
  const { accountId, id, periodNo, amount, remaining, expiresAt, revokedAt } = grantIn(account, grantId)
  if (expiresAt !== null && expiresAt <= now) return nothing
  const room = amount - remaining
  const given = units < room ? units : room
  if (given <= 0n && revokedAt === null) return nothing
  const place = { account: accountId, grant: id, period: periodNo }
  return [
    { kind: 'restore', ...place, delta: given > 0n ? given : 0n, remaining: remaining + (given > 0n ? given : 0n) },
  ]
}

function grantIn(account: Account, id: bigint): Grant {
  return must(
    account.grants.find((grant) => grant.id === id),
    'the grant lies in the account',
  )
}
