import type { TimerKey, TimerRow } from '../store/timer-store.ts'
import type { TimerKind } from '../types.ts'
import type { Taken } from './work.ts'

const kinds: TimerKind[] = ['step', 'arm', 'run', 'life']

/** What effects, in their order, leave of timers: those to set, those to take away, and journeys all of whose timers rest. */
export function timerRowsOf(scopeId: number, taken: readonly Taken[]) {
  const last = new Map<string, TimerRow | TimerKey>()
  const parked = new Set<string>()
  for (const { journey, effects } of taken) {
    const key = { scopeId, journeyId: journey.id }
    for (const effect of effects) {
      if (effect.kind === 'setTimer') {
        const { timer, rev, dueAt, afterLane, lookAt = dueAt } = effect
        // Of a journey on hold every timer rests.
        const row = {
          ...key,
          timer,
          rev,
          dueAt,
          lookAt: Math.min(lookAt, dueAt),
          afterLane,
          parked: journey.held,
          attempts: 0,
        }
        last.set(`${journey.id} ${timer}`, row)
      } else if (effect.kind === 'clearTimers') {
        for (const timer of effect.timers) last.set(`${journey.id} ${timer}`, { ...key, timer })
      } else if (effect.kind === 'parkTimers') {
        parked.add(journey.id)
        for (const timer of kinds) {
          const row = last.get(`${journey.id} ${timer}`)
          if (row && 'rev' in row) row.parked = true
        }
      } else continue
      if (!journey.held) parked.delete(journey.id)
    }
  }
  const rows = [...last.values()]
  return {
    set: rows.filter((row): row is TimerRow => 'rev' in row),
    removed: rows.filter((row) => !('rev' in row)),
    parked: [...parked].map((journeyId) => ({ scopeId, journeyId })),
  }
}
