import { grantSettledAfterMs } from '../../kernel/limits.ts'
import type { Account, Grant, Ms } from '../types.ts'
import { endOf, live } from './grant.ts'
import { settle } from './settle.ts'

/**
 * The grants that no decision needs to look at any more: those that ended long ago, and drained ones of once, as long as
 * another grant keeps access live for the same requests and to no earlier end. Whoever brings an end forward shows the
 * drained ones again. `account.grants` are all that are not hidden yet.
 */
export function hideable(account: Account, now: Ms): Grant[] {
  const kept = new Set(account.grants.filter((grant) => !endedLongAgo(account, grant, now)))
  const drained = [...kept].filter(isDrained).sort((a, b) => endIn(a) - endIn(b) || (a.id < b.id ? -1 : 1))
  for (const grant of drained) {
    kept.delete(grant)
    if (![...kept].some((other) => live(other, now) && covers(other, grant))) kept.add(grant)
  }
  return account.grants.filter((grant) => !kept.has(grant))
}

function endedLongAgo(account: Account, grant: Grant, now: Ms): boolean {
  if (endIn(grant) + grantSettledAfterMs > now) return false
  // What its last periods roll over may not be written yet.
  return grant.rollover === null || settle({ ...account, grants: [grant] }, grant.entityId, now).length === 0
}

function isDrained({ unlimited, cycle, amount, remaining }: Grant): boolean {
  return !unlimited && cycle === null && amount > 0n && remaining === 0n
}

function covers(other: Grant, grant: Grant): boolean {
  return (other.entityId === null || other.entityId === grant.entityId) && endIn(other) >= endIn(grant)
}

function endIn(grant: Grant): number {
  return endOf(grant) ?? Number.POSITIVE_INFINITY
}
