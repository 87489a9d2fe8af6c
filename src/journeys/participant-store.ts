import type { Sql, Tx } from '../db/pool.ts'
import { enrolmentTimesMax, forgetRowsAtOnce } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'

interface Pair {
  source: string
  target: string
}

interface OpenRow {
  id: string
  customerId: string
  experienceId: number
  appId: string
  buildId: string
  rev: number
  startedAt: number
}

/** Locks and gives the journeys of a customer that are open, with how far they are. */
export async function lockOpen(tx: Tx, { scopeId }: Scope, customerIds: readonly string[]): Promise<OpenRow[]> {
  return tx.query<OpenRow>(
    `select id, customer_id as "customerId", experience_id as "experienceId", app_id as "appId", build_id as "buildId",
       rev, started_at_ms::float8 as "startedAt"
     from journey
     where scope_id = $1
       and customer_id = any($2::uuid[])
       and ended_at_ms is null
     order by id
     for no key update`,
    [scopeId, customerIds],
  )
}

/** Ids of all journeys that stand under the customer. */
export async function selectIdsOf(sql: Sql, { scopeId }: Scope, customerId: string): Promise<string[]> {
  const rows = await sql.query<{ id: string }>(
    `select id
     from journey
     where scope_id = $1
       and customer_id = $2
     order by id`,
    [scopeId, customerId],
  )
  return rows.map(({ id }) => id)
}

/** What was counted of the source is counted of the target. Gives what came, by Experience. */
export async function addEnrolments(
  tx: Tx,
  { scopeId }: Scope,
  { source, target }: Pair,
): Promise<{ experienceId: number; count: number; times: number[] }[]> {
  const rows = await tx.query<{ experienceId: number; count: number; times: bigint[] }>(
    `select experience_id as "experienceId", count, times
     from experience_enrolment
     where scope_id = $1
       and customer_id = any($2::uuid[])
     order by experience_id, customer_id
     for update`,
    [scopeId, [source, target]],
  )
  if (rows.length === 0) return []
  const moved = await tx.query<{ experienceId: number; count: number; times: bigint[] }>(
    `with gone as (
       delete from experience_enrolment
       where scope_id = $1
         and customer_id = $2
       returning experience_id, count, last_enrolled_at_ms, times
     ), added as (
       insert into experience_enrolment as e (scope_id, experience_id, customer_id, count, last_enrolled_at_ms, times)
       select $1, experience_id, $3, count, last_enrolled_at_ms, times
       from gone
       on conflict (scope_id, experience_id, customer_id) do update
       set count = e.count + excluded.count,
         last_enrolled_at_ms = greatest(e.last_enrolled_at_ms, excluded.last_enrolled_at_ms),
         times = array(select t from unnest(e.times || excluded.times) t order by t desc limit ${enrolmentTimesMax})
     )
     select experience_id as "experienceId", count, times from gone`,
    [scopeId, source, target],
  )
  return moved.map((row) => ({ ...row, times: row.times.map(Number) }))
}

/** Gives back what came with the source; what was counted since stays with the target. */
export async function takeEnrolments(
  tx: Tx,
  { scopeId }: Scope,
  { source, target }: Pair,
  moved: readonly { experienceId: number; count: number; times: number[] }[],
): Promise<void> {
  for (const { experienceId, count, times } of moved) {
    await tx.query(
      `update experience_enrolment
       set count = greatest(count - $4, 0),
         times = array(select t from unnest(times) t where t <> all($5::bigint[]) order by t desc),
         last_enrolled_at_ms = (select max(t) from unnest(times) t where t <> all($5::bigint[]))
       where scope_id = $1
         and experience_id = $2
         and customer_id = $3`,
      [scopeId, experienceId, target, count, times],
    )
    await tx.query(
      `insert into experience_enrolment (scope_id, experience_id, customer_id, count, last_enrolled_at_ms, times)
       values ($1, $2, $3, $4, (select max(t) from unnest($5::bigint[]) t), $5)
       on conflict do nothing`,
      [scopeId, experienceId, source, count, times],
    )
  }
}

export async function moveJourneys(tx: Tx, { scopeId }: Scope, ids: readonly string[], to: string): Promise<void> {
  await tx.query(
    `update journey
     set customer_id = $3
     where scope_id = $1
       and id = any($2::uuid[])`,
    [scopeId, ids, to],
  )
  await tx.query(
    `update journey_subscription
     set customer_id = $3
     where scope_id = $1
       and journey_id = any($2::uuid[])`,
    [scopeId, ids, to],
  )
}

/** Keys that both have stay the target's. Gives those that came. */
export async function moveOccurrences(tx: Tx, { scopeId }: Scope, { source, target }: Pair): Promise<string[]> {
  const rows = await tx.query<{ id: bigint }>(
    `update journey_occurrence o
     set customer_id = $3
     where o.scope_id = $1
       and o.customer_id = $2
       and not exists (
         select
         from journey_occurrence other
         where other.scope_id = o.scope_id
           and other.app_id = o.app_id
           and other.experience_id = o.experience_id
           and other.customer_id = $3
           and other.key = o.key)
     returning id`,
    [scopeId, source, target],
  )
  return rows.map(({ id }) => String(id))
}

export async function moveOccurrencesBack(
  tx: Tx,
  { scopeId }: Scope,
  { source, target }: Pair,
  ids: readonly string[],
): Promise<void> {
  await tx.query(
    `update journey_occurrence
     set customer_id = $2
     where scope_id = $1
       and customer_id = $3
       and id = any($4::bigint[])`,
    [scopeId, source, target, ids],
  )
}

/** Who was merged rests if either did. True: the target rests. */
export async function movePause(tx: Tx, { scopeId }: Scope, { source, target }: Pair): Promise<boolean> {
  const rows = await tx.query<{ rests: boolean }>(
    `with gone as (
       delete from journey_pause where scope_id = $1 and customer_id = $2 returning at_ms
     ), put as (
       insert into journey_pause (scope_id, customer_id, at_ms)
       select $1, $3, at_ms from gone
       on conflict do nothing
     )
     select exists (select from gone) or exists (
       select from journey_pause where scope_id = $1 and customer_id = $3) as rests`,
    [scopeId, source, target],
  )
  return rows[0]?.rests ?? false
}

/** What a deletion takes back at once: arms go with the status, and nothing waits or leaves any more. */
export async function deleteWaiting(tx: Tx, { scopeId }: Scope, customerIds: readonly string[]): Promise<void> {
  await tx.query(
    `delete from journey_inbox
     where scope_id = $1
       and customer_id = any($2::uuid[])`,
    [scopeId, customerIds],
  )
  await tx.query(
    `delete from journey_outbox
     where scope_id = $1
       and journey_id in (select id from journey where scope_id = $1 and customer_id = any($2::uuid[]))`,
    [scopeId, customerIds],
  )
}

/** One slice of what is kept of the deleted. True: nothing is left. */
export async function eraseJourneys(tx: Tx, { scopeId }: Scope, customerIds: readonly string[]): Promise<boolean> {
  const rows = await tx.query<{ id: string }>(
    `select id
     from journey
     where scope_id = $1
       and customer_id = any($2::uuid[])
     order by id
     limit ${eraseJourneysAtOnce}`,
    [scopeId, customerIds],
  )
  const ids = rows.map(({ id }) => id)
  for (const table of [
    'journey_transition',
    'journey_leg',
    'journey_timer',
    'journey_subscription',
    'journey_outbox',
  ]) {
    await tx.query(`delete from ${table} where scope_id = $1 and journey_id = any($2::uuid[])`, [scopeId, ids])
  }
  await tx.query(`delete from journey_quarantine where scope_id = $1 and journey_id = any($2::uuid[])`, [scopeId, ids])
  await tx.query(`delete from journey where scope_id = $1 and id = any($2::uuid[])`, [scopeId, ids])
  if (ids.length === eraseJourneysAtOnce) return false
  for (const table of ['journey_inbox', 'journey_pause', 'experience_enrolment', 'journey_subscription']) {
    await tx.query(`delete from ${table} where scope_id = $1 and customer_id = any($2::uuid[])`, [scopeId, customerIds])
  }
  await tx.query(`delete from journey_quarantine where scope_id = $1 and customer_id = any($2::uuid[])`, [
    scopeId,
    customerIds,
  ])
  const gone = await tx.query(
    `delete from journey_occurrence
     where (scope_id, id) in (
       select scope_id, id
       from journey_occurrence
       where scope_id = $1
         and customer_id = any($2::uuid[])
       limit ${forgetRowsAtOnce})
     returning 1`,
    [scopeId, customerIds],
  )
  return gone.length < forgetRowsAtOnce
}

const eraseJourneysAtOnce = 100

/** Keys that have had their time, a slice at once. True: none is left. By the index journey_occurrence_at. */
export async function deleteOldOccurrences(sql: Sql, before: number): Promise<boolean> {
  const rows = await sql.query(
    `delete from journey_occurrence
     where id in (select id from journey_occurrence where at_ms < $1 order by at_ms limit ${forgetRowsAtOnce})
     returning 1`,
    [before],
  )
  return rows.length < forgetRowsAtOnce
}
