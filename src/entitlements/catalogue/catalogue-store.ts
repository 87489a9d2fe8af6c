import type { Sql } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import type { Platform, Scope } from '../../tenancy/index.ts'
import type { Feature, FeatureType } from '../types.ts'

export type FeatureStatus = 'draft' | 'published' | 'archived'

export async function readFeatures(
  sql: Sql,
  scope: Scope,
): Promise<{ revision: bigint; clockOffsetMs: number; features: (Feature & { status: FeatureStatus })[] }> {
  const [row] = await sql.query<{ revision: bigint; offset_ms: bigint | null }>(
    `select s.revision, c.offset_ms
     from scope s
     left join test_clock c on c.scope_id = s.id
     where s.id = $1`,
    [scope.scopeId],
  )
  const rows = await sql.query<{
    id: number
    public_id: string
    key: string
    name: string
    type: FeatureType
    platforms: Platform[] | null
    scale: number
    status: FeatureStatus
  }>(
    `select id, public_id, key, name, type, platforms, scale, status
     from feature
     where scope_id = $1`,
    [scope.scopeId],
  )
  const features = rows.map(({ public_id, ...feature }) => ({ ...feature, publicId: public_id }))
  const { revision, offset_ms: offset } = must(row, 'the scope exists')
  return { revision, clockOffsetMs: Number(offset ?? 0), features }
}

export async function readCosts(
  sql: Sql,
  scope: Scope,
): Promise<{ creditFeatureId: number; memberFeatureId: number; credits: bigint; per: bigint }[]> {
  const rows = await sql.query<{ credit_feature_id: number; member_feature_id: number; credits: bigint; per: bigint }>(
    `select c.credit_feature_id, c.member_feature_id, c.credits, c.per
     from feature_cost c
     join feature f on f.id = c.credit_feature_id
     where f.scope_id = $1`,
    [scope.scopeId],
  )
  return rows.map((row) => ({
    creditFeatureId: row.credit_feature_id,
    memberFeatureId: row.member_feature_id,
    credits: row.credits,
    per: row.per,
  }))
}
