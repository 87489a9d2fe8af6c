import type { Pool } from '../../db/pool.ts'
import type { Directory, Scope } from '../../tenancy/index.ts'
import type { Cost, Feature } from '../types.ts'
import { readCosts, readFeatures } from './catalogue-store.ts'

/** The Features of one scope as of one revision. Immutable; swapped whole. */
export interface Catalogue {
  revision: bigint
  /** How far a test environment's time runs ahead. */
  clockOffsetMs: number
  /** Published Features by key. */
  published: ReadonlyMap<string, Feature>
  /** Every Feature, archived ones included: old grants still name them. */
  byId: ReadonlyMap<number, Feature>
  /** The published credit systems that contain a member Feature, with what one unit costs. */
  poolsOf: ReadonlyMap<number, { feature: Feature; cost: Cost }[]>
}

/** Keeps one snapshot per scope, read again when the directory knows a newer revision. */
export class Catalogues {
  readonly #pool: Pool
  readonly #directory: Directory
  readonly #byScope = new Map<number, Catalogue>()

  constructor(pool: Pool, directory: Directory) {
    this.#pool = pool
    this.#directory = directory
  }

  /** The snapshot when it is at hand and current; hot verbs ask this first and wait for `load` only when they must. */
  current(scope: Scope): Catalogue | undefined {
    const catalogue = this.#byScope.get(scope.scopeId)
    return catalogue && catalogue.revision >= this.#directory.catalogueRevision(scope.scopeId) ? catalogue : undefined
  }

  async get(scope: Scope): Promise<Catalogue> {
    return this.current(scope) ?? this.load(scope)
  }

  async load(scope: Scope): Promise<Catalogue> {
    const catalogue = await this.#pool.transaction(async (tx) => {
      await tx.query('set transaction isolation level repeatable read read only')
      const { features, ...read } = await readFeatures(tx, scope)
      return build(read, features, await readCosts(tx, scope))
    })
    const held = this.#byScope.get(scope.scopeId)
    if (held && held.revision > catalogue.revision) return held
    this.#byScope.set(scope.scopeId, catalogue)
    return catalogue
  }
}

function build(
  { revision, clockOffsetMs }: Pick<Catalogue, 'revision' | 'clockOffsetMs'>,
  rows: Awaited<ReturnType<typeof readFeatures>>['features'],
  costs: Awaited<ReturnType<typeof readCosts>>,
): Catalogue {
  const byId = new Map<number, Feature>()
  const published = new Map<string, Feature>()
  for (const { status, ...feature } of rows) {
    byId.set(feature.id, feature)
    if (status === 'published') published.set(feature.key, feature)
  }
  const poolsOf = new Map<number, { feature: Feature; cost: Cost }[]>()
  for (const { creditFeatureId, memberFeatureId, credits, per } of costs) {
    const feature = byId.get(creditFeatureId)
    if (!feature || published.get(feature.key) !== feature) continue
    const pools = poolsOf.get(memberFeatureId) ?? []
    pools.push({ feature, cost: { credits, per } })
    poolsOf.set(memberFeatureId, pools)
  }
  return { revision, clockOffsetMs, published, byId, poolsOf }
}
