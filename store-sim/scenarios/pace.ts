import { setTimeout as sleep } from 'node:timers/promises'
import { shortMs } from '../control/shorten.ts'
import { ask, type Stage } from './stage.ts'

/**
 * How time passes in a scenario. With a test clock in the service, by moving both clocks. Without one the service knows the
 * wall clock only: then everything sold lasts as long as it takes to wait for it.
 */
export type Pace = 'moved' | 'waited'

/** Enough for both sides to have done what they do at the end of a period. */
const monthTakesMs = 12_000

export async function setPace(sim: string, { name }: Stage, followsClock: boolean): Promise<Pace> {
  if (followsClock) {
    await ask(sim, 'POST', '/sim/clock', { app: name, mode: 'manual' })
    return 'moved'
  }
  await ask(sim, 'POST', '/sim/clock', { app: name, mode: 'real' })
  await ask(sim, 'POST', '/sim/shorten', { app: name, month_ms: monthTakesMs })
  return 'waited'
}

export async function pass(sim: string, { name }: Stage, pace: Pace, by: string): Promise<void> {
  if (pace === 'moved') await ask(sim, 'POST', '/sim/clock', { app: name, by })
  else await sleep(shortMs(by, monthTakesMs))
}
