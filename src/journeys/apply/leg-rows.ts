import type { LegUpdate, NewLeg } from '../store/leg-store.ts'
import type { Ms } from '../types.ts'
import type { Taken } from './work.ts'

/** The legs that effects of a batch make and change, each once. */
export function legRowsOf(scopeId: number, taken: readonly Taken[], now: Ms): { made: NewLeg[]; changed: LegUpdate[] } {
  const made: NewLeg[] = []
  const changed = new Map<string, LegUpdate>()
  const change = (journeyId: string, generation: number, { note, ...set }: LegUpdate['set']) => {
    const key = `${journeyId} ${generation}`
    const known = changed.get(key) ?? { scopeId, journeyId, generation, set: {}, notes: [] }
    const notes = note === undefined ? known.notes : [...known.notes, ...note.split(' ')]
    changed.set(key, { ...known, set: { ...known.set, ...set }, notes })
  }
  for (const { journey, effects } of taken) {
    for (const effect of effects) {
      if (effect.kind === 'leg') change(journey.id, effect.generation, effect.set)
      if (effect.kind !== 'arm' && effect.kind !== 'began') continue
      const { sectionKey, legId, versionNumber } = effect
      const generation = effect.kind === 'arm' ? effect.generation : 0
      const armedAt = effect.kind === 'arm' ? now : null
      made.push({ scopeId, journeyId: journey.id, generation, sectionKey, legId, versionNumber, armedAt })
      if (effect.kind === 'began') change(journey.id, 0, effect.set)
    }
  }
  return { made, changed: [...changed.values()] }
}
