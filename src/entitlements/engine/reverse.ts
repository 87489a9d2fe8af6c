import { must } from '../../kernel/assert.ts'
import type { Account, Change, Grant, Ms, Units } from '../types.ts'
import { withChanges } from './apply.ts'
import { live } from './grant.ts'
import { settle } from './settle.ts'
import { maxUnits, minUnits } from './units.ts'

/** What one grant paid for an operation, in stored units. */
export interface Payment {
  grant: bigint
  /** The period of the grant that the units were of. */
  period: bigint
  units: Units
  /** Its place among the operation's movements. */
  line: number
}

/** Why units cannot go back. `grant_full`: the grant or its rollover cap has no room for them any more. */
export type Obstacle = 'grant_revoked' | 'grant_expired' | 'period_reset' | 'grant_full'

export interface Reversal {
  /** Last drawn first. */
  returned: { grant: bigint; units: Units }[]
  notReturned: { grant: bigint; units: Units; reason: Obstacle }[]
  /** Per account, in the order to write them: due resets, then the units. Only accounts that get some. */
  changes: Map<bigint, readonly Change[]>
}

/**
 * Gives an operation's units back to the very grants that paid, last drawn first, as far as each still is in the period
 * it paid from. That nothing is reversed twice is the caller's guard. Counters stay. `accounts` hold every paying grant,
 * and the parents of those that are rollovers.
 */
export function decideReverse(
  accounts: readonly Account[],
  payments: readonly Payment[],
  { entity, now }: { entity: string | null; now: Ms },
): Reversal {
  const reversal: Reversal = { returned: [], notReturned: [], changes: new Map() }
  // What due resets roll over counts against the cap before anything goes back under it.
  const current = new Map(
    accounts.map((account) => {
      const resets = settle(account, entity, now)
      return [account.id, { resets, account: withChanges(account, resets) }]
    }),
  )
  for (const { grant: id, period, units } of payments.toSorted((a, b) => b.line - a.line)) {
    const place = must(
      [...current.values()].find(({ account }) => account.grants.some((grant) => grant.id === id)),
      'every grant that paid is loaded',
    )
    const grant = must(
      place.account.grants.find((each) => each.id === id),
      'as just found',
    )
    const obstacle = obstacleOf(place.account, grant, period, now)
    const back = obstacle === null ? minUnits(units, roomIn(place.account, grant, now)) : 0n
    if (back < units) {
      reversal.notReturned.push({ grant: id, units: units - back, reason: obstacle ?? 'grant_full' })
    }
    if (back === 0n) continue
    reversal.returned.push({ grant: id, units: back })
    const change = giveBack(grant, back)
    place.account = withChanges(place.account, [change])
    const { account, resets } = place
    reversal.changes.set(account.id, [...(reversal.changes.get(account.id) ?? resets), change])
  }
  return reversal
}

function obstacleOf(account: Account, grant: Grant, period: bigint, now: Ms): Obstacle | null {
  if (grant.revokedAt !== null && grant.revokedAt <= now) return 'grant_revoked'
  if (grant.expiresAt !== null && grant.expiresAt <= now) return 'grant_expired'
  return grant.periodNo === period && !isReplaced(account, grant) ? null : 'period_reset'
}

/** Units that roll over for ever stand in one grant, which each reset replaces by a newer one and closes. */
function isReplaced({ grants }: Account, { rolledFrom, effectiveAt }: Grant): boolean {
  if (rolledFrom === null) return false
  const parent = grants.find((each) => each.id === rolledFrom)
  if (!parent?.rollover || parent.rollover.periods !== null) return false
  return grants.some((each) => each.rolledFrom === rolledFrom && each.effectiveAt > effectiveAt)
}

/** Rolled-over units also stay under the cap that their parent sets on all of them together. */
function roomIn(account: Account, grant: Grant, now: Ms): Units {
  const room = grant.amount - grant.remaining
  const parent = account.grants.find((each) => each.id === grant.rolledFrom)
  const max = parent?.rollover?.max ?? null
  if (max === null) return room
  const held = account.grants
    .filter((each) => each.rolledFrom === grant.rolledFrom && live(each, now))
    .reduce((sum, each) => sum + each.remaining, 0n)
  return maxUnits(0n, minUnits(room, max - held))
}

function giveBack({ accountId, id, periodNo, remaining }: Grant, units: Units): Change {
  return {
    kind: 'reverse',
    account: accountId,
    grant: id,
    period: periodNo,
    delta: units,
    remaining: remaining + units,
  }
}
