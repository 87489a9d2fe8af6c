import assert from 'node:assert/strict'
import { parseCustomerId } from '../../src/customers/index.ts'
import type { Pool, Tx } from '../../src/db/pool.ts'
import { pinnedPlans } from '../../src/journeys/apply/pinned-plans.ts'
import { next } from '../../src/journeys/engine/next.ts'
import type { PinnedPlan } from '../../src/journeys/plan.ts'
import { journeyColumns, journeyOf } from '../../src/journeys/store/journey-row.ts'
import type { Effect, Facts, Input, Journey } from '../../src/journeys/types.ts'
import { must } from '../../src/kernel/assert.ts'
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
  const rows = await pool.transaction((tx) => readAll(tx, scope))
  checkLogs(rows)
  assert.deepEqual(rows.held, [], '3: what has ended holds nothing')
  checkLegs(rows)
  checkEnrolments(rows)
  const gone = new Set([...deleted].map((id) => parseCustomerId(id)))
  for (const { customerId, status } of rows.journeys) {
    if (gone.has(customerId)) assert.equal(status, 'ended', '25: nothing goes on for a deleted customer')
  }
}

interface Rows {
  journeys: Journey[]
  transitions: Transition[]
  plans: ReadonlyMap<string, PinnedPlan>
  /** What ended journeys hold. */
  held: object[]
  legs: { id: string; generations: number[] }[]
  enrolments: { of: string; count: number; once: boolean }[]
}

/** As of one moment: what was deleted may be purged meanwhile. */
async function readAll(tx: Tx, scope: Scope): Promise<Rows> {
  await tx.query('set transaction isolation level repeatable read read only')
  const { scopeId } = scope
  const journeys = await journeysOf(tx, scope)
  const ended = journeys.filter(({ status }) => status === 'ended').map(({ id }) => id)
  const transitions = await tx.query<Transition>(
    `select journey_id, rev, at_ms, input, facts, effects
     from journey_transition
     where scope_id = $1
     order by journey_id, rev`,
    [scopeId],
  )
  return {
    ...{ journeys, transitions, plans: await plansOf(tx, scope, { journeys, transitions }) },
    held: await tx.query(
      `select kind as held from journey_timer where scope_id = $1 and journey_id = any($2::uuid[])
       union all select event_name from journey_subscription where scope_id = $1 and journey_id = any($2::uuid[])
       union all select status from journey_leg
         where scope_id = $1 and journey_id = any($2::uuid[]) and status = 'armed'`,
      [scopeId, ended],
    ),
    legs: await tx.query(
      `select journey_id as id, array_agg(generation order by generation) as generations
       from journey_leg
       where scope_id = $1
       group by journey_id`,
      [scopeId],
    ),
    enrolments: await tx.query(
      `select e.experience_id || ' ' || e.customer_id as of, e.count,
         v.draft::jsonb #>> '{policy,entry,frequency,type}' = 'one_time' as once
       from experience_enrolment e
       join experience x on x.id = e.experience_id
       join experience_version v
         on v.scope_id = x.scope_id and v.experience_id = x.id and v.version_number = x.last_version
       where e.scope_id = $1`,
      [scopeId],
    ),
  }
}

async function journeysOf(tx: Tx, { scopeId }: Scope): Promise<Journey[]> {
  const { rows } = await tx.client.query<(string | null)[]>({
    text: `select ${journeyColumns.replaceAll(/(\w+)/g, '$1::text')} from journey where scope_id = $1 order by id`,
    values: [scopeId],
    rowMode: 'array',
  })
  return rows.map((row) => journeyOf(row.map((value, i) => (i === 16 ? (value === 'true' ? 't' : 'f') : value))))
}

/** All plans that anything of it ever ran, by build. */
async function plansOf(tx: Tx, scope: Scope, { journeys, transitions }: Pick<Rows, 'journeys' | 'transitions'>) {
  const moves = transitions.flatMap(({ journey_id, input }) => {
    const { kind, build } = JSON.parse(input) as { kind: string; build?: string }
    const appId = journeys.find(({ id }) => id === journey_id)?.appId
    return kind === 'move' && build !== undefined && appId !== undefined ? [{ appId, buildId: build }] : []
  })
  const begun = await tx.query<{ appId: string; buildId: string }>(
    'select distinct app_id as "appId", build_id as "buildId" from publication where scope_id = $1',
    [scope.scopeId],
  )
  return pinnedPlans(tx, scope, [...begun, ...moves])
}

/** 2 and 7: the log has no gap and gives the state again; what it does not move is pinned. */
function checkLogs({ journeys, transitions, plans }: Rows): void {
  const logs = Map.groupBy(transitions, ({ journey_id }) => journey_id)
  for (const stored of journeys) {
    const log = logs.get(stored.id) ?? []
    let plan = firstPlan(stored, log, plans)
    let journey: Journey | null = null
    for (const { at_ms, input, facts, effects } of log) {
      const noted = JSON.parse(facts ?? '{}') as Facts
      const told = inputOf(input, plans)
      const outcome = next(plan, journey, told, noted, Number(at_ms))
      if (outcome.needs) assert.fail('2: its facts were noted')
      assert.deepEqual(JSON.parse(JSON.stringify(outcome.effects)), JSON.parse(effects) as Effect[], '2: the effects')
      journey = outcome.journey
      if (told.kind === 'move') plan = told.plan
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

/** A move names its plan by the build. */
function inputOf(text: string, plans: Rows['plans']): Input {
  const { build, ...input } = JSON.parse(text) as Input & { build?: string }
  return build === undefined ? input : { kind: 'move', plan: must(plans.get(build), 'it was published') }
}

/** What it was pinned to when it began: of one that was moved the version of the first leg that it was offered. */
function firstPlan(stored: Journey, log: readonly Transition[], plans: Rows['plans']): PinnedPlan {
  const isMoved = log.some(({ input }) => inputOf(input, plans).kind === 'move')
  if (!isMoved) return must(plans.get(stored.buildId), 'it was published')
  const effects = log.flatMap((one) => JSON.parse(one.effects) as Effect[])
  const offered = effects.find((one) => one.kind === 'arm' || one.kind === 'began')
  const version = must(offered, 'only what was offered is moved').versionNumber
  const own = [...plans.values()].filter(({ experienceId }) => experienceId === stored.experienceId)
  return must(
    own.find(({ versionNumber }) => versionNumber === version),
    'it was published',
  )
}

function checkLegs({ journeys, legs }: Rows): void {
  const offered = new Map(legs.map(({ id, generations }) => [id, generations]))
  for (const { id, origin, generation } of journeys) {
    const generations = offered.get(id) ?? []
    const first = origin === 'device' ? 0 : 1
    assert.deepEqual(
      generations,
      generations.map((_, i) => first + i),
      '4: generations count on, from 0 exactly where a device enrolled',
    )
    if (generations.length > 0) assert.equal(generation, generations.at(-1))
  }
}

/** 6 and 24: what was counted is what began, through merges and splits; of what is one-time at most one is open. */
function checkEnrolments({ journeys, enrolments }: Rows): void {
  const counted = journeys.filter(({ endReason }) => endReason !== 'refused')
  const own = Map.groupBy(counted, ({ experienceId, customerId }) => `${experienceId} ${customerId}`)
  const counts = new Map(enrolments.map(({ of, count }) => [of, count]))
  for (const [of, begun] of own) assert.equal(counts.get(of), begun.length, '6: every enrolment is counted once')
  for (const { of, count, once } of enrolments) {
    assert.equal(count, own.get(of)?.length ?? 0, '6: what is counted began')
    const open = (own.get(of) ?? []).filter(({ status }) => status !== 'ended')
    if (once) assert.ok(open.length <= 1, '6: of a one-time Experience one is open')
  }
}
