import { dayMs } from '../../kernel/limits.ts'
import type { PinnedPlan } from '../plan.ts'
import type { Conversion, Journey, Moment, Ms } from '../types.ts'

const unitMs = { minute: 60_000, hour: 3_600_000, day: dayMs, week: 7 * dayMs }

/** Null: the plan has no goal. */
export function goalWindowMs({ policy: { goal } }: PinnedPlan): number | null {
  return goal ? goal.attribution.window.amount * unitMs[goal.attribution.window.unit] : null
}

/** How a journey's conversion begins. */
export function conversionAt({ policy: { goal } }: PinnedPlan, journeyId: string, startedAt: Ms): Conversion {
  const basis = goal?.attribution.basis === 'entry' ? { basis: { eventId: journeyId, occurredAt: startedAt } } : {}
  return { startedAt, revision: 1, ...basis }
}

/** The earliest showing is the basis, as long as nothing was converted on it. Null: nothing changes. */
export function withShown({ policy: { goal } }: PinnedPlan, { conversion }: Journey, shown: Moment): Conversion | null {
  if (goal?.attribution.basis !== 'first_shown' || conversion.conversion) return null
  if (conversion.basis && !isAfter(conversion.basis, shown)) return null
  return { ...conversion, revision: conversion.revision + 1, basis: shown }
}

/** The first goal after the basis and inside its window, the window's end included. Null: it does not count. */
export function withGoal(plan: PinnedPlan, { conversion }: Journey, goal: Moment): Conversion | null {
  const window = goalWindowMs(plan)
  const { basis } = conversion
  if (window === null || !basis || conversion.conversion) return null
  if (!isAfter(goal, basis) || goal.occurredAt > basis.occurredAt + window) return null
  return { ...conversion, revision: conversion.revision + 1, conversion: goal }
}

/** Of equal times the greater event id is later. */
function isAfter(one: Moment, other: Moment): boolean {
  if (one.occurredAt !== other.occurredAt) return one.occurredAt > other.occurredAt
  return one.eventId > other.eventId
}
