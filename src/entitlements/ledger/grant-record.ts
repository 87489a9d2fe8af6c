import type { Pool } from '../../db/pool.ts'
import type { RawRow } from '../../db/raw.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import { settle } from '../engine/settle.ts'
import type { FeatureType, Grant, Ms, Units } from '../types.ts'
import { grantOf } from './grant-row.ts'
import { selectGrantsOf } from './grants-store.ts'

export type GrantState = 'scheduled' | 'live' | 'drained' | 'expired' | 'revoked'

/** A grant as the workspace sees it. `grant.remaining` is as of now: due resets are done. */
export interface GrantRecord {
  grant: Grant
  customerId: string
  feature: { key: string; type: FeatureType; scale: number }
  productId: string | null
  /** Unique in the scope; of a purchase `purchase:<its id>:…`. */
  sourceRef: string
  note: string | null
  state: GrantState
  /** Units that were spent before a revocation could take them back. */
  uncollected: Units
}

/** Newest first, ended ones included. `after` is the number of a grant. */
export async function listGrants(pool: Pool, scope: Scope, customerId: string, page: Page): Promise<GrantRecord[]> {
  const rows = await pool.connected((client) => selectGrantsOf(client, scope, customerId, page))
  return rows.map((row) => recordOf(row, customerId))
}

/** Reads a grant from a row of `grantListColumns`. */
export function recordOf(row: RawRow, customerId: string): GrantRecord {
  const [now, lastAt, key, type, scale, sourceRef, productId, note, uncollected] = row
  const at = Math.max(Number(now), Number(lastAt))
  const feature = { key: key ?? '', type: type as FeatureType, scale: Number(scale) } // type: by the table's check
  const grant = settledAlone(grantOf(row, 9), at)
  return {
    grant,
    customerId,
    feature,
    productId: productId ?? null,
    sourceRef: sourceRef ?? '',
    note: note ?? null,
    state: stateAt(grant, feature.type, at),
    uncollected: BigInt(uncollected ?? 0),
  }
}

export function stateAt(grant: Grant, type: FeatureType, at: Ms): GrantState {
  if (grant.revokedAt !== null && grant.revokedAt <= at) return 'revoked'
  if (grant.expiresAt !== null && grant.expiresAt <= at) return 'expired'
  if (grant.effectiveAt > at) return 'scheduled'
  return grant.remaining === 0n && !grant.unlimited && type !== 'boolean' ? 'drained' : 'live'
}

/** With its own due reset done. What a period left for rollover shows once it has a row. */
function settledAlone(grant: Grant, at: Ms): Grant {
  const account = {
    id: grant.accountId,
    featureId: 0,
    used: 0n,
    entities: new Map<string, { used: Units; registered: boolean }>(),
    grants: [grant],
    lastAt: at,
    version: 0n,
  }
  const refill = settle(account, grant.entityId, at).find((change) => change.kind === 'refill')
  return refill ? { ...grant, remaining: refill.remaining, periodNo: refill.period } : grant
}
