import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import {
  archiveProduct,
  createProduct,
  type Edit,
  type GrantTemplate,
  getProduct,
  listProducts,
  type ProductRecord,
  type StoreLink,
  updateProduct,
} from '../../entitlements/index.ts'
import { entityCountersMax, grantTemplatesMax, storeIdCharsMax, storeLinksMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { closed, instant, nullable, oneOf } from '../schema.ts'
import { scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { allowance, interval, rollover, rolloverOf, shownRollover, unlimited } from './grant-terms.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byIdOrKey, environment, inProject, key, name, projectId } from './parts.ts'
import type { Answer, Change } from './route.ts'

export const productType = oneOf('subscription', 'one_time')
const store = oneOf('appstore', 'playstore', 'stripe')
const storeId = Type.String({ minLength: 1, maxLength: storeIdCharsMax, 'x-trimmed': true, 'x-storable': true })

const shown = (max: number) => Type.Optional(Type.String({ minLength: 1, 'x-bytes-max': max, 'x-storable': true }))

/** As much as clients take of each. */
export const preview = nullable(
  closed(
    {
      name: shown(512),
      description: shown(2048),
      price: shown(128),
      period: shown(64),
      period_label: shown(128),
      period_count: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000 })),
      has_trial: Type.Optional(Type.Boolean()),
      trial_label: shown(256),
      intro_offer_label: shown(256),
      renewal_label: shown(256),
    },
    {
      description: 'What screens show until the store has answered. What is left out is a dash, the name the own one.',
    },
  ),
)

const ProductObject = Type.Object(
  {
    object: Type.Literal('product'),
    id: Type.String(),
    project_id: Type.String(),
    environment,
    key: Type.String(),
    name: Type.String(),
    type: productType,
    grants: Type.Array(
      Type.Object({
        feature: Type.String(),
        allowance: nullable(Type.Integer()),
        unlimited: Type.Boolean(),
        interval,
        entity_scoped: Type.Boolean(),
        max_entities: Type.Integer(),
        rollover: shownRollover,
      }),
    ),
    stores: Type.Array(
      Type.Object({
        store,
        product_id: Type.String(),
        base_plan_id: Type.Optional(nullable(Type.String())),
        purchase_option_id: Type.Optional(nullable(Type.String())),
        offer_id: Type.Optional(nullable(Type.String())),
        consumable: Type.Optional(Type.Boolean()),
        duration: Type.Optional(nullable(Type.String())),
        family_sharing: Type.Optional(Type.Boolean()),
      }),
      {
        description:
          'App Store links have `store`, `product_id`, `duration` and `family_sharing`; Stripe links `store` and, as `product_id`, the id of a price; the others are of Google Play.',
      },
    ),
    preview,
    status: oneOf('active', 'archived'),
    created_at: instant,
    updated_at: instant,
  },
  { title: 'Product' },
)

const Template = closed({
  feature: key,
  allowance,
  unlimited,
  interval: Type.Optional(interval),
  entity_scoped: Type.Optional(
    Type.Boolean({ description: 'For each entity of the customer instead of all together.' }),
  ),
  max_entities: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: entityCountersMax,
      description:
        'With `entity_scoped`: entities that nobody registered get theirs by their first spend, as long as no more than this have one. 0: registered ones only.',
    }),
  ),
  rollover: Type.Optional(rollover),
})
export const templates = Type.Array(Template, { maxItems: grantTemplatesMax })

const Link = closed({
  store,
  product_id: storeId,
  base_plan_id: Type.Optional(nullable(storeId)),
  purchase_option_id: Type.Optional(nullable(storeId)),
  offer_id: Type.Optional(nullable(storeId)),
  consumable: Type.Optional(Type.Boolean()),
  duration: Type.Optional(
    nullable(
      Type.String({
        maxLength: 40,
        description: 'App Store: how long a non-renewing subscription lasts, such as `P1M`. Apple sends no end.',
      }),
    ),
  ),
  family_sharing: Type.Optional(
    Type.Boolean({ description: 'App Store: members of the family that share it get it too.' }),
  ),
})
export const links = Type.Optional(
  Type.Array(Link, {
    maxItems: storeLinksMax,
    description:
      'A store product leads to one Product of the environment. A Product is sold by card with the first of its Stripe prices, by id.',
  }),
)
const tag = 'Products'

export function products({ get, post, patch }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/products',
      operationId: 'listProducts',
      tag,
      summary: 'List Products',
      query: closed({ ...listQuery, project_id: projectId }),
      answers: { 200: listOf(ProductObject) },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, idsOf('prod'))
      const scope = look.scope(query.project_id)
      const found = await listProducts(pool, scope, page)
      return listAnswer(found, page, {
        show: (product) => showProduct(product, scope),
        positionOf: ({ publicId }) => publicId,
      })
    },
  )

  post(
    {
      path: '/products',
      operationId: 'createProduct',
      tag,
      summary: 'Create a Product',
      description:
        'Boolean Features take neither allowance nor interval; the others need an allowance or `unlimited`. Rollover needs an interval.',
      body: closed({
        ...{ project_id: projectId, key, name, type: productType, grants: templates, stores: links },
        preview: Type.Optional(preview),
      }),
      answers: { 201: ProductObject },
      errors: [404, 409],
    },
    async (change, { body }) => {
      const scope = change.scope(body.project_id)
      const product = await createProduct(change.tx, scope, {
        key: body.key,
        name: body.name,
        type: body.type,
        grants: body.grants.map(templateOf),
        stores: (body.stores ?? []).map(linkOf),
        preview: body.preview,
      })
      await change.audit('create', 'product', product.publicId, { after: showProduct(product, scope) })
      await change.catalogueChanged(scope)
      return { status: 201, body: showProduct(product, scope) }
    },
  )

  get(
    {
      path: '/products/:id',
      operationId: 'getProduct',
      tag,
      summary: 'Get a Product',
      description: 'By id or key.',
      params: byIdOrKey,
      query: inProject,
      answers: { 200: ProductObject },
      errors: [404],
    },
    async (look, { params, query }) => {
      const scopes = look.scopes(query.project_id)
      const product = await getProduct(pool, scopes, params.id)
      return showProduct(product, scopeIn(scopes, product))
    },
  )

  patch(
    {
      path: '/products/:id',
      operationId: 'updateProduct',
      tag,
      summary: 'Change a Product',
      description:
        'By id or key. Lists are replaced whole. Grants made from then on have the new terms; those made before keep theirs.',
      params: byIdOrKey,
      query: inProject,
      body: closed({
        ...{ name: Type.Optional(name), grants: Type.Optional(templates), stores: links },
        preview: Type.Optional(preview),
      }),
      answers: { 200: ProductObject },
      errors: [404, 409],
    },
    async (change, { params, query, body }) => {
      const lists = { grants: body.grants?.map(templateOf), stores: body.stores?.map(linkOf) }
      const changes = { name: body.name, ...lists, preview: body.preview }
      return answer(
        change,
        'update',
        await updateProduct(change.tx, change.scopes(query.project_id), params.id, changes),
      )
    },
  )

  post(
    {
      path: '/products/:id/archive',
      operationId: 'archiveProduct',
      tag,
      summary: 'Archive a Product',
      description:
        'It is not attached by hand any more. What was bought is still owed: its store links stay. By id or key.',
      params: byIdOrKey,
      query: inProject,
      answers: { 200: ProductObject },
      errors: [404, 409],
    },
    async (change, { params, query }) =>
      answer(change, 'archive', await archiveProduct(change.tx, change.scopes(query.project_id), params.id)),
  )
}

async function answer(change: Change, action: string, edit: Edit<ProductRecord>): Promise<Answer> {
  const { before, after, scope } = edit
  const states = { before: showProduct(before, scope), after: showProduct(after, scope) }
  await change.audit(action, 'product', after.publicId, states)
  await change.catalogueChanged(scope)
  return { status: 200, body: states.after }
}

export function templateOf(template: Static<typeof Template>): GrantTemplate {
  return {
    feature: template.feature,
    allowance: template.allowance ?? null,
    unlimited: template.unlimited ?? false,
    interval: template.interval ?? null,
    entity_scoped: template.entity_scoped ?? false,
    max_entities: template.max_entities ?? 0,
    rollover: rolloverOf(template.rollover),
  }
}

export function linkOf(link: Static<typeof Link>): StoreLink {
  return {
    store: link.store,
    productId: link.product_id,
    basePlanId: link.base_plan_id ?? null,
    purchaseOptionId: link.purchase_option_id ?? null,
    offerId: link.offer_id ?? null,
    consumable: link.consumable ?? false,
    duration: link.duration ?? null,
    familySharing: link.family_sharing ?? false,
  }
}

/** As the API shows it. */
export function showProduct(product: ProductRecord, scope: Scope): Static<typeof ProductObject> {
  return {
    object: 'product',
    id: product.publicId,
    project_id: scope.projectId,
    environment: scope.environment,
    key: product.key,
    name: product.name,
    type: product.type,
    grants: product.grants.map(showTemplate),
    stores: product.stores.map(showLink),
    preview: product.preview,
    status: product.status,
    created_at: product.createdAt.toISOString(),
    updated_at: product.updatedAt.toISOString(),
  }
}

/** In an order for readers: the database keeps its own. */
function showTemplate(template: GrantTemplate): Static<typeof ProductObject>['grants'][number] {
  const { feature, allowance, unlimited, interval, entity_scoped, max_entities = 0, rollover } = template
  return { feature, allowance, unlimited, interval, entity_scoped, max_entities, rollover }
}

function showLink(link: StoreLink): Static<typeof ProductObject>['stores'][number] {
  if (link.store === 'appstore') {
    return {
      ...{ store: link.store, product_id: link.productId },
      ...(link.duration === null ? {} : { duration: link.duration }),
      ...(link.familySharing ? { family_sharing: true } : {}),
    }
  }
  return {
    store: link.store,
    product_id: link.productId,
    base_plan_id: link.basePlanId,
    purchase_option_id: link.purchaseOptionId,
    offer_id: link.offerId,
    consumable: link.consumable,
  }
}
