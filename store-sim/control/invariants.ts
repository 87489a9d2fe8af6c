import type { Reply } from '../http/router.ts'
import { refuse } from '../refusal.ts'
import { callAppApi, callService } from '../service/call.ts'
import type { Connection, Sim, SimApp } from '../world.ts'
import { accountsOf, paidIn, unacknowledgedIn } from './paid.ts'

interface Finding {
  app: string
  account: string
  feature: string
}

/**
 * Compares the stores with what the connected services say, at this moment. Accounts are looked up as the distinct ids of
 * the same name; only boolean Features are compared, since units may be spent. What was paid in one store counts in all apps
 * of the project.
 */
export async function invariants(sim: Sim): Promise<Reply> {
  const { apps } = sim.world
  const paidWithoutAccess: Finding[] = []
  const accessWithoutPaid: Finding[] = []
  for (const project of Map.groupBy(apps.filter(isAskable), ({ connection }) => connection.projectId).values()) {
    const features = await booleanFeatures(project[0]?.connection)
    const paid = new Set(
      project.flatMap((app) => paidIn(sim, app).map((one) => said(one.account, app.store, one.productId))),
    )
    for (const app of project)
      for (const account of accountsOf(app))
        for (const [feature, links] of features) {
          const isPaid = links.some((link) => paid.has(said(account, link.store, link.product_id)))
          const isAllowed = await isEntitled(app.connection, account, feature)
          if (isPaid && !isAllowed) paidWithoutAccess.push({ app: app.id, account, feature })
          if (!isPaid && isAllowed) accessWithoutPaid.push({ app: app.id, account, feature })
        }
  }
  return {
    body: {
      paid_without_access: paidWithoutAccess,
      access_without_paid: accessWithoutPaid,
      not_acknowledged_in_time: apps.flatMap((app) => unacknowledgedIn(sim, app)),
      not_compared: apps.filter((app) => !isAskable(app)).map(({ store, id }) => `${store} ${id}`),
    },
  }
}

type Askable = SimApp & { connection: Connection & { publishableKey: string } }

function isAskable(app: SimApp): app is Askable {
  return app.connection?.publishableKey != null
}

function said(...words: string[]): string {
  return JSON.stringify(words)
}

/** Where each boolean Feature is sold; those that are not sold are left out. */
async function booleanFeatures(connection: Connection | undefined): Promise<Map<string, StoreLink[]>> {
  const found = new Map<string, StoreLink[]>()
  if (connection === undefined) return found
  const ofProject = `?limit=100&project_id=${encodeURIComponent(connection.projectId)}`
  const features = await listOf<{ key: string; type: string }>(connection, `/features${ofProject}`)
  const products = await listOf<ServiceProduct>(connection, `/products${ofProject}`)
  for (const { key, type } of features)
    if (type === 'boolean') {
      const selling = products.filter(({ grants }) => grants.some(({ feature }) => feature === key))
      const links = selling.flatMap(({ stores }) => stores)
      if (links.length > 0) found.set(key, links)
    }
  return found
}

async function listOf<T>(connection: Connection, path: string): Promise<T[]> {
  const { ok, status, body } = await callService(connection, 'GET', path)
  if (!ok) throw refuse('service_refused', `the service answered ${status}: ${JSON.stringify(body)}`, 502)
  return body.data
}

interface StoreLink {
  store: string
  product_id: string
}

interface ServiceProduct {
  grants: { feature: string }[]
  stores: StoreLink[]
}

async function isEntitled(connection: Askable['connection'], customerId: string, featureId: string): Promise<boolean> {
  const answer = await callAppApi(connection, '/entitled', { apiKey: connection.publishableKey, customerId, featureId })
  return answer.body.allowed === true
}
