import type { Sql, Tx } from '../../db/pool.ts'
import type { Page } from '../../kernel/page.ts'
import type { Platform, Scope } from '../../tenancy/index.ts'
import type { FeatureType } from '../types.ts'
import type { FeatureStatus } from './catalogue-store.ts'
import type { FeatureCost, FeatureRecord } from './types.ts'

const columns = 'scope_id, id, public_id, key, name, type, platforms, scale, status, created_at, updated_at'

interface FeatureRow {
  scope_id: number
  id: number
  public_id: string
  key: string
  name: string
  type: FeatureType
  platforms: Platform[] | null
  scale: number
  status: FeatureStatus
  created_at: Date
  updated_at: Date
}

function featureOf(row: FeatureRow): FeatureRecord {
  return {
    scopeId: row.scope_id,
    id: row.id,
    publicId: row.public_id,
    key: row.key,
    name: row.name,
    type: row.type,
    platforms: row.platforms,
    scale: row.scale,
    status: row.status,
    costs: [],
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** Empty when the key is taken. */
export async function insertFeature(
  tx: Tx,
  scope: Scope,
  feature: Pick<FeatureRecord, 'publicId' | 'key' | 'name' | 'type' | 'platforms' | 'scale' | 'status'>,
): Promise<FeatureRecord[]> {
  const rows = await tx.query<FeatureRow>(
    `insert into feature (scope_id, public_id, key, name, type, platforms, scale, status)
     values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict (scope_id, key) do nothing
     returning ${columns}`,
    [
      scope.scopeId,
      feature.publicId,
      feature.key,
      feature.name,
      feature.type,
      feature.platforms,
      feature.scale,
      feature.status,
    ],
  )
  return rows.map(featureOf)
}

export async function updateFeatureRow(
  tx: Tx,
  scope: Scope,
  { id, name, platforms, scale, status }: Pick<FeatureRecord, 'id' | 'name' | 'platforms' | 'scale' | 'status'>,
): Promise<FeatureRecord[]> {
  const rows = await tx.query<FeatureRow>(
    `update feature
     set name = $3, platforms = $4, scale = $5, status = $6, updated_at = clock_timestamp()
     where scope_id = $1
       and id = $2
     returning ${columns}`,
    [scope.scopeId, id, name, platforms, scale, status],
  )
  return rows.map(featureOf)
}

export async function selectFeatures(sql: Sql, scope: Scope, { limit, after }: Page): Promise<FeatureRecord[]> {
  const rows = await sql.query<FeatureRow>(
    `select ${columns}
     from feature
     where scope_id = $1
       and ($2::text is null or id < (select id from feature where public_id = $2))
     order by id desc
     limit $3`,
    [scope.scopeId, after, limit],
  )
  return rows.map(featureOf)
}

/** By public id or by key, in any of the scopes; `lock` holds them until the transaction ends. */
export async function selectFeaturesNamed(
  sql: Sql,
  scopes: Scope[],
  name: string,
  { lock }: { lock: boolean },
): Promise<FeatureRecord[]> {
  const rows = await sql.query<FeatureRow>(
    `select ${columns}
     from feature
     where scope_id = any($1::int[])
       and (public_id = $2 or key = $2)
     ${lock ? 'for update' : ''}`,
    [scopes.map((scope) => scope.scopeId), name],
  )
  return rows.map(featureOf)
}

export async function selectFeaturesByKey(sql: Sql, scope: Scope, keys: string[]): Promise<FeatureRecord[]> {
  const rows = await sql.query<FeatureRow>(
    `select ${columns}
     from feature
     where scope_id = $1
       and key = any($2::text[])`,
    [scope.scopeId, keys],
  )
  return rows.map(featureOf)
}

/** The costs of several credit systems, members by key. */
export async function selectCosts(
  sql: Sql,
  creditFeatureIds: number[],
): Promise<(FeatureCost & { creditFeatureId: number })[]> {
  const rows = await sql.query<{ credit_feature_id: number; key: string; credits: bigint; per: bigint }>(
    `select c.credit_feature_id, m.key, c.credits, c.per
     from feature_cost c
     join feature m on m.id = c.member_feature_id
     where c.credit_feature_id = any($1::int[])
     order by c.credit_feature_id, m.key`,
    [creditFeatureIds],
  )
  return rows.map(({ credit_feature_id, key, credits, per }) => ({
    creditFeatureId: credit_feature_id,
    feature: key,
    credits,
    per,
  }))
}

export async function replaceCosts(
  tx: Tx,
  creditFeatureId: number,
  costs: { memberFeatureId: number; credits: bigint; per: bigint }[],
): Promise<void> {
  await tx.query(`delete from feature_cost where credit_feature_id = $1`, [creditFeatureId])
  await tx.query(
    `insert into feature_cost (credit_feature_id, member_feature_id, credits, per)
     select $1, member_feature_id, credits, per
     from unnest($2::int[], $3::bigint[], $4::bigint[]) as q(member_feature_id, credits, per)`,
    [
      creditFeatureId,
      costs.map((cost) => cost.memberFeatureId),
      costs.map((cost) => cost.credits),
      costs.map((cost) => cost.per),
    ],
  )
}
