import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import {
  archiveFeature,
  costText,
  createFeature,
  type Edit,
  type FeatureRecord,
  getFeature,
  listFeatures,
  publishFeature,
  updateFeature,
} from '../../entitlements/index.ts'
import { creditMembersMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { closed, instant, nullable, oneOf } from '../schema.ts'
import { amount, numberOrText } from './amount.ts'
import { scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byIdOrKey, environment, inProject, key, name, projectId } from './parts.ts'
import type { Answer, Change } from './route.ts'

export const featureType = oneOf('boolean', 'metered', 'creditSystem')
const platform = oneOf('ios', 'android', 'web')

const FeatureObject = Type.Object(
  {
    object: Type.Literal('feature'),
    id: Type.String(),
    project_id: Type.String(),
    environment,
    key: Type.String({ description: 'The `featureId` of the App API.' }),
    name: Type.String(),
    type: featureType,
    platforms: nullable(Type.Array(platform)),
    credit_costs: Type.Array(
      Type.Object(
        { feature: Type.String(), cost: amount },
        { description: 'Credits for one unit of a metered Feature' },
      ),
    ),
    status: oneOf('draft', 'published', 'archived'),
    created_at: instant,
    updated_at: instant,
  },
  { title: 'Feature' },
)

export const platforms = Type.Optional(
  nullable(Type.Array(platform, { minItems: 1, uniqueItems: true, description: 'Null: all.' })),
)
export const creditCosts = Type.Optional(
  Type.Array(
    closed({
      feature: key,
      cost: Type.Unsafe<string | number>({
        type: ['string', 'number'],
        maxLength: 32,
        description: 'Credits for one unit: positive, at most 12 digits before and 6 after the point.',
      }),
    }),
    { maxItems: creditMembersMax, description: 'Of a creditSystem only. Replaced whole.' },
  ),
)
const tag = 'Features'

export function features({ get, post, patch }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/features',
      operationId: 'listFeatures',
      tag,
      summary: 'List Features',
      query: closed({ ...listQuery, project_id: projectId }),
      answers: { 200: listOf(FeatureObject) },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, idsOf('feat'))
      const scope = look.scope(query.project_id)
      const found = await listFeatures(pool, scope, page)
      return listAnswer(found, page, {
        show: (feature) => showFeature(feature, scope),
        positionOf: ({ publicId }) => publicId,
      })
    },
  )

  post(
    {
      path: '/features',
      operationId: 'createFeature',
      tag,
      summary: 'Create a Feature',
      description:
        'Published at once unless `published` is false. The type never changes. The decimals of the costs fix how finely credits are kept, from the first publication on.',
      body: closed({
        project_id: projectId,
        key,
        name,
        type: featureType,
        platforms,
        credit_costs: creditCosts,
        published: Type.Optional(Type.Boolean()),
      }),
      answers: { 201: FeatureObject },
      errors: [404, 409],
    },
    async (change, { body }) => {
      const scope = change.scope(body.project_id)
      const feature = await createFeature(change.tx, scope, {
        key: body.key,
        name: body.name,
        type: body.type,
        platforms: body.platforms,
        creditCosts: body.credit_costs,
        published: body.published ?? true,
      })
      await change.audit('create', 'feature', feature.publicId, { after: showFeature(feature, scope) })
      await change.catalogueChanged(scope)
      return { status: 201, body: showFeature(feature, scope) }
    },
  )

  get(
    {
      path: '/features/:id',
      operationId: 'getFeature',
      tag,
      summary: 'Get a Feature',
      description: 'By id or key.',
      params: byIdOrKey,
      query: inProject,
      answers: { 200: FeatureObject },
      errors: [404],
    },
    async (look, { params, query }) => {
      const scopes = look.scopes(query.project_id)
      const feature = await getFeature(pool, scopes, params.id)
      return showFeature(feature, scopeIn(scopes, feature))
    },
  )

  patch(
    {
      path: '/features/:id',
      operationId: 'updateFeature',
      tag,
      summary: 'Change a Feature',
      description: 'By id or key. Costs must fit the decimals with which the Feature was first published.',
      params: byIdOrKey,
      query: inProject,
      body: closed({ name: Type.Optional(name), platforms, credit_costs: creditCosts }),
      answers: { 200: FeatureObject },
      errors: [404],
    },
    async (change, { params, query, body }) => {
      const changes = { name: body.name, platforms: body.platforms, creditCosts: body.credit_costs }
      return answer(
        change,
        'update',
        await updateFeature(change.tx, change.scopes(query.project_id), params.id, changes),
      )
    },
  )

  post(
    {
      path: '/features/:id/publish',
      operationId: 'publishFeature',
      tag,
      summary: 'Publish a Feature',
      description: 'From a draft, or back from the archive. By id or key.',
      params: byIdOrKey,
      query: inProject,
      answers: { 200: FeatureObject },
      errors: [404, 409],
    },
    async (change, { params, query }) =>
      answer(change, 'publish', await publishFeature(change.tx, change.scopes(query.project_id), params.id)),
  )

  post(
    {
      path: '/features/:id/archive',
      operationId: 'archiveFeature',
      tag,
      summary: 'Archive a Feature',
      description: 'The App API does not know it any more; grants stay, for when it is published again. By id or key.',
      params: byIdOrKey,
      query: inProject,
      answers: { 200: FeatureObject },
      errors: [404, 409],
    },
    async (change, { params, query }) =>
      answer(change, 'archive', await archiveFeature(change.tx, change.scopes(query.project_id), params.id)),
  )
}

async function answer(change: Change, action: string, edit: Edit<FeatureRecord>): Promise<Answer> {
  const { before, after, scope } = edit
  const states = { before: showFeature(before, scope), after: showFeature(after, scope) }
  await change.audit(action, 'feature', after.publicId, states)
  await change.catalogueChanged(scope)
  return { status: 200, body: states.after }
}

/** As the API shows it. */
export function showFeature(feature: FeatureRecord, scope: Scope): Static<typeof FeatureObject> {
  return {
    object: 'feature',
    id: feature.publicId,
    project_id: scope.projectId,
    environment: scope.environment,
    key: feature.key,
    name: feature.name,
    type: feature.type,
    platforms: feature.platforms,
    credit_costs: feature.costs.map((cost) => ({ feature: cost.feature, cost: numberOrText(costText(cost)) })),
    status: feature.status,
    created_at: feature.createdAt.toISOString(),
    updated_at: feature.updatedAt.toISOString(),
  }
}
