import type { Effect, Journey } from '../types.ts'
import type { Taken } from './work.ts'

type EffectOf<Kind extends Effect['kind']> = Extract<Effect, { kind: Kind }>

/** Effects of one kind, each with the journey as it was after them. */
export function effectsOf<Kind extends Effect['kind']>(
  taken: readonly Taken[],
  kind: Kind,
): { effect: EffectOf<Kind>; journey: Journey }[] {
  return taken.flatMap(({ journey, effects }) =>
    effects.filter((effect): effect is EffectOf<Kind> => effect.kind === kind).map((effect) => ({ effect, journey })),
  )
}
