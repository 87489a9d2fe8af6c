import { randomOf } from './random.ts'

/** What can happen to a running service. `kill_` is SIGKILL, `pause_` SIGSTOP and later SIGCONT. */
const troubles = [
  'kill_service',
  'kill_api',
  'kill_worker',
  'kill_postgres',
  'kill_backend',
  'kill_service_and_postgres',
  'kill_everything',
  'end_backends',
  'pause_service',
  'pause_worker',
  'pause_postgres',
  'cut_before_statement',
  'cut_after_statement',
  'cut_callers',
  'swallow_replies',
  'delay_replies',
] as const
export type TroubleKind = (typeof troubles)[number]

export interface Trouble {
  kind: TroubleKind
  /** Milliseconds after the one before has begun. */
  afterMs: number
  /** Whether it waits until every process is up again: trouble upon trouble alone would leave nothing to break. */
  isPatient: boolean
  /** How long what was paused or delayed stays so, and what was killed stays dead. */
  lastsMs: number
  /** Which one of several connections, statements or backends; whatever there are. */
  which: number
}

/** The longest that a patient trouble waits. */
export const patienceMsMax = 8000
const betweenMs = { least: 1500, most: 4500 }
/** Longer than a lane's lease, so that a paused worker comes back as one that lost it. */
const pauseMs = { least: 1000, most: 6500 }
const deadMsMax = 1500

/**
 * The troubles of a run, for ever: every kind once, in random order, then again in another. A kind of trouble meets all
 * phases of the others, since some last longer than the time between two.
 */
export function* scheduleOf(seed: string): Generator<Trouble> {
  const random = randomOf(seed, 'schedule')
  const between = ({ least, most }: { least: number; most: number }) => least + random.below(most - least + 1)
  for (;;) {
    for (const kind of random.shuffled(troubles)) {
      yield {
        kind,
        afterMs: between(betweenMs),
        isPatient: random.chance(0.75),
        lastsMs: kind.startsWith('kill') ? random.below(deadMsMax) : between(pauseMs),
        which: random.below(1000),
      }
    }
  }
}

/** One line for people. */
export function told({ kind, lastsMs }: Trouble, atMs: number): string {
  return `${(atMs / 1000).toFixed(1).padStart(7)} s  ${kind.replaceAll('_', ' ')} (${(lastsMs / 1000).toFixed(1)} s)`
}
