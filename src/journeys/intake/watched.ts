import { LRUCache } from 'lru-cache'
import type { Tx } from '../../db/pool.ts'
import type { Plan } from '../../experiences/index.ts'
import { watchedBuildsKept, watchedScopesKept } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type Interests, interestsOf, joined } from './watched-names.ts'
import { selectBuilds, selectPlans, selectPublishedRevision } from './watched-store.ts'

/** What the journeys of a scope listen to as of now; null when nothing was ever published: one probe. */
export function createWatched(): (tx: Tx, scope: Scope) => Promise<Interests | null> {
  const byScope = new LRUCache<number, { revision: string; interests: Interests }>({ max: watchedScopesKept })
  const byBuild = new LRUCache<string, Interests>({ max: watchedBuildsKept })

  return async (tx, scope) => {
    const revision = await selectPublishedRevision(tx, scope)
    if (revision === null) return null
    const known = byScope.get(scope.scopeId)
    if (known?.revision === revision) return known.interests
    const interests = await load(tx, scope)
    byScope.set(scope.scopeId, { revision, interests })
    return interests
  }

  async function load(tx: Tx, scope: Scope): Promise<Interests> {
    const ids = await selectBuilds(tx, scope)
    const all = new Map<string, Interests>()
    for (const id of ids) {
      const known = byBuild.get(id)
      if (known) all.set(id, known)
    }
    const missing = ids.filter((id) => !all.has(id))
    for (const { id, plan } of missing.length > 0 ? await selectPlans(tx, scope, missing) : []) {
      const interests = interestsOf(JSON.parse(plan) as Plan) // made by the compiler
      byBuild.set(id, interests)
      all.set(id, interests)
    }
    return joined(all.values())
  }
}
