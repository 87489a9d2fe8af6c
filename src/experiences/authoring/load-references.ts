import { listSegments } from '../../customers/index.ts'
import type { Sql } from '../../db/pool.ts'
import { listFeatures } from '../../entitlements/index.ts'
import { catalogueObjectsMax, segmentsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { References } from '../draft/references.ts'

/** What drafts of the scope may name now. There are no experiments yet. */
export async function loadReferences(sql: Sql, scope: Scope): Promise<References> {
  const segments = await listSegments(sql, scope, { limit: segmentsMax, after: null })
  const features = await listFeatures(sql, scope, { limit: catalogueObjectsMax, after: null })
  return {
    segments: new Set(segments.map(({ segment }) => segment.publicId)),
    features: new Set(features.filter(({ status }) => status === 'published').map(({ key }) => key)),
    experiments: new Map(),
  }
}
