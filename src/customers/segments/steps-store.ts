import type { Sql, Tx } from '../../db/pool.ts'
import { type Environment, type Scope, touchCatalogue } from '../../tenancy/index.ts'

interface ScopeRow {
  scope_id: number
  workspace_id: string
  project_id: string
  environment: Environment
}

/** Lanes with a timer that rings by now, customers to walk, or members to tell. `only`: of these; null: of all. */
export async function lanesWithSteps(sql: Sql, now: number, only: number[] | null): Promise<Scope[]> {
  const rows = await sql.query<ScopeRow>(
    `select s.scope_id, project.workspace_id, scope.project_id, scope.environment
     from segment_set s
     join scope on scope.id = s.scope_id
     join project on project.id = scope.project_id
     where ($2::int[] is null or s.scope_id = any ($2))
       and (
         s.walked_to is not null
         or s.settling
         or exists (
           select
           from segment_timer
           where scope_id = s.scope_id
             and due_at <= $1::timestamptz
         )
       )`,
    [new Date(now).toISOString(), only],
  )
  return rows.map((row) => ({
    scopeId: row.scope_id,
    workspaceId: row.workspace_id,
    projectId: row.project_id,
    environment: row.environment,
  }))
}

/** Holds the lane until the end of the transaction: no slice and no command comes between. */
export async function lockLane(tx: Tx, { scopeId }: Scope): Promise<void> {
  await tx.query('insert into lane (id) values ($1) on conflict do nothing', [scopeId])
  await tx.query('select from lane where id = $1 for no key update', [scopeId])
}

export async function nextCustomers(
  tx: Tx,
  { scopeId }: Scope,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    `select id
     from customer
     where scope_id = $1
       and id > $2
       and merged_into is null
     order by id
     limit $3`,
    [scopeId, after, limit],
  )
  return rows.map(({ id }) => id)
}

/** Nothing where the walk is further or over. */
export async function saveWalk(tx: Tx, { scopeId }: Scope, walkedTo: string): Promise<void> {
  await tx.query('update segment_set set walked_to = $2 where scope_id = $1 and walked_to < $2', [scopeId, walkedTo])
}

/** Pending versions serve from here on, all at once; those they replace are left to be told of. Any profile may have changed. */
export async function swapIn(tx: Tx, { scopeId }: Scope): Promise<void> {
  await tx.query(
    `update segment_version v
     set state = 'retired'
     where v.scope_id = $1
       and v.state = 'serving'
       and exists (
         select
         from segment_version
         where scope_id = $1
           and segment_id = v.segment_id
           and state = 'pending'
       )`,
    [scopeId],
  )
  await tx.query(
    `with swapped as (
       update segment_version
       set state = 'serving'
       where scope_id = $1
         and state = 'pending'
       returning segment_id
     )
     update segment
     set status = 'ready',
       updated_at = clock_timestamp()
     where scope_id = $1
       and id in (select segment_id from swapped)`,
    [scopeId],
  )
  await tx.query(
    `update segment_set
     set walked_to = null,
       settling = true,
       revision = gen_random_uuid()
     where scope_id = $1`,
    [scopeId],
  )
  await touchCatalogue(tx, scopeId)
}

/** A membership that a new definition brought or took, and that nobody was told of. */
export interface Unsettled {
  version_id: number
  customer_id: string
  /** Its segment was served by another definition before. */
  replaced: boolean
}

/** Those left by replaced versions by key, those brought by new ones by the index membership_untold: never all members. */
export function unsettledRows(tx: Tx, { scopeId }: Scope, limit: number): Promise<Unsettled[]> {
  return tx.query<Unsettled>(
    `select v.id as version_id, m.customer_id, true as replaced
     from segment_version v
     cross join lateral (
       select customer_id
       from membership
       where scope_id = $1
         and version_id = v.id
       limit $2
     ) m
     where v.scope_id = $1
       and v.state = 'retired'
     union all
     select v.id, m.customer_id, exists (
         select
         from segment_version
         where scope_id = $1
           and segment_id = v.segment_id
           and state = 'retired'
       )
     from segment_version v
     cross join lateral (
       select customer_id
       from membership
       where version_id = v.id
         and not told
       limit $2
     ) m
     where v.scope_id = $1
       and v.state = 'serving'
     limit $2`,
    [scopeId, limit],
  )
}

/** Rows of replaced versions go, the others have been told of. */
export async function settleRows(tx: Tx, { scopeId }: Scope, rows: readonly Unsettled[]): Promise<void> {
  const items = [scopeId, rows.map((row) => row.version_id), rows.map((row) => row.customer_id)]
  await tx.query(
    `delete from membership m
     using unnest($2::int[], $3::uuid[]) as i(version_id, customer_id), segment_version v
     where m.scope_id = $1
       and m.version_id = i.version_id
       and m.customer_id = i.customer_id
       and v.scope_id = $1
       and v.id = i.version_id
       and v.state = 'retired'`,
    items,
  )
  await tx.query(
    `update membership m
     set told = true
     from unnest($2::int[], $3::uuid[]) as i(version_id, customer_id)
     where m.scope_id = $1
       and m.version_id = i.version_id
       and m.customer_id = i.customer_id`,
    items,
  )
}

/** Everybody has been told: replaced versions and deleted segments are gone. */
export async function endSettling(tx: Tx, { scopeId }: Scope): Promise<void> {
  await tx.query(`delete from segment_version where scope_id = $1 and state = 'retired'`, [scopeId])
  await tx.query('delete from segment where scope_id = $1 and deleted_at is not null', [scopeId])
  await tx.query('update segment_set set settling = false where scope_id = $1', [scopeId])
}

/** Of versions that still have members or are told of: their segments. */
export async function segmentsOfVersions(
  tx: Tx,
  { scopeId }: Scope,
  versionIds: number[],
): Promise<Map<number, { segmentId: number; publicId: string }>> {
  const rows = await tx.query<{ id: number; segment_id: number; public_id: string }>(
    `select v.id, v.segment_id, s.public_id
     from segment_version v
     join segment s on s.scope_id = $1 and s.id = v.segment_id
     where v.scope_id = $1
       and v.id = any ($2)`,
    [scopeId, versionIds],
  )
  return new Map(rows.map((row) => [row.id, { segmentId: row.segment_id, publicId: row.public_id }]))
}

/**
 * Pending versions that cannot be computed, with those that ask for them, are gone; the definitions that served before go on
 * serving. Gives the versions that are gone.
 */
export async function giveUpPending(tx: Tx, { scopeId }: Scope, versionIds: number[]): Promise<number[]> {
  const rows = await tx.query<{ id: number }>(
    `with recursive given_up as (
       select v.id, s.public_id
       from segment_version v
       join segment s on s.scope_id = $1 and s.id = v.segment_id
       where v.scope_id = $1
         and v.id = any ($2)
         and v.state = 'pending'
       union
       select v.id, s.public_id
       from given_up
       join segment_version v on v.scope_id = $1 and v.state = 'pending'
         and jsonb_path_exists(v.definition, '$.**.segment.id ? (@ == $asked)', jsonb_build_object('asked', given_up.public_id))
       join segment s on s.scope_id = $1 and s.id = v.segment_id
     ), failed as (
       delete from segment_version
       where scope_id = $1
         and id in (select id from given_up)
       returning id, segment_id
     ), gone as (
       delete from membership
       where scope_id = $1
         and version_id in (select id from failed)
     ), told as (
       update segment s
       set status = case
           when exists (
             select
             from segment_version
             where scope_id = $1
               and segment_id = s.id
               and state = 'serving'
               and definition = s.definition
           ) then 'ready'
           else 'failed'
         end,
         updated_at = clock_timestamp()
       where scope_id = $1
         and id in (select segment_id from failed)
     )
     select id from failed`,
    [scopeId, versionIds],
  )
  await tx.query(
    `update segment_set
     set revision = gen_random_uuid(),
       walked_to = case
         when exists (
           select
           from segment_version
           where scope_id = $1
             and state = 'pending'
         ) then walked_to
       end
     where scope_id = $1`,
    [scopeId],
  )
  return rows.map(({ id }) => id)
}
