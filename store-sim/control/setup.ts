import { Type } from 'typebox'
import { appleAppFor, appNamed, playAppFor } from '../apps.ts'
import { appleProductShape } from '../appstore/types.ts'
import { type ClockMode, changeMode, monthTakesMsMax, monthTakesMsMin, nowOf } from '../clock/clock.ts'
import { advanceTo, runDue } from '../clock/run.ts'
import { faultShape } from '../faults.ts'
import { bodyOf } from '../http/body.ts'
import type { Request, Routes } from '../http/router.ts'
import { addPeriod, isPeriod } from '../period.ts'
import { fingerprint, oidcJwk, rotateLeaf, serviceAccountFile } from '../pki/keys.ts'
import { notifyPlayTest } from '../playstore/notify.ts'
import { playProductShape } from '../playstore/types.ts'
import { refuse } from '../refusal.ts'
import { connect, connectShape } from '../service/connect.ts'
import { connectCards } from '../stripe/connect-cards.ts'
import { log, type Sim, type SimApp } from '../world.ts'
import { shorten } from './shorten.ts'

const strict = { additionalProperties: false }
const appleProducts = Type.Object(
  { app: Type.Optional(Type.String()), products: Type.Array(appleProductShape, { maxItems: 1000 }) },
  strict,
)
const playProducts = Type.Object(
  { app: Type.Optional(Type.String()), products: Type.Array(playProductShape, { maxItems: 1000 }) },
  strict,
)
const shortenShape = Type.Object(
  { app: Type.Optional(Type.String()), month_ms: Type.Integer({ minimum: 1_000, maximum: 3_600_000 }) },
  strict,
)
const testNoticeShape = Type.Object(
  {
    app: Type.Optional(Type.String()),
    name: Type.Optional(Type.String({ pattern: '^[a-z][A-Za-z]{0,60}Notification$' })),
  },
  strict,
)
const faultsShape = Type.Object({ faults: Type.Array(faultShape, { maxItems: 100 }) }, strict)
const clockShape = Type.Object(
  {
    app: Type.Optional(Type.String()),
    mode: Type.Optional(Type.Enum(['real', 'accelerated', 'manual'])),
    month_ms: Type.Optional(Type.Integer({ minimum: monthTakesMsMin, maximum: monthTakesMsMax })),
    /** An ISO 8601 period. */
    by: Type.Optional(Type.String()),
    /** An ISO 8601 instant. */
    to: Type.Optional(Type.String()),
  },
  strict,
)
const targetShape = Type.Object(
  {
    store: Type.Enum(['appstore', 'playstore']),
    app: Type.String({ minLength: 1, maxLength: 200 }),
    url: Type.String({ minLength: 1, maxLength: 400 }),
    audience: Type.Optional(Type.String()),
    email: Type.Optional(Type.String()),
    subscription: Type.Optional(Type.String()),
  },
  strict,
)

/** What the simulator is made of, and who is connected to it. */
export const setup: Routes = {
  'GET /sim/config': async (sim) => ({ body: await configOf(sim) }),

  'POST /sim/connect': (sim, request) => {
    const body = bodyOf(connectShape, request)
    return sim.turn(async () => {
      const cards = await connectCards(sim, body)
      // Of the web there is no store: such an app sells by card alone.
      return { body: cards.platform === 'web' ? cards : { ...aboutApp(sim, await connect(sim, body)), ...cards } }
    })
  },

  'PUT /sim/targets': (sim, request) => {
    const { store, app: id, url, ...rest } = bodyOf(targetShape, request)
    const app = appNamed(sim, store, id)
    const { email } = sim.world.keys.oidc
    app.target = { url, audience: url, email, subscription: `projects/store-sim/subscriptions/${id}`, ...rest }
    sim.changed()
    return { body: aboutApp(sim, app) }
  },

  'PUT /sim/appstore/products': (sim, request) => {
    const { app, products } = bodyOf(appleProducts, request)
    for (const { period, grace } of products) demandPeriods(period, grace)
    const target = appleAppFor(sim, app)
    target.products = products
    sim.changed()
    return { body: { app: target.id, products } }
  },

  'PUT /sim/playstore/products': (sim, request) => {
    const { app, products } = bodyOf(playProducts, request)
    for (const product of products)
      if (product.type === 'subscription')
        for (const { period, grace, hold } of product.basePlans) demandPeriods(period, grace, hold)
    const target = playAppFor(sim, app)
    target.products = products
    sim.changed()
    return { body: { app: target.id, products } }
  },

  'PUT /sim/faults': (sim, request) => {
    sim.world.faults = bodyOf(faultsShape, request).faults
    sim.changed()
    log(sim, { kind: 'control', what: 'PUT /sim/faults', status: 200, detail: sim.world.faults })
    return { body: { faults: sim.world.faults } }
  },

  'POST /sim/clock': (sim, request) => sim.turn(() => moveClocks(sim, request)),

  'POST /sim/playstore/test-notification': (sim, request) => {
    const { app: id, name } = bodyOf(testNoticeShape, request)
    const app = playAppFor(sim, id)
    return sim.turn(async () => {
      notifyPlayTest(sim, app, nowOf(app.clock, sim.wall()), name)
      await runDue(sim)
      return { body: aboutApp(sim, app) }
    })
  },

  'POST /sim/shorten': (sim, request) => {
    const { app: id, month_ms: monthTakesMs } = bodyOf(shortenShape, request)
    const apps = sim.world.apps.filter((app) => id === undefined || app.id === id)
    for (const app of apps) shorten(app, monthTakesMs)
    sim.changed()
    return { body: { apps: apps.map(({ store, id: app, products }) => ({ store, app, products })) } }
  },

  'POST /sim/certificates/rotate': async (sim) => {
    const [first] = sim.world.apps
    const at = first === undefined ? sim.wall() : nowOf(first.clock, sim.wall())
    await sim.turn(() => rotateLeaf(sim.world, sim.world.keys, at))
    sim.changed()
    return { body: await configOf(sim) }
  },
}

async function moveClocks(sim: Sim, request: Request) {
  const { app: id, mode, month_ms: monthTakesMs = 60_000, by, to } = bodyOf(clockShape, request)
  const apps = sim.world.apps.filter((app) => id === undefined || app.id === id)
  if (apps.length === 0) throw refuse('app_not_found', `there is no app ${id}`, 404)
  if (by !== undefined && !isPeriod(by)) throw refuse('invalid_request', 'by: an ISO 8601 period such as P1M or PT5M')
  if (to !== undefined && Number.isNaN(Date.parse(to))) throw refuse('invalid_request', 'to: an ISO 8601 instant')
  await runDue(sim, apps)
  if (mode !== undefined) {
    const next: ClockMode = mode === 'accelerated' ? { mode, monthTakesMs } : { mode }
    for (const app of apps) app.clock = changeMode(app.clock, next, sim.wall())
  }
  if (by !== undefined || to !== undefined) {
    const until = new Map(apps.map((app) => [app, endOf(sim, app, by, to)]))
    for (const [app, at] of until)
      if (at < nowOf(app.clock, sim.wall())) throw refuse('clock_back', `${app.id} is later than that already`, 409)
    await advanceTo(sim, apps, (app) => until.get(app) ?? 0)
  }
  sim.changed()
  return { body: { apps: apps.map((app) => aboutApp(sim, app)) } }
}

function endOf(sim: Sim, app: SimApp, by: string | undefined, to: string | undefined): number {
  if (to !== undefined) return Date.parse(to)
  return addPeriod(nowOf(app.clock, sim.wall()), by ?? 'PT0S')
}

export function aboutApp(sim: Sim, app: SimApp) {
  return {
    store: app.store,
    app: app.id,
    clock: app.clock,
    now: new Date(nowOf(app.clock, sim.wall())).toISOString(),
    target: app.target?.url ?? null,
    connected_app_id: app.connection?.appId ?? null,
    service_follows_clock: app.connection?.hasTestClock ?? false,
    ...(app.store === 'appstore' ? { app_apple_id: app.appAppleId } : {}),
  }
}

async function configOf(sim: Sim): Promise<object> {
  const { world, url } = sim
  const { chains, apiKey, oidc } = world.keys
  return {
    url,
    seed: world.seed,
    appstore: {
      api: `${url}/appstore`,
      ocsp: world.keys.ocspUrl,
      roots: [chains.genuine.root.certificate],
      xcode_certificates: [world.keys.xcode.certificate],
      root_sha256: fingerprint(chains.genuine.root.certificate),
      issuer_id: apiKey.issuerId,
      key_id: apiKey.keyId,
      private_key: apiKey.privateKey,
    },
    playstore: {
      api: `${url}/play`,
      jwks_url: `${url}/play/oauth2/v3/certs`,
      jwks: { keys: [await oidcJwk(world.keys)] },
      push_email: oidc.email,
      service_account: serviceAccountFile(world.keys, url),
    },
    apps: world.apps.map((app) => aboutApp(sim, app)),
  }
}

function demandPeriods(...periods: (string | undefined)[]): void {
  for (const period of periods)
    if (period !== undefined && !isPeriod(period)) throw refuse('invalid_request', `${period} is no ISO 8601 period`)
}
