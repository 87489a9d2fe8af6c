import { deadInRowMax, deadOfLastMax, deadWindowRows } from '../kernel/limits.ts'

/** What a worker remembers of a lane's last rows, to tell bad data from a bad deploy. */
export interface Breaker {
  /** Dead events since the last row that was applied. */
  inRow: number
  /** Rows taken so far, and which of the last ones were dead, by that count. */
  taken: number
  dead: readonly number[]
}

export const closed: Breaker = { inRow: 0, taken: 0, dead: [] }
/** After a stop: the first dead event stops the lane again. */
export const halfOpen: Breaker = { inRow: deadInRowMax - 1, taken: 0, dead: [] }

export function rowsApplied(breaker: Breaker, rows: number): Breaker {
  if (rows === 0) return breaker
  return { inRow: 0, taken: breaker.taken + rows, dead: breaker.dead }
}

export function rowDied({ inRow, taken, dead }: Breaker): Breaker {
  const at = taken + 1
  return { inRow: inRow + 1, taken: at, dead: [...dead.filter((each) => each > at - deadWindowRows), at] }
}

/** Why the lane has to stop, in words for the operator; null: it may go on. */
export function reasonToStop({ inRow, dead }: Breaker): string | null {
  if (inRow >= deadInRowMax) return `${inRow} events in a row could not be applied`
  if (dead.length >= deadOfLastMax) return `${dead.length} of the last ${deadWindowRows} events could not be applied`
  return null
}
