import type pg from 'pg'
import { bools, int4s, texts } from '../db/binary-array.ts'
import { type RawRow, raw, type Statement } from '../db/raw.ts'
import { customerAssignmentsMax, openJourneysMax } from '../kernel/limits.ts'

/** Whose state, and what of it. */
export interface StateQuery {
  scopeId: number
  distinctId: string | null
  customerId: string | null
  withProperties: boolean
}

/** What is asked for in a scope: versions of segments whose members count, segments whose last edge counts. */
export interface Asked {
  scopeId: number
  segmentVersions: readonly number[]
  edgeSegments: readonly number[]
  /** Experiences whose enrolments count. */
  enrolments: readonly number[]
}

const ms = (column: string) => `round(date_part('epoch', ${column}) * 1000)`

/** Look-ups by key alone, which the limits keep on an index with all its columns. */
const readStates: Statement = {
  name: 'profiles_states',
  text: `
    select q.n, c.id,
      (select rev from customer_rev where scope_id = q.scope_id and customer_id = c.id limit 1),
      case when q.with_properties then (
        select properties::text
        from customer
        where scope_id = q.scope_id
          and id = c.id
        limit 1
      ) end,
      (
        select json_agg(json_build_array(w.version_id, ${ms('m.since')}))
        from unnest($6::int[], $7::int[]) as w(scope_id, version_id)
        cross join lateral (
          select since
          from membership
          where scope_id = q.scope_id
            and version_id = w.version_id
            and customer_id = c.id
          limit 1
        ) m
        where w.scope_id = q.scope_id
      ),
      (
        select json_agg(json_build_array(w.segment_id, e.edge, e.cause, ${ms('e.at')}))
        from unnest($8::int[], $9::int[]) as w(scope_id, segment_id)
        cross join lateral (
          select edge, cause, at
          from (
            select edge, cause, at, pos, n
            from membership_change
            where customer_id = c.id
              and scope_id = q.scope_id
              and segment_id = w.segment_id
            offset 0
          ) own
          order by pos desc, n desc
          limit 1
        ) e
        where w.scope_id = q.scope_id
      ),
      (
        select json_agg(json_build_array(w.experience_id, e.count, e.times))
        from unnest($10::int[], $11::int[]) as w(scope_id, experience_id)
        cross join lateral (
          select count, times
          from experience_enrolment
          where scope_id = q.scope_id
            and experience_id = w.experience_id
            and customer_id = c.id
          limit 1
        ) e
        where w.scope_id = q.scope_id
      ),
      (
        select json_agg(json_build_array(
          id, app_id, experience_id, version_number, status, generation, section_key, held, context, conversion))
        from (
          select *
          from journey
          where scope_id = q.scope_id
            and customer_id = c.id
            and ended_at_ms is null
          limit $12
        ) open
      ),
      (
        select json_agg(json_build_array(experiment_id, phase, variant_id, is_holdout))
        from (
          select *
          from experiment_assignment
          where scope_id = q.scope_id
            and customer_id = c.id
          limit $13
        ) sticky
      ),
      (
        select at_ms
        from journey_pause
        where scope_id = q.scope_id
          and customer_id = c.id
        limit 1
      )
    from unnest($1::int[], $2::int[], $3::text[], $4::text[], $5::bool[])
      as q(n, scope_id, distinct_id, customer_id, with_properties)
    left join lateral (
      select customer_id
      from customer_alias
      where scope_id = q.scope_id
        and distinct_id = q.distinct_id
      limit 1
    ) a on true
    cross join lateral (
      select coalesce(a.customer_id, q.customer_id::uuid) as id
    ) c`,
}

/** Per query: n, customer, the customer's number, properties, memberships, edges, enrolments, open journeys, assignments, since when its journeys rest. */
export function selectStates(
  client: pg.ClientBase,
  queries: readonly StateQuery[],
  asked: readonly Asked[],
): Promise<RawRow[]> {
  const pairs = (of: (one: Asked) => readonly number[]) => {
    const all = asked.flatMap((one) => of(one).map((id) => ({ scopeId: one.scopeId, id })))
    return [int4s(all.map(({ scopeId }) => scopeId)), int4s(all.map(({ id }) => id))]
  }
  return raw(client, readStates, [
    int4s(queries.map((_, n) => n)),
    int4s(queries.map(({ scopeId }) => scopeId)),
    texts(queries.map(({ distinctId }) => distinctId)),
    texts(queries.map(({ customerId }) => customerId)),
    bools(queries.map(({ withProperties }) => withProperties)),
    ...pairs(({ segmentVersions }) => segmentVersions),
    ...pairs(({ edgeSegments }) => edgeSegments),
    ...pairs(({ enrolments }) => enrolments),
    openJourneysMax,
    customerAssignmentsMax,
  ])
}

/** Once for each scope: asked for each customer it was a tenth of the statement above. */
const readRevisions: Statement = {
  name: 'profiles_revisions',
  text: `
    select id, revision
    from scope
    where id = any($1::int[])`,
}

/** Of the catalogues, by number of the scope. */
export async function selectRevisions(
  client: pg.ClientBase,
  scopeIds: ReadonlySet<number>,
): Promise<Map<number, bigint>> {
  const rows = await raw(client, readRevisions, [int4s([...scopeIds])])
  return new Map(rows.map(([id, revision]) => [Number(id), BigInt(revision ?? 0)]))
}
