import type { Pool } from '../src/db/pool.ts'
import { must } from '../src/kernel/assert.ts'

const hourMs = 3_600_000
/** Version 7, rising as they were made. */
const journeyId = `('01936b2e-7c00-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`

export interface Filled {
  scopeId: number
  now: number
}

const plan = {
  ...{ entry: 'a', isDeviceEnrolled: false, priority: 0, fields: {}, sections: {} },
  policy: { entry: { trigger: { type: 'api' }, frequency: { type: 'every_match' } }, exitWhenAny: [] },
  steps: {
    a: { action: { type: 'delay', durationMs: hourMs }, outlets: { next: 'b' }, forgeable: false },
    b: { action: { type: 'delay', durationMs: hourMs }, outlets: { next: null }, forgeable: false },
  },
}

/** Journeys of as many customers, each in its first delay, as starting them would have left them. */
export async function fillJourneys(pool: Pool, { parked, due }: { parked: number; due: number }): Promise<Filled> {
  await pool.query(`insert into workspace (id, name, slug) values ('ws', 'ws', 'ws')`)
  await pool.query(`insert into project (id, workspace_id, name) values ('proj', 'ws', 'proj')`)
  const [scope] = await pool.query<{ id: number }>(
    `insert into scope (project_id, environment) values ('proj', 'live') returning id`,
  )
  const scopeId = must(scope, 'it was made').id
  const [experience] = await pool.query<{ id: number }>(
    `insert into experience (scope_id, public_id, key, name, status, last_version)
     values ($1, 'exp', 'exp', 'exp', 'published', 1)
     returning id`,
    [scopeId],
  )
  const experienceId = must(experience, 'it was made').id
  await pool.query(
    `insert into experience_version (scope_id, experience_id, version_number, public_id, draft, draft_sha256)
     values ($1, $2, 1, 'ver', '{}', '')`,
    [scopeId, experienceId],
  )
  await pool.query(
    `insert into publication (scope_id, app_id, seq, public_id, experience_id, version_number, build_id, plan, published_at, published_by)
     values ($1, 'app', 1, 'pub', $2, 1, 'bld', $3, now(), 'bench')`,
    [scopeId, experienceId, JSON.stringify(plan)],
  )
  const now = Date.UTC(2026, 10, 20)
  const moments = [now - hourMs, now, now + hourMs, now + 30 * 24 * hourMs]
  await pool.query(
    `insert into journey (scope_id, id, customer_id, app_id, experience_id, version_number, build_id, origin, occurrence, status,
       rev, generation, step_id, trust, held, context, conversion, pending, started_at_ms, expires_at_ms)
     select $1, ${journeyId}, md5('customer ' || n)::uuid, 'app', $2, 1, 'bld', 'api', 'api:' || n, 'waiting',
       1, 0, 'a', 'server', false, '{"event":{},"responses":{}}', '{"startedAt":' || $3::bigint || ',"revision":1}',
       '{"wait":{"kind":"delay"},"timers":{"life":{"rev":1,"dueAt":' || $6::bigint || '},"step":{"rev":1,"dueAt":'
         || case when n <= $7 then $4::bigint else $5::bigint end || '}}}', $3::bigint, $6::bigint
     from generate_series(1, $8::int) n`,
    [scopeId, experienceId, ...moments, due, parked],
  )
  await pool.query(
    `insert into journey_timer (scope_id, journey_id, kind, rev, due_at_ms, look_at_ms, after_lane, parked)
     select $1, ${journeyId}, k.kind, 1, k.at, k.at, false, false
     from generate_series(1, $5::int) n
     cross join lateral (
       values ('step', case when n <= $6 then $2::bigint else $3::bigint end), ('life', $4::bigint)
     ) k(kind, at)`,
    [scopeId, now, now + hourMs, now + 30 * 24 * hourMs, parked, due],
  )
  for (const table of ['journey', 'journey_timer']) await pool.query(`vacuum (analyze) ${table}`)
  await pool.query('checkpoint')
  return { scopeId, now }
}

export async function countTransitions(pool: Pool, scopeId: number): Promise<number> {
  const [row] = await pool.query<{ n: bigint }>('select count(*) as n from journey_transition where scope_id = $1', [
    scopeId,
  ])
  return Number(row?.n ?? 0)
}

/** What is not as one transition of each due journey leaves it. */
export async function checkTimers(pool: Pool, { scopeId, now }: Filled, due: number): Promise<string[]> {
  const [row] = await pool.query<{ moved: bigint; strange: bigint; timers: bigint; late: bigint }>(
    `select
       (select count(*) from journey where scope_id = $1 and rev = 2 and step_id = 'b') as moved,
       (select count(*) from journey where scope_id = $1 and not (rev = 2 and step_id = 'b') and not (rev = 1 and step_id = 'a'))
         as strange,
       (select count(*) from journey_timer where scope_id = $1 and kind = 'step' and rev = 2) as timers,
       (select count(*) from journey_timer where scope_id = $1 and due_at_ms <= $2) as late`,
    [scopeId, now],
  )
  const found = [row?.moved, row?.strange, row?.timers, row?.late].map(Number)
  const expected = [due, 0, due, 0]
  return ['moved on', 'in no such state', 'timers set', 'timers left'].flatMap((what, i) =>
    found[i] === expected[i] ? [] : [`${what}: ${found[i]}, expected ${expected[i]}`],
  )
}
