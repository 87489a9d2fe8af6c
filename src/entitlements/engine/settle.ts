import type { Account, Change, Grant, Ms, State } from '../types.ts'
import { applyChange } from './apply.ts'
import { periodAt, periodStart } from './cycle.ts'
import { endOf, live, visible } from './grant.ts'
import { openings } from './offers.ts'
import { type Reset, rollOver } from './rollover.ts'

const nothing: readonly Change[] = Object.freeze([])

/**
 * The resets that time has brought to the grants which `entity` sees and that are not yet written: one lapse and one
 * refill per grant, however many periods were missed, and what they left as rollover grants. Settling at moments in
 * between makes no difference. Costs no allocation when nothing is due.
 */
export function settle(account: Account, entity: string | null, now: Ms): readonly Change[] {
  let resets: Reset[] | null = null
  for (const grant of account.grants) {
    if (grant.cycle === null || grant.unlimited || !visible(grant, entity)) continue
    // A grant that has ended matters only for the units its last periods may have rolled over.
    if (grant.rollover === null && !live(grant, now)) continue
    const at = lastInstant(grant, now)
    if (at < grant.effectiveAt || at < periodStart(grant.cycle, grant.periodNo + 1n)) continue
    const period = periodAt(grant.cycle, at).no
    resets ??= []
    resets.push({ grant, cycle: grant.cycle, period, now })
  }
  if (resets === null) return nothing

  return resets
    .sort((a, b) => (a.grant.id < b.grant.id ? -1 : 1)) // the same changes whatever order the rows came in
    .flatMap((reset) => lapseAndRefill(account, reset))
}

/** All that a spend by `entity` has to write before its draws: due resets, and the grants that its first use opens. */
export function due(account: Account, entity: string | null, now: Ms): readonly Change[] {
  const [resets, opened] = [settle(account, entity, now), openings(account, entity, now)]
  return opened.length === 0 ? resets : [...resets, ...opened]
}

/** The state with all that is due done; the state itself when nothing is. The accounts given are left as they are. */
export function settled(state: State): State {
  const { entity, now } = state
  const own = state.own && settledAccount(state.own, entity, now)
  let pools = state.pools
  for (const [i, pool] of state.pools.entries()) {
    const account = settledAccount(pool.account, entity, now)
    if (account !== pool.account) pools = pools.with(i, { ...pool, account })
  }
  return own === state.own && pools === state.pools ? state : { ...state, own, pools }
}

function settledAccount(account: Account, entity: string | null, now: Ms): Account {
  const changes = due(account, entity, now)
  if (changes.length === 0) return account
  const copy = { ...account, grants: account.grants.map((grant) => ({ ...grant })) }
  for (const change of changes) applyChange(copy, change)
  return copy
}

/** Where the grant's periods stand still: none begins at or after the paid end, the expiry or the revocation. */
function lastInstant(grant: Grant, now: Ms): Ms {
  const end = endOf(grant)
  let at = now
  if (grant.paidUntil !== null) at = Math.min(at, grant.paidUntil - 1)
  if (end !== null) at = Math.min(at, end - 1)
  return at
}

function lapseAndRefill(account: Account, reset: Reset): Change[] {
  const { grant, period } = reset
  const rolled = rollOver(account, reset)
  const { accountId, id, amount, remaining } = grant
  return [
    {
      kind: 'lapse',
      account: accountId,
      grant: id,
      period: grant.periodNo,
      delta: -remaining,
      remaining: 0n,
      rolled: rolled.units,
    },
    { kind: 'refill', account: accountId, grant: id, period, delta: amount, remaining: amount },
    ...rolled.changes,
  ]
}
