import { must } from '../../kernel/assert.ts'
import type {
  Change,
  FeatureType,
  State,
  Units,
  UsageCode,
  UsageCommand,
  UsageDecision,
  UsageOutcome,
} from '../types.ts'
import { type Available, available, type Draw, planDraw } from './draw.ts'
import { openings } from './offers.ts'
import { due, settled } from './settle.ts'
import { accountsOf } from './state.ts'
import { jsonUnits, maxUnits, minUnits, noBalance, storedUnitsMax } from './units.ts'

/**
 * Spends, or says why not. The account of the Feature must be there when anything is spent, also when pools pay: its
 * counter rises. `customer_missing` is answered by `usageWithoutCustomer`, without a state.
 */
export function decideUsage(state: State, command: UsageCommand): UsageOutcome {
  const { type } = state.feature
  if (!state.applies) return denied('feature_inapplicable', noBalance(type), false)

  const current = settled(state)
  const offer = available(current)
  if (type === 'boolean') return denied('feature_not_consumable', null, offer.live)
  if (!offer.live) return denied('access_inactive', 0, false)

  const need = increase(state, command)
  if (offer.unlimited || need === 0n) return accepted(state, { need, draws: [], first: opened(state), left: offer })
  const plan = planDraw(current, need)
  if (plan === null) return denied('insufficient_balance', jsonUnits(offer.units), isActive(offer))
  const first = current === state ? [] : dueBefore(state, plan.draws)
  return accepted(state, { need, draws: plan.draws, first, left: { unlimited: false, units: plan.left } })
}

/** The answer when no customer record exists. It is not saved: the customer may be on the way. */
export function usageWithoutCustomer(type: FeatureType): UsageDecision {
  return denied('customer_missing', noBalance(type), false).decision
}

/** A check for one unit would be allowed. */
export function isActive({ unlimited, units }: Pick<Available, 'unlimited' | 'units'>): boolean {
  return unlimited || units >= 1n
}

/** What the command adds to the counter of its entity. A total at or below the counter adds nothing. */
function increase(state: State, { mode, quantity }: UsageCommand): Units {
  return mode === 'consume' ? quantity : maxUnits(0n, quantity - counter(state))
}

/** Lifetime units used by the entity, or by requests without entity. */
export function counter({ own, entity }: State): Units {
  if (own === null) return 0n
  return entity === null ? own.used : (own.entities.get(entity)?.used ?? 0n)
}

function denied(code: Exclude<UsageCode, 'consumed'>, balance: number | null, active: boolean): UsageOutcome {
  return { decision: { accepted: false, code, balance, unlimited: false, active }, changes: [] }
}

interface Spending {
  need: Units
  /** What has to be written before the draws. */
  first: Change[]
  draws: Draw[]
  /** What the next decision will find. */
  left: Pick<Available, 'unlimited' | 'units'>
}

function accepted(state: State, { need, first, draws, left }: Spending): UsageOutcome {
  const balance = left.unlimited ? null : jsonUnits(left.units)
  return {
    decision: { accepted: true, code: 'consumed', balance, unlimited: left.unlimited, active: isActive(left) },
    changes: need === 0n ? [] : [...first, ...draws.map(drawn), ...counted(state, need)],
  }
}

/** What is due in every account that pays. What pays nothing stays virtual. */
function dueBefore(state: State, draws: Draw[]): Change[] {
  return accountsOf(state)
    .filter((account) => draws.some((draw) => draw.account.id === account.id))
    .flatMap((account) => due(account, state.entity, state.now))
}

/** The unlimited grants that the entity's first use opens: they pay for it without a draw. */
function opened(state: State): Change[] {
  if (state.entity === null) return []
  return accountsOf(state).flatMap((account) =>
    openings(account, state.entity, state.now).filter(({ grant }) => grant.unlimited),
  )
}

function drawn({ account, grant, units }: Draw): Change {
  return {
    kind: 'draw',
    account: account.id,
    grant: grant.id,
    period: grant.periodNo,
    delta: -units,
    remaining: grant.remaining - units,
  }
}

function counted(state: State, need: Units): Change[] {
  const own = must(state.own, 'the account of the Feature is made before anything is spent')
  const before = counter(state)
  const used = minUnits(before + need, storedUnitsMax)
  return used === before ? [] : [{ kind: 'used', account: own.id, entity: state.entity, used }]
}
