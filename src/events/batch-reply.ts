import { assert, unreachable } from '../kernel/assert.ts'
import { eventNameCharsMax } from '../kernel/limits.ts'

/** What became of one submitted item. `not_queued`: valid, but the log could not take it. */
export type ItemOutcome =
  | { kind: 'accepted'; uuid: string }
  | { kind: 'invalid' | 'deleted' | 'not_queued'; event: string; error: string }
  | { kind: 'misdirected'; event: string; error: string; lane: string; endpoint: string }

export interface ItemError {
  index: number
  event: string
  error: string
  lane?: string
  endpoint?: string
}

export interface BatchReply {
  status: 'success' | 'partial' | 'error'
  accepted: number
  processed: number
  failed: number
  total: number
  queued: boolean
  validationFailed: number
  rejectedFailed: number
  enqueueFailed?: number
  eventIds?: string[]
  errors?: ItemError[]
}

/**
 * The answer of `/batch`, from the outcomes in submitted order. Clients check its sums: when one is wrong they acknowledge
 * nothing and send the batch for ever, so the arithmetic is asserted.
 */
export function batchReply(outcomes: readonly ItemOutcome[]): BatchReply {
  const counts = { accepted: 0, invalid: 0, misdirected: 0, deleted: 0, not_queued: 0 }
  const eventIds: string[] = []
  const errors: ItemError[] = []
  for (const [index, outcome] of outcomes.entries()) {
    counts[outcome.kind]++
    if (outcome.kind === 'accepted') eventIds.push(outcome.uuid)
    else errors.push(itemError(index, outcome))
  }
  const total = outcomes.length
  const { accepted, invalid: validationFailed, not_queued: enqueueFailed } = counts
  const rejectedFailed = counts.misdirected + counts.deleted + enqueueFailed
  const failed = total - accepted
  assert(failed === validationFailed + rejectedFailed, 'every failed item failed for one reason')
  assert(errors.length === failed && eventIds.length === accepted, 'every item is listed exactly once')
  return {
    status: failed === 0 ? 'success' : accepted === 0 ? 'error' : 'partial',
    ...{ accepted, processed: accepted, failed, total, queued: accepted > 0, validationFailed, rejectedFailed },
    ...(enqueueFailed > 0 && { enqueueFailed }),
    ...(accepted > 0 && { eventIds }),
    ...(failed > 0 && { errors }),
  }
}

/**
 * An item's name for its error: as it was sent, or `unknown` when it is no text. Always something JSON readers take. What is
 * longer than any name is cut: a small body inflates to names of a hundred megabytes, which would all be sent back.
 */
export function eventNameOf(item: unknown): string {
  const name = typeof item === 'object' && item !== null && 'event' in item ? item.event : undefined
  return typeof name === 'string' ? name.slice(0, nameUnitsMax).toWellFormed() : 'unknown'
}

/** Characters beyond the basic plane take two units. */
const nameUnitsMax = 2 * eventNameCharsMax

function itemError(index: number, outcome: Exclude<ItemOutcome, { kind: 'accepted' }>): ItemError {
  const { event, error } = outcome
  switch (outcome.kind) {
    case 'misdirected':
      return { index, event, error, lane: outcome.lane, endpoint: outcome.endpoint }
    case 'invalid':
    case 'deleted':
    case 'not_queued':
      return { index, event, error }
    default:
      return unreachable(outcome)
  }
}
