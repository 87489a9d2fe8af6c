import { LRUCache } from 'lru-cache'
import type { Sql } from '../../db/pool.ts'
import { plansKept } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { PinnedPlan } from '../plan.ts'
import { selectPinnedPlans } from '../store/plan-store.ts'

/** Content never changes under the id of its build. */
const known = new LRUCache<string, PinnedPlan>({ max: plansKept })

/** By build; one that was never published is left out. */
export async function pinnedPlans(
  sql: Sql,
  scope: Scope,
  pins: Iterable<{ appId: string; buildId: string }>,
): Promise<ReadonlyMap<string, PinnedPlan>> {
  const found = new Map<string, PinnedPlan>()
  const missing = new Map<string, { appId: string; buildId: string }>()
  for (const { appId, buildId } of pins) {
    const plan = known.get(keyOf(scope, buildId))
    if (plan) found.set(buildId, plan)
    else missing.set(buildId, { appId, buildId })
  }
  if (missing.size === 0) return found
  for (const plan of await selectPinnedPlans(sql, scope, [...missing.values()])) {
    known.set(keyOf(scope, plan.buildId), plan)
    found.set(plan.buildId, plan)
  }
  return found
}

function keyOf({ scopeId }: Scope, buildId: string): string {
  return `${scopeId} ${buildId}`
}
