import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { defaultAppId } from './apps.ts'
import { appleApi } from './appstore/api.ts'
import { newAppleApp } from './appstore/app.ts'
import { appleNotificationsApi } from './appstore/notifications-api.ts'
import { ocsp } from './appstore/ocsp.ts'
import { type Clock, nowOf } from './clock/clock.ts'
import { runDue } from './clock/run.ts'
import { purchases } from './control/purchases.ts'
import { scenarios } from './control/scenarios.ts'
import { setup } from './control/setup.ts'
import { state } from './control/state.ts'
import { createHttp } from './http/server.ts'
import { page } from './page/page.ts'
import { newXcodeCertificate } from './pki/chain.ts'
import { newKeyRing } from './pki/keys.ts'
import { playApi } from './playstore/api.ts'
import { newPlayApp } from './playstore/app.ts'
import { oauth } from './playstore/oauth.ts'
import { openSnapshot } from './snapshot.ts'
import { stripeApi } from './stripe/api.ts'
import { hostedPages } from './stripe/hosted-page.ts'
import { sendWaiting } from './stripe/send.ts'
import type { Sim, World } from './world.ts'

export interface StartOptions {
  /** 0: any free one. */
  port?: number
  host?: string
  seed?: string
  /** The clock apps begin with; `manual` stands at `at`, or at this moment. */
  clock?: 'real' | { mode: 'manual'; at?: number }
  /** Keeps the world between starts; without it nothing is written. */
  dataDir?: string
}

export interface StoreSim extends AsyncDisposable {
  url: string
  world: World
}

/** How often running clocks look for what is due. */
const tickMs = 500

export async function startStoreSim(options: StartOptions = {}): Promise<StoreSim> {
  const { port = 0, host = '127.0.0.1', seed = randomBytes(6).toString('hex'), dataDir } = options
  const snapshot = openSnapshot(dataDir)
  let last: Promise<unknown> = Promise.resolve()
  const turn = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = last.then(work)
    last = mine.catch(() => {})
    return mine
  }
  const routes = {
    ...appleApi,
    ...appleNotificationsApi,
    ...ocsp,
    ...oauth,
    ...playApi,
    ...purchases,
    ...setup,
    ...state(async (to) => {
      const sim = await ready.promise
      sim.world = await newWorld(sim.url, to.seed ?? sim.world.seed, options.clock)
      sim.changed()
    }),
    ...scenarios,
    ...stripeApi,
    ...hostedPages,
    ...page,
  }
  const ready = Promise.withResolvers<Sim>()
  const server = createHttp(routes, ready.promise)
  server.listen(port, host)
  await once(server, 'listening')
  const url = `http://${host}:${(server.address() as AddressInfo).port}` // it listens on a port
  const known = snapshot.load()
  const world = known ?? (await newWorld(url, seed, options.clock))
  world.keys.ocspUrl = ocspUrlOf(url)
  // A snapshot may be older than this certificate.
  world.keys.xcode ??= await newXcodeCertificate(world, Date.now())
  const sim: Sim = { world, url, wall: () => Date.now(), turn, changed: () => snapshot.save(sim.world) }
  ready.resolve(sim)

  let isTicking = false
  const ticker = setInterval(() => {
    if (isTicking) return
    isTicking = true
    const isStanding = sim.world.apps.every(({ clock }) => clock.mode === 'manual')
    turn(async () => {
      if (!isStanding) await runDue(sim)
      await sendWaiting(sim)
    })
      .catch(console.error)
      .finally(() => {
        isTicking = false
      })
  }, tickMs)
  ticker.unref()
  return {
    url,
    get world() {
      return sim.world
    },
    async [Symbol.asyncDispose]() {
      clearInterval(ticker)
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await last
      snapshot.close()
    },
  }
}

async function newWorld(url: string, seed: string, clock: StartOptions['clock'] = 'real'): Promise<World> {
  const seeded = { seed, counters: {} }
  const first: Clock = clock === 'real' ? { mode: 'real', aheadMs: 0 } : { mode: 'manual', at: clock.at ?? Date.now() }
  const keys = await newKeyRing(seeded, ocspUrlOf(url), nowOf(first, Date.now()))
  const apps = [newAppleApp(defaultAppId, first), newPlayApp(defaultAppId, structuredClone(first))]
  return { ...seeded, keys, apps, faults: [], log: [] }
}

function ocspUrlOf(url: string): string {
  return `${url}/appstore/ocsp`
}
