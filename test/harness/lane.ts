import type { Pool } from '../../src/db/pool.ts'
import type { EventOutcome, LoggedEvent, Projection } from '../../src/events/index.ts'
import { must } from '../../src/kernel/assert.ts'
import { randomText } from '../../src/kernel/ids.ts'
import type { Environment, Scope } from '../../src/tenancy/index.ts'

/** A workspace, a project and one of its environments with its lane. */
export async function testScope(pool: Pool, environment: Environment = 'live'): Promise<Scope> {
  const [workspaceId, projectId] = [`ws_${randomText(8)}`, `proj_${randomText(8)}`]
  await pool.query('insert into workspace (id, name, slug) values ($1, $1, $1)', [workspaceId])
  await pool.query('insert into project (id, workspace_id, name) values ($1, $2, $1)', [projectId, workspaceId])
  const [row] = await pool.query<{ id: number }>(
    'insert into scope (project_id, environment) values ($1, $2) returning id',
    [projectId, environment],
  )
  const scopeId = must(row, 'the scope was made').id
  await pool.query('insert into lane (id) values ($1) on conflict do nothing', [scopeId])
  return { scopeId, workspaceId, projectId, environment }
}

/** One slice through a projection as the lane runs it: load, decide, take positions, write. */
export async function runSlice<State, Decision extends { outcomes: EventOutcome[] }>(
  pool: Pool,
  scope: Scope,
  projection: Projection<State, Decision>,
  events: LoggedEvent[],
): Promise<Decision> {
  const state = await projection.load(pool, scope, events)
  const decision = projection.decide(scope, state, events)
  await writeSlice(pool, scope, projection, decision)
  return decision
}

export async function writeSlice<State, Decision extends { outcomes: EventOutcome[] }>(
  pool: Pool,
  scope: Scope,
  projection: Projection<State, Decision>,
  decision: Decision,
): Promise<void> {
  const applied = decision.outcomes.map<bigint>(({ kind }) => (kind === 'applied' ? 1n : 0n))
  const total = applied.reduce((sum, one) => sum + one, 0n)
  await pool.transaction(async (tx) => {
    const [lane] = await tx.query<{ pos: bigint }>('update lane set pos = pos + $2 where id = $1 returning pos', [
      scope.scopeId,
      total,
    ])
    // A dropped event takes no position and shows that of the one before it.
    let pos = must(lane, 'the lane exists').pos - total
    const positions = applied.map((one) => (pos += one))
    await projection.write(tx, scope, decision, positions)
  })
}
