import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

/** How far a test environment's time runs ahead; `scope` is an expression for its number. Almost always there is no row. */
export const offsetOf = (scope: string) => `coalesce((select offset_ms from test_clock where scope_id = ${scope}), 0)`

/** Nothing when it would go back. */
export async function upsertTestClock(tx: Tx, scope: Scope, offsetMs: number): Promise<{ offset_ms: bigint }[]> {
  return tx.query<{ offset_ms: bigint }>(
    `insert into test_clock as c (scope_id, offset_ms)
     values ($1, $2)
     on conflict (scope_id) do update
     set offset_ms = excluded.offset_ms
     where c.offset_ms <= excluded.offset_ms
     returning offset_ms`,
    [scope.scopeId, offsetMs],
  )
}

/** By how much time runs ahead anywhere, each once. */
export async function selectOffsets(tx: Tx): Promise<number[]> {
  const rows = await tx.query<{ offset_ms: bigint }>(
    `select distinct date_trunc('month', clock_timestamp() + offset_ms * interval '1 millisecond') as month, offset_ms
     from test_clock
     order by offset_ms`,
  )
  return rows.map(({ offset_ms: offset }) => Number(offset))
}
