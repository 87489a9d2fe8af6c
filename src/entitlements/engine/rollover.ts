import { assert } from '../../kernel/assert.ts'
import type { Account, Change, Cycle, Grant, Ms, Units } from '../types.ts'
import { periodAt, periodStart } from './cycle.ts'
import { endOf, live } from './grant.ts'
import { maxUnits, minUnits, storedUnitsMax } from './units.ts'

/** A recurring grant that has come to stand in `period`, later than the one its `remaining` belongs to. */
export interface Reset {
  grant: Grant
  cycle: Cycle
  period: bigint
  now: Ms
}

export interface Rolled {
  /** What the ended periods put into rollover grants that still live. */
  units: Units
  changes: Change[]
}

const none: Rolled = { units: 0n, changes: [] }

/**
 * What the ended periods leave: at each boundary a rollover grant of what was left, as far as the grant's live rollovers
 * together stay within `max`. Lapse and refill of the grant itself are the caller's.
 */
export function rollOver(account: Account, reset: Reset): Rolled {
  const { grant, cycle, period } = reset
  if (grant.rollover === null || grant.amount === 0n) return none
  // Periods that had ended before the grant took effect left nothing.
  const first = maxUnits(grant.periodNo, periodAt(cycle, grant.effectiveAt).no)
  const ended = period - first
  if (ended <= 0n) return none

  const earlier = account.grants.filter((other) => other.rolledFrom === grant.id && other.remaining > 0n)
  const cap = minUnits(grant.rollover.max ?? storedUnitsMax, storedUnitsMax)
  const { periods } = grant.rollover
  return periods === null
    ? rollForEver(reset, { first, ended, earlier, cap })
    : rollFor(periods, reset, { first, ended, earlier, cap })
}

interface Leftovers {
  /** The period that `remaining` belongs to, and how many have ended since its start. */
  first: bigint
  ended: bigint
  /** Rollover grants made before, as far as they hold something. */
  earlier: Grant[]
  cap: Units
}

/**
 * Units that never end are kept in one grant: each boundary replaces it by one that also holds the new units and keeps
 * its age. Otherwise a grant left alone for years would return as a row per period.
 */
function rollForEver({ grant, cycle, period, now }: Reset, { first, ended, earlier, cap }: Leftovers): Rolled {
  // One whose revocation is due keeps its units: they must not escape it.
  const endless = earlier.filter((other) => endOf(other) === null)
  const ending = earlier.filter((other) => endOf(other) !== null && live(other, now))
  const held = sum(endless)
  const units = minUnits(held + grant.remaining + (ended - 1n) * grant.amount, cap - sum(ending))
  if (units <= held) return none

  const firstLeft = periodStart(cycle, first + (grant.remaining > 0n ? 1n : 2n))
  const since = Math.min(firstLeft, ...endless.map((other) => other.createdAt))
  return {
    units: units - held,
    changes: [...endless.map(emptied), make(grant, { period, units, since, expiresAt: null })],
  }
}

/**
 * Units that live for `periods` periods: one grant per boundary. Only those of the last `periods` boundaries can still
 * live, but how much fitted under the cap depends on the ones before. After twice `periods` boundaries the amounts
 * repeat every `periods`: either everything fits, or each boundary gets exactly the room of the one that just ended.
 * So whole rounds in between are skipped, and the loop is bounded however long nobody looked.
 */
function rollFor(periods: number, { grant, cycle, now }: Reset, { first, ended, earlier, cap }: Leftovers): Rolled {
  assert(periods >= 1, 'rolled units live for a period at least')
  const boundaries = Number(ended)
  const skipped = boundaries > 3 * periods ? Math.floor((boundaries - 2 * periods - 1) / periods) * periods : 0
  const left: Units[] = []
  let standing = 0n // in the grants this loop made, as of the boundary
  for (let i = 0; i < boundaries - skipped; i++) {
    standing -= left[i - periods] ?? 0n
    const at = periodStart(cycle, first + BigInt(i + 1))
    const room = cap - standing - sum(earlier.filter((other) => live(other, at)))
    const units = maxUnits(0n, minUnits(i === 0 ? grant.remaining : grant.amount, room))
    left.push(units)
    standing += units
  }

  const changes: Extract<Change, { kind: 'rollover' }>[] = []
  for (let i = Math.max(0, left.length - periods); i < left.length; i++) {
    const units = left[i] ?? 0n
    const period = first + BigInt(i + 1 + skipped)
    const expiresAt = periodStart(cycle, period + BigInt(periods))
    if (units > 0n && now < expiresAt)
      changes.push(make(grant, { period, units, since: periodStart(cycle, period), expiresAt }))
  }
  return { units: sum(changes.map((change) => change.grant)), changes }
}

function emptied(grant: Grant): Change {
  return {
    kind: 'lapse',
    account: grant.accountId,
    grant: grant.id,
    period: grant.periodNo,
    delta: -grant.remaining,
    remaining: 0n,
    rolled: grant.remaining,
  }
}

function make(
  from: Grant,
  { period, units, since, expiresAt }: { period: bigint; units: Units; since: Ms; expiresAt: Ms | null },
): Extract<Change, { kind: 'rollover' }> {
  const grant: Grant = {
    id: -((from.id << 64n) + period), // unique like (from, period)
    accountId: from.accountId,
    entityId: from.entityId,
    origin: 'rollover',
    rolledFrom: from.id,
    rank: from.rank,
    unlimited: false,
    amount: units,
    remaining: units,
    effectiveAt: since,
    expiresAt,
    paidUntil: null,
    cycle: null,
    periodNo: 0n,
    rollover: null,
    revokedAt: null,
    createdAt: since,
  }
  return { kind: 'rollover', account: from.accountId, from: from.id, period, grant }
}

function sum(grants: readonly Grant[]): Units {
  return grants.reduce((total, grant) => total + grant.remaining, 0n)
}
