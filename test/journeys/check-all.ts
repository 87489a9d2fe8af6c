import assert from 'node:assert/strict'
import { parseCustomerId } from '../../src/customers/index.ts'
import type { Pool } from '../../src/db/pool.ts'
import { pinnedPlans } from '../../src/journeys/apply/pinned-plans.ts'
import { next } from '../../src/journeys/engine/next.ts'
import { journeyColumns, journeyOf } from '../../src/journeys/store/journey-row.ts'
import type { Effect, Facts, Input, Journey } from '../../src/journeys/types.ts'
import type { Scope } from '../../src/tenancy/index.ts'

interface Transition {
  journey_id: string
  rev: number
  at_ms: bigint
  input: string
  facts: string | null
  effects: string
}

/** The invariants of journeys over all rows of a scope in which nothing is under way. */
export async function checkAll(pool: Pool, scope: Scope, deleted: ReadonlySet<string>): Promise<void> {
  const journeys = await journeysOf(pool, scope)
  await checkLogs(pool, scope, journeys)
  await checkEnded(pool, scope, journeys)
  await checkLegs(pool, scope, journeys)
  await checkEnrolments(pool, scope, journeys)
  const gone = new Set([...deleted].map((id) => parseCustomerId(id)))
  for (const { customerId, status } of journeys) {
    if (gone.has(customerId)) assert.equal(status, 'ended', '25: nothing goes on for a deleted customer')
  }
}

async function journeysOf(pool: Pool, { scopeId }: Scope): Promise<Journey[]> {
  const { rows } = await pool.connected((client) =>
    client.query<(string | null)[]>({
      text: `select ${journeyColumns.replaceAll(/(\w+)/g, '$1::text')} from journey where scope_id = $1 order by id`,
      values: [scopeId],
      rowMode: 'array',
    }),
  )
  return rows.map((row) => journeyOf(row.map((value, i) => (i === 16 ? (value === 'true' ? 't' : 'f') : value))))
}

/** 2 and 7: the log has no gap and gives the state again; what it does not move is pinned. */
async function checkLogs(pool: Pool, scope: Scope, journeys: readonly Journey[]): Promise<void> {
  const rows = await pool.query<Transition>(
    `select journey_id, rev, at_ms, input, facts, effects
     from journey_transition
     where scope_id = $1
     order by journey_id, rev`,
    [scope.scopeId],
  )
  const logs = Map.groupBy(rows, ({ journey_id }) => journey_id)
  const moves = rows.flatMap(({ journey_id, input }) => {
    const { kind, build } = JSON.parse(input) as { kind: string; build?: string }
    const appId = journeys.find(({ id }) => id === journey_id)?.appId
    return kind === 'move' && build !== undefined && appId !== undefined ? [{ appId, buildId: build }] : []
  })
  const begun = await pool.query<{ appId: string; buildId: string }>(
    'select distinct app_id as "appId", build_id as "buildId" from publication where scope_id = $1',
    [scope.scopeId],
  )
  const plans = await pinnedPlans(pool, scope, [...begun, ...moves])
  for (const stored of journeys) {
    const log = logs.get(stored.id) ?? []
    const firstMove = log.find(({ input }) => input.includes('"kind":"move"'))
    if (firstMove) continue // its first pin is not noted in the log
    const plan = plans.get(stored.buildId)
    assert.ok(plan)
    let journey: Journey | null = null
    for (const [i, { rev, at_ms, input, facts, effects }] of log.entries()) {
      assert.equal(rev, i + 1, '2: revs have no gap')
      const noted = JSON.parse(facts ?? '{}') as Facts
      const outcome = next(plan, journey, JSON.parse(input) as Input, noted, Number(at_ms))
      if (outcome.needs) assert.fail('2: its facts were noted')
      assert.deepEqual(JSON.parse(JSON.stringify(outcome.effects)), JSON.parse(effects) as Effect[], '2: the effects')
      journey = outcome.journey
    }
    // A merge moves a journey to another customer, and nothing else of it.
    assert.deepEqual(journey && { ...journey, customerId: stored.customerId }, stored, '2: the state')
  }
  for (const [id, log] of logs) {
    assert.deepEqual(
      log.map(({ rev }) => rev),
      log.map((_, i) => i + 1),
      '2: revs have no gap',
    )
    assert.equal(journeys.find((one) => one.id === id)?.rev, log.length)
  }
}

async function checkEnded(pool: Pool, { scopeId }: Scope, journeys: readonly Journey[]): Promise<void> {
  const ended = journeys.filter(({ status }) => status === 'ended').map(({ id }) => id)
  for (const held of [
    'select kind as held from journey_timer where scope_id = $1 and journey_id = any($2::uuid[])',
    'select event_name as held from journey_subscription where scope_id = $1 and journey_id = any($2::uuid[])',
    `select status as held from journey_leg where scope_id = $1 and journey_id = any($2::uuid[]) and status = 'armed'`,
  ]) {
    assert.deepEqual(await pool.query(held, [scopeId, ended]), [], '3: what has ended holds nothing')
  }
}

async function checkLegs(pool: Pool, { scopeId }: Scope, journeys: readonly Journey[]): Promise<void> {
  const rows = await pool.query<{ id: string; generations: number[] }>(
    `select journey_id as id, array_agg(generation order by generation) as generations
     from journey_leg
     where scope_id = $1
     group by journey_id`,
    [scopeId],
  )
  const legs = new Map(rows.map(({ id, generations }) => [id, generations]))
  for (const { id, origin, generation } of journeys) {
    const generations = legs.get(id) ?? []
    const first = origin === 'device' ? 0 : 1
    assert.deepEqual(
      generations,
      generations.map((_, i) => first + i),
      '4: generations count on, from 0 exactly where a device enrolled',
    )
    if (generations.length > 0) assert.equal(generation, generations.at(-1))
  }
}

/** 6 and 24: what was counted is what began, through every merge; of what is one-time at most one is open. */
async function checkEnrolments(pool: Pool, { scopeId }: Scope, journeys: readonly Journey[]): Promise<void> {
  const rows = await pool.query<{ of: string; count: number; once: boolean }>(
    `select e.experience_id || ' ' || e.customer_id as of, e.count,
       v.draft::jsonb #>> '{policy,entry,frequency,type}' = 'one_time' as once
     from experience_enrolment e
     join experience x on x.id = e.experience_id
     join experience_version v
       on v.scope_id = x.scope_id and v.experience_id = x.id and v.version_number = x.last_version
     where e.scope_id = $1`,
    [scopeId],
  )
  const counted = journeys.filter(({ endReason }) => endReason !== 'refused')
  const own = Map.groupBy(counted, ({ experienceId, customerId }) => `${experienceId} ${customerId}`)
  for (const { of, count, once } of rows) {
    assert.equal(count, own.get(of)?.length ?? 0, '6: every enrolment is counted once')
    const open = (own.get(of) ?? []).filter(({ status }) => status !== 'ended')
    if (once) assert.ok(open.length <= 1, '6: of a one-time Experience one is open')
  }
}
