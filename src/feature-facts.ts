import type { Sql } from './db/pool.ts'
import { activeFeatures, type Catalogues, type createStanding } from './entitlements/index.ts'
import type { FeatureSource } from './journeys/index.ts'
import { getApp } from './tenancy/index.ts'

/** What customers have access to, as conditions of journeys ask for it. */
export function featureSource(
  sql: Sql,
  catalogues: Catalogues,
  standing: ReturnType<typeof createStanding>,
): FeatureSource {
  return async (scope, whose) => {
    const catalogue = await catalogues.get(scope)
    const each = whose.map(async ({ customerId, appId }) => {
      const { platform } = await getApp(sql, scope.workspaceId, scope.environment, appId)
      const { features } = activeFeatures(catalogue, platform, await standing({ scope, customerId }))
      const facts = features.map(({ id, unlimited, balance }) => [id, { unlimited, balance }] as const)
      return [customerId, Object.fromEntries(facts)] as const
    })
    return new Map(await Promise.all(each))
  }
}
