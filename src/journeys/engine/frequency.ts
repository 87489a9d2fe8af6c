import { dayMs } from '../../kernel/limits.ts'
import type { PinnedPlan } from '../plan.ts'
import type { Ms } from '../types.ts'

/** What was counted so far of one customer in one Experience. */
export interface Counted {
  count: number
  /** The newest of them. */
  times: readonly Ms[]
}

const unitMs = { minute: 60_000, hour: 3_600_000, day: dayMs, week: 7 * dayMs }

/** Whether one more at `at` is allowed. A device may report one that lies before others. */
export function frequencyAllows({ policy }: PinnedPlan, { count, times }: Counted, at: Ms): boolean {
  const { frequency } = policy.entry
  switch (frequency.type) {
    case 'every_match':
      return true
    case 'one_time':
      return count === 0
    case 'once_per_window': {
      const windowMs = frequency.window.amount * unitMs[frequency.window.unit]
      return !times.some((time) => Math.abs(at - time) < windowMs)
    }
  }
}
