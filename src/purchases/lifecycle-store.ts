import type { Sql, Tx } from '../db/pool.ts'
import type { Lineage } from './lineage-store.ts'
import type { Ms, Store, StoreApp } from './types.ts'

/** Whether anything of this evidence is stored for an app in its environment, whatever the store's. */
export async function isHeld(
  sql: Sql,
  { scope, appId }: Pick<StoreApp, 'scope' | 'appId'>,
  store: Store,
  evidenceKey: string,
): Promise<boolean> {
  const rows = await sql.query<{ id: bigint }>(
    `select id
     from store_transaction
     where scope_id = $1
       and app_id = $2
       and store = $3
       and store_environment in ('production', 'sandbox', 'xcode')
       and evidence_key = $4
     limit 1`,
    [scope.scopeId, appId, store, evidenceKey],
  )
  return rows.length > 0
}

export interface DueLineage {
  id: bigint
  scope_id: number
  app_id: string
  /** Until when it is ours: another value says that somebody else has read it meanwhile. */
  next_check_at_ms: bigint
}

/** What is left of the notion of now: a test clock only makes more of them due. */
const nowMs = `(extract(epoch from clock_timestamp()) * 1000)::bigint`

/**
 * Takes lineages that are due by the clock of their project, for `leaseMs`: whoever takes them and dies leaves them to the
 * next. Uses store_lineage_check.
 */
export async function takeDueLineages(
  sql: Sql,
  { max, leaseMs }: { max: number; leaseMs: number },
): Promise<DueLineage[]> {
  return sql.query<DueLineage>(
    `with due as (
       select l.id, ${nowMs} + coalesce(c.offset_ms, 0) as now_ms
       from store_lineage l
       left join test_clock c on c.scope_id = l.scope_id
       where l.next_check_at_ms is not null
         and l.next_check_at_ms <= ${nowMs} + coalesce(c.offset_ms, 0)
       order by l.next_check_at_ms
       limit $1
       for update of l skip locked
     )
     update store_lineage l
     set next_check_at_ms = due.now_ms + $2
     from due
     where l.id = due.id
     returning l.id, l.scope_id, l.app_id, l.next_check_at_ms`,
    [max, leaseMs],
  )
}

/** Unless somebody has read it meanwhile: what was read says itself when to look again. */
export async function postponeLineage(
  sql: Sql,
  { id, scope_id, next_check_at_ms: taken }: DueLineage,
  nextCheckAt: Ms | null,
): Promise<void> {
  await sql.query(
    `update store_lineage
     set next_check_at_ms = $4
     where scope_id = $1
       and id = $2
       and next_check_at_ms = $3`,
    [scope_id, id, taken, nextCheckAt],
  )
}

/** The token of a purchase of Google Play that nothing took the place of. */
export async function selectCurrentToken(
  sql: Sql,
  { scopeId, id }: Pick<Lineage, 'scopeId' | 'id'>,
): Promise<{ evidence_key: string; token_sealed: string | null; kind: string | null } | undefined> {
  const rows = await sql.query<{ evidence_key: string; token_sealed: string | null; kind: string | null }>(
    `select evidence_key, token_sealed, claims ->> 'kind' as kind
     from store_transaction
     where scope_id = $1
       and lineage_id = $2
       and superseded_by is null
     order by version_ms desc, id desc
     limit 1`,
    [scopeId, id],
  )
  return rows[0]
}

/** The sealed token of a purchase of Google Play. */
export async function selectSealedToken(
  sql: Sql,
  {
    scope_id,
    app_id,
    store_environment,
    key,
  }: { scope_id: number; app_id: string; store_environment: string; key: string },
): Promise<string | null> {
  const rows = await sql.query<{ token_sealed: string | null }>(
    `select token_sealed
     from store_transaction
     where scope_id = $1
       and app_id = $2
       and store = 'playstore'
       and store_environment = $3
       and evidence_key = $4`,
    [scope_id, app_id, store_environment, key],
  )
  return rows[0]?.token_sealed ?? null
}

/**
 * A store that cannot be asked keeps nobody out: the newest periods of subscriptions that were to renew, and ended less than
 * the lease ago, stay open until it is over. Counted from what was paid, so that any number of tries gives it once.
 */
export async function extendLeases(
  tx: Tx,
  { scopeId, id }: Pick<Lineage, 'scopeId' | 'id'>,
  { now, leaseMs }: { now: Ms; leaseMs: number },
): Promise<{ id: bigint }[]> {
  return tx.query<{ id: bigint }>(
    `update store_period p
     set access_until_ms = p.paid_until_ms + $4
     from store_lineage l
     where p.scope_id = $1
       and p.lineage_id = $2
       and l.scope_id = $1
       and l.id = $2
       and l.auto_renews is not false
       and l.status in ('active', 'grace')
       and p.type = 'subscription'
       and p.revoked_at_ms is null
       and p.superseded_at_ms is null
       and p.paid_until_ms <= $3
       and p.paid_until_ms + $4 > $3
       and p.access_until_ms < p.paid_until_ms + $4
       and not exists (
         select
         from store_period later
         where later.scope_id = p.scope_id
           and later.lineage_id = p.lineage_id
           and later.line = p.line
           and later.paid_until_ms > p.paid_until_ms
       )
     returning p.id`,
    [scopeId, id, now, leaseMs],
  )
}
