import { type Static, Type } from 'typebox'
import { bodyOf } from '../http/body.ts'
import type { Routes } from '../http/router.ts'
import { refuse } from '../refusal.ts'
import { callAppApi, callService } from '../service/call.ts'
import type { Delivery, Sim, SimApp } from '../world.ts'
import { invariants } from './invariants.ts'
import { aboutApp } from './setup.ts'

const resetShape = Type.Object(
  { seed: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })) },
  { additionalProperties: false },
)
export type Reset = Static<typeof resetShape>
const customerShape = Type.Object(
  {
    store: Type.Optional(Type.Enum(['appstore', 'playstore'])),
    app: Type.Optional(Type.String()),
    path: Type.Union([Type.Literal('/entitled'), Type.Literal('/purchase'), Type.Literal('/profile')]),
    body: Type.Record(Type.String(), Type.Unknown()),
  },
  { additionalProperties: false },
)

/** Looking at everything, and starting afresh. */
export function state(reset: (to: Reset) => Promise<void>): Routes {
  return {
    'GET /sim/state': (sim) => ({ body: stateOf(sim) }),
    'GET /sim/log': (sim, { query }) => {
      const after = Number(query.get('after') ?? 0)
      return { body: { log: sim.world.log.filter(({ n }) => n > after) } }
    },
    'GET /sim/invariants': (sim) => invariants(sim),
    'POST /sim/reset': async (sim, request) => {
      const to = bodyOf(resetShape, request)
      await sim.turn(() => reset(to))
      return { body: {} }
    },
    /** As a device of a connected app: the page has no other way, browsers don't cross origins. */
    'POST /sim/service': async (sim, request) => {
      const { store, app: id, path, body } = bodyOf(customerShape, request)
      const app = connectedApp(sim, id, store)
      const connection = app.connection
      if (connection?.publishableKey == null) throw refuse('no_key', `${app.id} has no publishable key in test`, 409)
      const answer = await callAppApi(connection, path, { apiKey: connection.publishableKey, ...body })
      return { body: { status: answer.status, body: answer.body } }
    },
    'GET /sim/features': async (sim, { query }) => {
      const { connection } = connectedApp(sim, query.get('app') ?? undefined)
      if (connection === null) throw refuse('not_connected', 'no app is connected', 409)
      const path = `/features?limit=100&project_id=${encodeURIComponent(connection.projectId)}`
      const answer = await callService(connection, 'GET', path)
      return { body: { status: answer.status, body: answer.body } }
    },
  }
}

function connectedApp(sim: Sim, id: string | undefined, store?: string): SimApp {
  const app = sim.world.apps.find(
    (one) =>
      one.connection !== null && (id === undefined || one.id === id) && (store === undefined || one.store === store),
  )
  if (app === undefined) throw refuse('not_connected', 'connect a test app of the service first', 409)
  return app
}

const deliveriesShown = 200

function aboutDelivery({ id, label, createdAt, nextAt, attempts }: Delivery) {
  return { id, label, createdAt, nextAt, attempts }
}

function stateOf(sim: Sim): object {
  return {
    apps: sim.world.apps.map((app) => ({
      ...aboutApp(sim, app),
      products: app.products,
      deliveries: app.deliveries.slice(-deliveriesShown).map(aboutDelivery),
      ...(app.store === 'appstore'
        ? { lineages: app.lineages, pending: app.pending }
        : { subscriptions: app.subscriptions, oneTimes: app.oneTimes, voided: app.voided }),
    })),
    faults: sim.world.faults,
  }
}
