import type { Sql, Tx } from '../../db/pool.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { GrantTemplate, ProductPreview, ProductRecord, ProductStatus, ProductType, StoreLink } from './types.ts'

const columns = 'scope_id, id, key, name, type, grants, preview, status, created_at, updated_at'

interface ProductRow {
  scope_id: number
  id: string
  key: string
  name: string
  type: ProductType
  /** As written here. */
  grants: GrantTemplate[]
  preview: ProductPreview | null
  status: ProductStatus
  created_at: Date
  updated_at: Date
}

function productOf(row: ProductRow): ProductRecord {
  return {
    scopeId: row.scope_id,
    publicId: row.id,
    key: row.key,
    name: row.name,
    type: row.type,
    grants: row.grants,
    stores: [],
    preview: row.preview,
    status: row.status,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** Empty when the key is taken. */
export async function insertProduct(
  tx: Tx,
  scope: Scope,
  product: Pick<ProductRecord, 'publicId' | 'key' | 'name' | 'type' | 'grants' | 'preview'>,
): Promise<ProductRecord[]> {
  const rows = await tx.query<ProductRow>(
    `insert into product (scope_id, id, key, name, type, grants, preview, status)
     values ($1, $2, $3, $4, $5, $6::jsonb, $7::jsonb, 'active')
     on conflict (scope_id, key) do nothing
     returning ${columns}`,
    [
      ...[scope.scopeId, product.publicId, product.key, product.name, product.type, JSON.stringify(product.grants)],
      product.preview && JSON.stringify(product.preview),
    ],
  )
  return rows.map(productOf)
}

export async function updateProductRow(
  tx: Tx,
  scope: Scope,
  {
    publicId,
    name,
    grants,
    preview,
    status,
  }: Omit<ProductRecord, 'scopeId' | 'key' | 'type' | 'stores' | 'createdAt' | 'updatedAt'>,
): Promise<ProductRecord[]> {
  const rows = await tx.query<ProductRow>(
    `update product
     set name = $3, grants = $4::jsonb, status = $5, preview = $6::jsonb, version = version + 1,
       updated_at = clock_timestamp()
     where scope_id = $1
       and id = $2
     returning ${columns}`,
    [scope.scopeId, publicId, name, JSON.stringify(grants), status, preview && JSON.stringify(preview)],
  )
  return rows.map(productOf)
}

export async function selectProducts(sql: Sql, scope: Scope, { limit, after }: Page): Promise<ProductRecord[]> {
  const rows = await sql.query<ProductRow>(
    `select ${columns}
     from product
     where scope_id = $1
       and ($2::text is null or (created_at, id) < (select created_at, id from product where scope_id = $1 and id = $2))
     order by created_at desc, id desc
     limit $3`,
    [scope.scopeId, after, limit],
  )
  return rows.map(productOf)
}

/** By id or by key, in any of the scopes; `lock` holds them until the transaction ends. */
export async function selectProductsNamed(
  sql: Sql,
  scopes: Scope[],
  name: string,
  { lock }: { lock: boolean },
): Promise<ProductRecord[]> {
  const rows = await sql.query<ProductRow>(
    `select ${columns}
     from product
     where scope_id = any($1::int[])
       and (id = $2 or key = $2)
     ${lock ? 'for update' : ''}`,
    [scopes.map((scope) => scope.scopeId), name],
  )
  return rows.map(productOf)
}

/** Those that have one of the ids or keys. */
export async function selectProductsAmong(sql: Sql, scope: Scope, names: string[]): Promise<ProductRecord[]> {
  const rows = await sql.query<ProductRow>(
    `select ${columns}
     from product
     where scope_id = $1
       and (id = any($2::text[]) or key = any($2::text[]))
     order by id`,
    [scope.scopeId, names],
  )
  return rows.map(productOf)
}

interface LinkRow {
  product_id: string
  store: StoreLink['store']
  store_product_id: string
  base_plan_id: string | null
  purchase_option_id: string | null
  offer_id: string | null
  consumable: boolean
  duration: string | null
  family_sharing: boolean
}

function linkOf(row: LinkRow): StoreLink {
  return {
    store: row.store,
    productId: row.store_product_id,
    basePlanId: row.base_plan_id,
    purchaseOptionId: row.purchase_option_id,
    offerId: row.offer_id,
    consumable: row.consumable,
    duration: row.duration,
    familySharing: row.family_sharing,
  }
}

/** By the id of the Product that they lead to. */
export async function selectLinks(sql: Sql, productIds: string[]): Promise<Map<string, StoreLink[]>> {
  const rows = await sql.query<LinkRow>(
    `select product_id, store, store_product_id, base_plan_id, purchase_option_id, offer_id, consumable,
       duration, family_sharing
     from store_link
     where product_id = any($1::text[])
     order by store, store_product_id, base_plan_id nulls first, purchase_option_id nulls first, offer_id nulls first`,
    [productIds],
  )
  const links = new Map<string, StoreLink[]>()
  for (const row of rows) links.set(row.product_id, [...(links.get(row.product_id) ?? []), linkOf(row)])
  return links
}

export async function deleteLinks(tx: Tx, productId: string): Promise<void> {
  await tx.query(`delete from store_link where product_id = $1`, [productId])
}

/** False when the link leads to a Product already. */
export async function insertLink(tx: Tx, scope: Scope, owner: string, link: StoreLink): Promise<boolean> {
  const rows = await tx.query(
    `insert into store_link
       (scope_id, store, store_product_id, base_plan_id, purchase_option_id, offer_id, consumable, product_id, duration,
        family_sharing)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     on conflict (scope_id, store, store_product_id, base_plan_id, purchase_option_id, offer_id) do nothing
     returning 1`,
    [
      scope.scopeId,
      link.store,
      link.productId,
      link.basePlanId,
      link.purchaseOptionId,
      link.offerId,
      link.consumable,
      owner,
      link.duration,
      link.familySharing,
    ],
  )
  return rows.length === 1
}

/** The Product that a store product leads to: by the most specific of its links. */
export async function selectLinkedProduct(
  sql: Sql,
  scope: Scope,
  store: StoreLink['store'],
  sold: Pick<StoreLink, 'productId' | 'basePlanId' | 'purchaseOptionId' | 'offerId'>,
): Promise<{ product: ProductRecord; link: StoreLink } | undefined> {
  const rows = await sql.query<ProductRow & Omit<LinkRow, 'product_id'>>(
    `select p.scope_id, p.id, p.key, p.name, p.type, p.grants, p.preview, p.status, p.created_at, p.updated_at,
       l.store, l.store_product_id, l.base_plan_id, l.purchase_option_id, l.offer_id, l.consumable, l.duration,
       l.family_sharing
     from store_link l
     join product p on p.id = l.product_id
     where l.scope_id = $1
       and l.store = $2
       and l.store_product_id = $3
       and (l.base_plan_id is null or l.base_plan_id = $4)
       and (l.purchase_option_id is null or l.purchase_option_id = $5)
       and (l.offer_id is null or l.offer_id = $6)
     order by l.offer_id is null, l.base_plan_id is null and l.purchase_option_id is null
     limit 1`,
    [scope.scopeId, store, sold.productId, sold.basePlanId, sold.purchaseOptionId, sold.offerId],
  )
  return rows.map((row) => ({ product: productOf(row), link: linkOf({ ...row, product_id: row.id }) }))[0]
}
