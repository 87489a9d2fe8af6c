import { newAppleApp } from './appstore/app.ts'
import type { AppleApp } from './appstore/types.ts'
import { newPlayApp } from './playstore/app.ts'
import type { PlayApp } from './playstore/types.ts'
import { refuse } from './refusal.ts'
import type { Sim, SimApp, Store } from './world.ts'

export const defaultAppId = 'com.example.demo'

/** The app of this name in that store; made when unknown, with the clock of those that exist. */
export function appNamed(sim: Sim, store: Store, id: string): SimApp {
  const known = sim.world.apps.find((app) => app.store === store && app.id === id)
  if (known !== undefined) return known
  const clock = structuredClone(sim.world.apps[0]?.clock ?? { mode: 'real' as const, aheadMs: 0 })
  const app = store === 'appstore' ? newAppleApp(id, clock) : newPlayApp(id, clock)
  sim.world.apps.push(app)
  sim.changed()
  return app
}

/** The app a control call means: the one it names, or the one connected last, or the first. */
export function appleAppFor(sim: Sim, id: string | undefined): AppleApp {
  const app = appFor(sim, 'appstore', id)
  if (app.store !== 'appstore') throw new Error('found by its store')
  return app
}

export function playAppFor(sim: Sim, id: string | undefined): PlayApp {
  const app = appFor(sim, 'playstore', id)
  if (app.store !== 'playstore') throw new Error('found by its store')
  return app
}

function appFor(sim: Sim, store: Store, id: string | undefined): SimApp {
  const ofStore = sim.world.apps.filter((app) => app.store === store)
  const connected = ofStore.findLast(({ connection }) => connection !== null)
  const app = id === undefined ? (connected ?? ofStore[0]) : ofStore.find((one) => one.id === id)
  if (app === undefined) throw refuse('app_not_found', `there is no app ${id ?? ''} in the ${store}`, 404)
  return app
}
