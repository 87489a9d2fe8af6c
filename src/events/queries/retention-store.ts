import type { Sql } from '../../db/pool.ts'
import { createParams } from './params.ts'
import { bucket, customerOf, eventsOf, type Source, withSource } from './source-store.ts'
import type { RetentionQuery } from './types.ts'

export interface Returned {
  /** From 1. */
  bucket: number
  /** Periods later; 0: the cohort itself. */
  later: number
  count: number
}

/** Customers by the period they started in, and how many of them returned how many periods later. */
export async function selectRetention(
  sql: Sql,
  source: Source,
  { startEvent, returnEvent, mode, periods }: RetentionQuery,
  edges: readonly number[],
): Promise<Returned[]> {
  const params = createParams()
  const customer = customerOf(source.merged)
  const started = `
    started as materialized (
      select ${customer} as customer, ${mode === 'first' ? `min(${bucket(params, edges)})` : bucket(params, edges)} as bucket
      ${eventsOf(source, params, startEvent)}
      group by ${mode === 'first' ? '1' : '1, 2'}
    )`
  const returned = `
    returned as (
      select ${customer} as customer, ${bucket(params, edges)} as bucket
      ${eventsOf(source, params, returnEvent)}
      group by 1, 2
    )`
  return sql.query<Returned>(
    `${withSource(source, params, [started, returned])}
    select bucket, 0 as later, count(*)::float8 as count
    from started
    group by bucket
    union all
    select started.bucket, returned.bucket - started.bucket, count(*)::float8
    from started
    join returned on returned.customer = started.customer
    where returned.bucket > started.bucket
      and returned.bucket <= started.bucket + ${params.add(periods)}::int
    group by 1, 2`,
    params.values,
  )
}
