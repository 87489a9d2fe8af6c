import assert from 'node:assert/strict'
import type { Pool } from '../../src/db/pool.ts'

export interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  Plans?: Plan[]
}

export function* nodesOf(plan: Plan): Generator<Plan> {
  yield plan
  for (const inner of plan.Plans ?? []) yield* nodesOf(inner)
}

/** Every prepared statement of the connection with its plan: the generic one, where its settings ask for that. */
export async function plansOn(on: Pool): Promise<Map<string, Plan>> {
  const prepared = await on.query<{ name: string; parameters: number }>(
    'select name, cardinality(parameter_types) as parameters from pg_prepared_statements',
  )
  const plans = new Map<string, Plan>()
  for (const { name, parameters } of prepared) {
    const nulls = Array.from({ length: parameters }, () => 'null')
    const values = parameters === 0 ? '' : `(${nulls.join(', ')})`
    const [row] = await on.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(`explain (format json) execute "${name}"${values}`)
    const plan = row?.['QUERY PLAN'][0]?.Plan
    assert.ok(plan)
    plans.set(name, plan)
  }
  return plans
}

/** From here on nobody analyses a table: plans have to be right after a bulk load too. */
export async function keepUnanalysed(pool: Pool): Promise<void> {
  const tables = await pool.query<{ name: string }>(
    `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  )
  for (const { name } of tables) await pool.query(`alter table ${name} set (autovacuum_enabled = false)`)
}
