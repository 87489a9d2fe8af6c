import { setTimeout as sleep } from 'node:timers/promises'
import { addPeriod, monthMs } from '../period.ts'
import { ask, type Stage } from './stage.ts'

/**
 * How time passes in a scenario. With a test clock in the service, by moving both clocks. Without one the service knows the
 * wall clock only: then everything sold lasts as long as it takes to wait for it.
 */
export type Pace = 'moved' | 'waited'

/** Of a month; enough for both sides to have done what they do at the end of a period. */
const monthTakesMs = 12_000
const lastsMsMin = 1_000

export async function setPace(sim: string, { name, store, call, projectId }: Stage): Promise<Pace> {
  const hasTestClock = await call('PUT', `/projects/${projectId}/test_clock`, { offset_ms: 0 }).then(
    () => true,
    () => false,
  )
  if (hasTestClock) {
    await ask(sim, 'POST', '/sim/clock', { app: name, mode: 'manual' })
    return 'moved'
  }
  await ask(sim, 'POST', '/sim/clock', { app: name, mode: 'real' })
  const { apps } = await ask(sim, 'GET', '/sim/state')
  const { products } = apps.find((app: { app: string; store: string }) => app.app === name && app.store === store)
  const text = JSON.stringify(products).replace(/"(period|grace|hold)":"([^"]+)"/g, (_, field, period) => {
    return `"${field}":"PT${(lastsMs(period) / 1000).toFixed(0)}S"`
  })
  await ask(sim, 'PUT', `/sim/${store}/products`, { app: name, products: JSON.parse(text) })
  return 'waited'
}

export async function pass(sim: string, { name }: Stage, pace: Pace, by: string): Promise<void> {
  if (pace === 'moved') await ask(sim, 'POST', '/sim/clock', { app: name, by })
  else await sleep(lastsMs(by))
}

function lastsMs(period: string): number {
  return Math.max(Math.round((addPeriod(0, period) * monthTakesMs) / monthMs / 1000) * 1000, lastsMsMin)
}
