import type { Sql } from '../../db/pool.ts'
import type { Ms, StoreApp } from '../types.ts'

/** Orders, and when Google Play voided them. What was told first stays. */
export async function insertVoidedOrders(
  sql: Sql,
  { scope, appId }: Pick<StoreApp, 'scope' | 'appId'>,
  orders: { orderId: string; at: Ms }[],
): Promise<void> {
  await sql.query(
    `insert into play_voided_order (scope_id, app_id, order_id, voided_at_ms)
     select $1, $2, order_id, voided_at_ms
     from unnest($3::text[], $4::bigint[]) as voided (order_id, voided_at_ms)
     order by order_id
     on conflict (scope_id, app_id, order_id) do nothing`,
    [scope.scopeId, appId, orders.map(({ orderId }) => orderId), orders.map(({ at }) => at)],
  )
}

export async function selectVoidedOrders(
  sql: Sql,
  { scope, appId }: Pick<StoreApp, 'scope' | 'appId'>,
  orderIds: string[],
): Promise<Map<string, Ms>> {
  if (orderIds.length === 0) return new Map()
  const rows = await sql.query<{ order_id: string; voided_at_ms: bigint }>(
    `select order_id, voided_at_ms
     from play_voided_order
     where scope_id = $1
       and app_id = $2
       and order_id = any($3)`,
    [scope.scopeId, appId, orderIds],
  )
  return new Map(rows.map((row) => [row.order_id, Number(row.voided_at_ms)]))
}
