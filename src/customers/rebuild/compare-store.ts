import type { Tx } from '../../db/pool.ts'
import { findingCharsMax, findingsPerCustomer, mergeChainMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Live } from './shadow-store.ts'

/** The next records behind this one that are live, in the shadow, or both. */
export async function selectPage(
  tx: Tx,
  live: Live,
  { scopeId }: Scope,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  const side = (table: string) => `
    (select id
     from ${table}
     where scope_id = $1
       and id > $2
     order by id
     limit $3)`
  const rows = await tx.query<{ id: string }>(
    `select id
     from (${side(`${live}.customer`)} union ${side('customer')}) both_sides
     order by id
     limit $3`,
    [scopeId, after, limit],
  )
  return rows.map(({ id }) => id)
}

/** What a record is to a rebuild besides one to compare. */
export interface Standing {
  id: string
  /** One of its names is deleted. */
  deleted: boolean
  /** One of its names has a history that is not all there. */
  incomplete: boolean
  isLive: boolean
  isRebuilt: boolean
  /** Live, and with nothing but a name: such as a call creates it. */
  bare: boolean
}

export async function selectStandings(
  tx: Tx,
  live: Live,
  { scopeId }: Scope,
  { ids, tombstoneKey }: { ids: string[]; tombstoneKey: Buffer },
): Promise<Standing[]> {
  return tx.query(
    `select q.id, coalesce(names.deleted, false) as deleted, coalesce(names.incomplete, false) as incomplete,
       l.id is not null as "isLive", s.id is not null as "isRebuilt",
       coalesce(l.properties = '{}' and not l.identified and l.alias_count = 1 and l.merged_into is null, false) as bare
     from unnest($2::uuid[]) as q(id)
     left join lateral (select * from ${live}.customer where scope_id = $1 and id = q.id limit 1) l on true
     left join lateral (select * from customer where scope_id = $1 and id = q.id limit 1) s on true
     left join lateral (
       select bool_or(exists (
           select
           from customer_tombstone
           where scope_id = $1
             and id_hash = sha256($3::bytea || convert_to(name.distinct_id, 'UTF8'))
         )) as deleted,
         bool_or(exists (select from incomplete i where i.distinct_id = name.distinct_id)) as incomplete
       from (
         ${namesOf(`${live}.`)}
         union all
         ${namesOf('')}
       ) name
     ) names on true`,
    [scopeId, ids, tombstoneKey],
  )
}

/** The distinct ids of what record `q` has become. Look-ups one by one: as joins they read whole tables, which nobody has analysed. */
const namesOf = (schema: string) => `
  (with recursive chain as (
     select q.id, 0 as step
     union all
     select c.merged_into, chain.step + 1
     from chain
     cross join lateral (
       select merged_into
       from ${schema}customer
       where scope_id = $1
         and id = chain.id
       limit 1
     ) c
     where c.merged_into is not null
       and chain.step < ${mergeChainMax}
   )
   select a.distinct_id
   from chain
   cross join lateral (
     select distinct_id
     from ${schema}customer_alias
     where scope_id = $1
       and customer_id = chain.id
     offset 0
   ) a)`

/** But refusals for a deleted source: their events are stored without its name, so nothing says them again. */
const rulingsOf = (schema: string) => `
  select *
  from ${schema}merge_journal
  where scope_id = $1
    and customer_id = q.id
    and reason is distinct from 'source_deleted'`

/** Something that the history says otherwise. JSON, shortened; null: there is none. */
export interface Difference {
  customerId: string
  field: string
  live: string | null
  rebuilt: string | null
}

/** Of records: what they are, and which distinct ids name them, of both sides. */
export async function selectDifferences(tx: Tx, live: Live, { scopeId }: Scope, ids: string[]): Promise<Difference[]> {
  return tx.query(
    `select q.id as "customerId", f.field, left(f.live, $3) as live, left(f.rebuilt, $3) as rebuilt
     from unnest($2::uuid[]) as q(id)
     left join lateral (select * from ${live}.customer where scope_id = $1 and id = q.id limit 1) l on true
     left join lateral (select * from customer where scope_id = $1 and id = q.id limit 1) s on true
     cross join lateral (
       select field, a::text as live, b::text as rebuilt
       from (
         select 'record' as field, to_jsonb(l.id) as a, to_jsonb(s.id) as b
         union all select 'identified', to_jsonb(l.identified), to_jsonb(s.identified)
         union all select 'created_at', to_jsonb(l.created_at), to_jsonb(s.created_at)
         union all select 'generation', to_jsonb(l.generation), to_jsonb(s.generation)
         union all select 'alias_count', to_jsonb(l.alias_count), to_jsonb(s.alias_count)
         union all select 'merged_into', to_jsonb(l.merged_into), to_jsonb(s.merged_into)
         union all
         select 'properties.' || key, x.value, y.value
         from jsonb_each(l.properties) x
         full join jsonb_each(s.properties) y using (key)
         where l.properties is distinct from s.properties
         union all
         select 'props_at.' || key, x.value, y.value
         from jsonb_each(l.props_at) x
         full join jsonb_each(s.props_at) y using (key)
         where l.props_at is distinct from s.props_at
         union all
         select 'distinct_id.' || name.distinct_id,
           case when x.customer_id is not null then jsonb_build_object('customer_id', x.customer_id, 'identified', x.identified) end,
           case when y.customer_id is not null then jsonb_build_object('customer_id', y.customer_id, 'identified', y.identified) end
         from (
           select distinct_id from ${live}.customer_alias where scope_id = $1 and customer_id = q.id
           union
           select distinct_id from customer_alias where scope_id = $1 and customer_id = q.id
         ) name
         left join lateral (
           select * from ${live}.customer_alias where scope_id = $1 and distinct_id = name.distinct_id limit 1
         ) x on true
         left join lateral (
           select * from customer_alias where scope_id = $1 and distinct_id = name.distinct_id limit 1
         ) y on true
         union all
         select 'merge.' || coalesce(x.pos, y.pos),
           case when x.pos is not null then jsonb_build_object('status', x.status, 'reason', x.reason, 'source', case when x.status <> 'refused' then x.source_customer_id end) end,
           case when y.pos is not null then jsonb_build_object('status', y.status, 'reason', y.reason, 'source', case when y.status <> 'refused' then y.source_customer_id end) end
         from (${rulingsOf(`${live}.`)}) x
         full join (${rulingsOf('')}) y using (pos)
       ) compared
       where a is distinct from b
         and (field = 'record' or (l.id is not null and s.id is not null))
       order by field
       limit $4
     ) f`,
    [scopeId, ids, findingCharsMax, findingsPerCustomer],
  )
}
