import type { Reply } from '../http/router.ts'
import { callAppApi, callService } from '../service/call.ts'
import type { Connection, Sim, SimApp } from '../world.ts'
import { accountsOf, paidIn, unacknowledgedIn } from './paid.ts'

interface Finding {
  app: string
  account: string
  feature: string
}

/**
 * Compares the stores with what the connected service says, at this moment. Accounts are looked up as the distinct ids of the
 * same name; only boolean Features are compared, since units may be spent.
 */
export async function invariants(sim: Sim): Promise<Reply> {
  const paidWithoutAccess: Finding[] = []
  const accessWithoutPaid: Finding[] = []
  const notCompared: string[] = []
  for (const app of sim.world.apps) {
    const features = app.connection === null ? null : await booleanFeatures(app.connection, app.store)
    if (app.connection === null || features === null) {
      notCompared.push(`${app.store} ${app.id}`)
      continue
    }
    const paid = paidIn(sim, app)
    for (const account of accountsOf(app)) {
      const mine = new Set(paid.filter((one) => one.account === account).map(({ productId }) => productId))
      for (const [feature, products] of features) {
        const isPaid = products.some((productId) => mine.has(productId))
        const isAllowed = await isEntitled(app, account, feature)
        if (isPaid && !isAllowed) paidWithoutAccess.push({ app: app.id, account, feature })
        if (!isPaid && isAllowed) accessWithoutPaid.push({ app: app.id, account, feature })
      }
    }
  }
  return {
    body: {
      paid_without_access: paidWithoutAccess,
      access_without_paid: accessWithoutPaid,
      not_acknowledged_in_time: sim.world.apps.flatMap((app) => unacknowledgedIn(sim, app)),
      not_compared: notCompared,
    },
  }
}

/** Which of the store's products grant which boolean Feature. */
async function booleanFeatures(connection: Connection, store: string): Promise<Map<string, string[]> | null> {
  const ofProject = `?limit=100&project_id=${encodeURIComponent(connection.projectId)}`
  const [features, products] = await Promise.all([
    callService(connection, 'GET', `/features${ofProject}`),
    callService(connection, 'GET', `/products${ofProject}`),
  ])
  if (!features.ok || !products.ok || connection.publishableKey === null) return null
  const found = new Map<string, string[]>()
  for (const { key, type } of features.body.data as { key: string; type: string }[])
    if (type === 'boolean') found.set(key, [])
  for (const product of products.body.data as ServiceProduct[])
    for (const { feature } of product.grants)
      found.get(feature)?.push(...product.stores.filter((link) => link.store === store).map((link) => link.product_id))
  for (const [feature, ids] of found) if (ids.length === 0) found.delete(feature)
  return found
}

interface ServiceProduct {
  grants: { feature: string }[]
  stores: { store: string; product_id: string }[]
}

async function isEntitled({ connection }: SimApp, account: string, featureId: string): Promise<boolean> {
  if (connection?.publishableKey == null) return false
  const answer = await callAppApi(connection, '/entitled', {
    apiKey: connection.publishableKey,
    customerId: account,
    featureId,
  })
  return answer.body.allowed === true
}
