import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { orRaise } from '../rev-store.ts'
import type { Live } from './shadow-store.ts'

/** These records and all that a distinct id of theirs names, on either side. */
export async function selectRelated(tx: Tx, live: Live, { scopeId }: Scope, ids: string[]): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    `with name as (
       select distinct_id from ${live}.customer_alias where scope_id = $1 and customer_id = any($2::uuid[])
       union
       select distinct_id from customer_alias where scope_id = $1 and customer_id = any($2::uuid[])
     )
     select unnest($2::uuid[]) as id
     union
     select customer_id from name join ${live}.customer_alias a using (distinct_id) where a.scope_id = $1
     union
     select customer_id from name join customer_alias a using (distinct_id) where a.scope_id = $1`,
    [scopeId, ids],
  )
  return rows.map(({ id }) => id)
}

/** Whether merges or names are live that the history does not know: then the rest cannot be told from it either. */
export async function isUnexplained(tx: Tx, live: Live, { scopeId }: Scope, ids: string[]): Promise<boolean> {
  const [row] = await tx.query<{ unexplained: boolean }>(
    `select exists (
       select
       from ${live}.customer l
       left join customer s on s.scope_id = l.scope_id and s.id = l.id
       where l.scope_id = $1
         and l.id = any($2::uuid[])
         and (s.id is null or s.merged_into is distinct from l.merged_into)
     ) or exists (
       select
       from customer s
       left join ${live}.customer l on l.scope_id = s.scope_id and l.id = s.id
       where s.scope_id = $1
         and s.id = any($2::uuid[])
         and l.id is null
         and s.merged_into is not null
     ) or exists (
       select
       from ${live}.customer_alias l
       where l.scope_id = $1
         and l.customer_id = any($2::uuid[])
         and not exists (select from customer_alias s where s.scope_id = $1 and s.distinct_id = l.distinct_id)
     ) as unexplained`,
    [scopeId, ids],
  )
  return row?.unexplained ?? true
}

/** The live rows of these records and of their names become what the shadow says. The versions rise, so that a slice under way is decided again. */
export async function mendRecords(tx: Tx, live: Live, { scopeId }: Scope, ids: string[]): Promise<void> {
  await tx.query(
    `insert into ${live}.customer as l
       (scope_id, id, properties, props_at, identified, created_at, version, generation, alias_count, merged_into)
     select scope_id, id, properties, props_at, identified, created_at, version, generation, alias_count, merged_into
     from customer
     where scope_id = $1
       and id = any($2::uuid[])
     order by id
     on conflict (scope_id, id) do update
     set properties = excluded.properties,
       props_at = excluded.props_at,
       identified = excluded.identified,
       created_at = excluded.created_at,
       version = greatest(l.version, excluded.version) + 1,
       generation = excluded.generation,
       alias_count = excluded.alias_count,
       updated_at = clock_timestamp()`,
    [scopeId, ids],
  )
  await tx.query(
    `insert into ${live}.customer_alias as l (scope_id, distinct_id, customer_id, identified, since_pos, first_seen_at)
     select scope_id, distinct_id, customer_id, identified, since_pos, first_seen_at
     from customer_alias
     where scope_id = $1
       and customer_id = any($2::uuid[])
     order by distinct_id
     on conflict (scope_id, distinct_id) do update
     set customer_id = excluded.customer_id,
       identified = excluded.identified
     where (l.customer_id, l.identified) is distinct from (excluded.customer_id, excluded.identified)`,
    [scopeId, ids],
  )
  await tx.query(
    `insert into ${live}.customer_rev (scope_id, customer_id, rev)
     select $1, id, 1
     from unnest($2::uuid[]) as i(id)
     order by id
     ${orRaise}`,
    [scopeId, ids],
  )
}
