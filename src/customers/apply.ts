import type { EventOutcome, LoggedEvent, Warning } from '../events/index.ts'
import { directivesOf } from './directives.ts'
import { propertiesOf, touch, writeOf } from './draft.ts'
import { birth, customerIdOf, type Fold, named, openFold } from './fold.ts'
import { identify } from './identify.ts'
import { applyDirectives } from './properties.ts'
import type { CustomerWrite, Decision, SliceState } from './slice.ts'

/**
 * Applies a slice of events to what was loaded for it, in order. However a sequence of events is cut into slices, the
 * rows end up the same. `state` stays as it is.
 */
export function decide(state: SliceState, events: LoggedEvent[]): Decision {
  const fold = openFold(state)
  const outcomes = events.map((event, i) => applyEvent(fold, event, i))
  return decisionOf(fold, outcomes)
}

/** What a fold has come to: the rows to write. */
export function decisionOf(fold: Fold, outcomes: EventOutcome[]): Decision {
  const births: CustomerWrite[] = []
  const updates: CustomerWrite[] = []
  for (const draft of fold.drafts.values()) {
    const row = writeOf(draft)
    if (row) (draft.loaded === null ? births : updates).push(row)
  }
  const aliases = [...fold.aliases.values()]
  return {
    outcomes,
    births,
    updates,
    newAliases: aliases.filter(({ before }) => before === null),
    movedAliases: aliases.filter(({ before }) => before !== null),
    merges: fold.merges,
    journal: fold.journal,
    state: fold.state,
  }
}

function applyEvent(fold: Fold, event: LoggedEvent, i: number): EventOutcome {
  if (fold.state.deleted.has(event.distinctId)) return { kind: 'dropped', reason: 'customer_deleted' }
  const warnings: Warning[] = []
  const merge = identify(fold, event, i, warnings)
  const directives = directivesOf(event.payload, warnings)
  if (!directives) {
    const customerId = customerIdOf(fold, event.distinctId) ?? birth(fold, event, i).id
    return { kind: 'applied', customerId, merge, warnings }
  }
  const customer = named(fold, event.distinctId) ?? birth(fold, event, i)
  if (applyDirectives(propertiesOf(customer), directives, event, warnings)) {
    customer.propertiesChanged = true
    touch(customer, i)
  }
  return { kind: 'applied', customerId: customer.id, merge, warnings }
}
