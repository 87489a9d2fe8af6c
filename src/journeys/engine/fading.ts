import { readsClock } from '../../experiences/index.ts'
import { eligibilityLookMs } from '../../kernel/limits.ts'
import type { PinnedPlan } from '../plan.ts'
import type { Ms, TimerKind } from '../types.ts'

/** Whether time alone can take the eligibility away whose loss ends a journey: nothing that happens would tell. */
export function fades({ policy: { entry, exitWhenAny } }: PinnedPlan): boolean {
  return exitWhenAny.some(({ type }) => type === 'eligibility_lost') && readsClock(entry.eligibility)
}

/** Where eligibility fades the timer of a journey's life, which every journey has, is looked at again and again until it is due. */
export function lookOf(plan: PinnedPlan, timer: TimerKind, now: Ms): { lookAt?: Ms } {
  return timer === 'life' && fades(plan) ? { lookAt: now + eligibilityLookMs } : {}
}
