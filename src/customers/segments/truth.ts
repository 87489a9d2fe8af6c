import { isActive } from './access.ts'
import type { PlacedLeaf, Version } from './compile.ts'
import type { Condition } from './definition.ts'
import { type Truth, timeHolds, totalHolds } from './leaf.ts'
import type { CustomerState } from './state.ts'

/** Whether the customer is a member at `now`. Every instant at which time alone may change that is told to `flips`. */
export function holds(version: Version, state: CustomerState, now: number, flips: (at: number) => void): boolean {
  const leaves = version.leaves.values()
  return conditionHolds(version.condition, () => {
    // Leaves are placed in the order in which the condition is walked, and every one is asked, for its flips.
    const { value: placed } = leaves.next()
    if (!placed) return false
    const { holds: passes, until } = truthOf(placed, state, now)
    if (until !== null) flips(until)
    return passes
  })
}

function conditionHolds(condition: Condition, nextLeaf: () => boolean): boolean {
  if (condition.kind === 'leaf') return nextLeaf()
  if (condition.kind === 'not') return !conditionHolds(condition.of, nextLeaf)
  const parts = condition.of.map((part) => conditionHolds(part, nextLeaf))
  return condition.kind === 'all' ? parts.every(Boolean) : parts.some(Boolean)
}

export function truthOf({ id, leaf, version }: PlacedLeaf, state: CustomerState, now: number): Truth {
  switch (leaf.kind) {
    case 'property':
      return { holds: state.leaves.get(id) === true, until: null }
    case 'performed':
    case 'sum':
      return totalHolds(leaf, state.leaves.get(id), now)
    case 'first':
    case 'last':
      return timeHolds(leaf.times, state.leaves.get(id), now)
    case 'segment':
      return { holds: state.members.has(version.refs.get(leaf.id) ?? 0) === leaf.is, until: null }
    case 'feature': {
      const { holds: active, until } = isActive(state.access.get(leaf.feature), now)
      return { holds: active === leaf.active, until }
    }
  }
}
