import { isActive } from './access.ts'
import type { Asked, PlacedLeaf } from './compile.ts'
import { type Truth, timeHolds, totalHolds } from './leaf.ts'
import type { CustomerState } from './state.ts'

/**
 * Whether the customer is a member at `now`; `flip` becomes the earliest instant at which time alone may change an answer.
 * So every part is asked, also when the others decide.
 */
export function holds(asked: Asked, state: CustomerState, now: number, flip: { at: number }): boolean {
  if (asked.kind === 'leaf') {
    const truth = truthOf(asked.placed, state, now)
    if (truth.until !== null && truth.until < flip.at) flip.at = truth.until
    return truth.holds
  }
  if (asked.kind === 'not') return !holds(asked.of, state, now, flip)
  let holding = 0
  for (const part of asked.of) if (holds(part, state, now, flip)) holding++
  return asked.kind === 'all' ? holding === asked.of.length : holding > 0
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
