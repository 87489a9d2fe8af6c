import { type Item, told } from './items.ts'
import type { Step, Value } from './model.ts'
import type { Random } from './random.ts'

/** Some events of one story, to be sent together and only after the ones before were answered. */
export interface Chapter {
  items: Item[]
  historical: boolean
}

const keys = ['k', 'l', 'm']
const stepsMax = 14

/**
 * A few people, known to one client only, who sends each chapter after the answer to the one before: so their order is
 * determined and a model can tell how they end. Repeats and older imports are mixed in and must change nothing.
 */
export function* storyOf(seed: string, story: string, random: Random): Generator<Chapter> {
  const ids = ['phone', 'tablet', 'ann', 'bob'].map((who) => `${who} of ${story}`)
  const told: Item[] = []
  /** Who had `o` set by a live event: an import that is older must never win against it. */
  const dated: string[] = []
  let steps = 0
  while (steps < stepsMax) {
    if (told.length > 0 && random.chance(0.15)) {
      yield { items: [random.pick(told)], historical: false }
    } else if (dated.length > 0 && random.chance(0.1)) {
      yield { items: [older(seed, story, steps++, random.pick(dated))], historical: true }
    } else {
      const items = Array.from({ length: 1 + random.below(4) }, () => {
        const step = stepOf(ids, random)
        if (step.set?.o !== undefined) dated.push(step.distinctId)
        return tell(seed, story, steps++, step)
      })
      told.push(...items)
      yield { items, historical: false }
    }
  }
}

function tell(seed: string, story: string, n: number, step: Step): Item {
  return told(seed, { story, name: `${story} ${n}`, step })
}

function stepOf(ids: string[], random: Random): Step {
  const [distinctId = '', other = ''] = random.shuffled(ids)
  const value = (): Value => (random.chance(0.5) ? random.below(100) : `text ${random.below(100)}`)
  const one = (of: Value) => ({ [random.pick(keys)]: of })
  return {
    distinctId,
    ...(random.chance(0.3) && { joins: other }),
    ...(random.chance(0.4) && { set: random.chance(0.3) ? { o: value() } : one(value()) }),
    ...(random.chance(0.2) && { setOnce: one(value()) }),
    ...(random.chance(0.5) && { increment: { c: 1 + random.below(9) } }),
    ...(random.chance(0.15) && { unset: [random.pick([...keys, 'c'])] }),
  }
}

/** Years older than every live event: stored, and without effect. */
function older(seed: string, story: string, n: number, distinctId: string): Item {
  const { wire, fate } = tell(seed, story, n, { distinctId, set: { o: 'from long ago' } })
  if (fate.kind !== 'taken') return { wire, fate }
  const { kind, uuid } = fate
  return {
    wire: { ...(wire as object), timestamp: '2015-01-01T00:00:00.000Z' }, // an object, as told() makes it
    fate: { kind, uuid, distinctId, effect: 'none' },
  }
}
