import { listSegments } from '../../customers/index.ts'
import type { Sql } from '../../db/pool.ts'
import { listFeatures } from '../../entitlements/index.ts'
import { catalogueObjectsMax, segmentsMax, webhookEndpointsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { References } from '../draft/references.ts'
import { selectEndpoints } from '../endpoints/endpoint-store.ts'
import { selectAllExperiments } from '../experiments/experiment-store.ts'

/** What drafts of the scope may name now. */
export async function loadReferences(sql: Sql, scope: Scope): Promise<References> {
  const segments = await listSegments(sql, scope, { limit: segmentsMax, after: null })
  const features = await listFeatures(sql, scope, { limit: catalogueObjectsMax, after: null })
  const experiments = await selectAllExperiments(sql, scope)
  const endpoints = await selectEndpoints(sql, scope, { limit: webhookEndpointsMax, after: null })
  return {
    segments: new Set(segments.map(({ segment }) => segment.publicId)),
    features: new Set(features.filter(({ status }) => status === 'published').map(({ key }) => key)),
    experiments: new Map(
      experiments.map(({ publicId, kind, status, variants }) => [
        publicId,
        { kind, isArchived: status === 'archived', variants: variants.map(({ id, isHoldout }) => ({ id, isHoldout })) },
      ]),
    ),
    webhookEndpoints: new Set(endpoints.map(({ publicId }) => publicId)),
  }
}
