import { int4s, int8s, texts, uuids } from '../../db/binary-array.ts'
import type { Sql, Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

export interface OccurrenceRow {
  appId: string
  experienceId: number
  customerId: string
  key: string
  status: 'started' | 'ineligible'
  reason: string | null
  journeyId: string | null
  contextHash: Buffer | null
}

type OccurrenceKey = Pick<OccurrenceRow, 'appId' | 'experienceId' | 'customerId' | 'key'>

const keyColumns = (keys: readonly OccurrenceKey[]) => [
  texts(keys.map(({ appId }) => appId)),
  int4s(keys.map(({ experienceId }) => experienceId)),
  uuids(keys.map(({ customerId }) => customerId)),
  texts(keys.map(({ key }) => key)),
]

/**
 * Takes keys that nobody has, in the order given, and gives the rows of those it got, by key. Whoever is taking one at the moment is
 * waited for: then its row is there to be read.
 */
export async function claimOccurrences(
  tx: Tx,
  { scopeId }: Scope,
  rows: readonly (OccurrenceKey & { contextHash: Buffer | null; at: number })[],
): Promise<Map<string, bigint>> {
  const claimed = await tx.query<OccurrenceKey & { id: bigint }>(
    `insert into journey_occurrence
       (scope_id, app_id, experience_id, customer_id, key, status, reason, context_sha256, at_ms)
     select $1, app_id, experience_id, customer_id, key, 'ineligible', 'deciding', decode(nullif(hash, ''), 'hex'), at_ms
     from unnest($2::text[], $3::int[], $4::uuid[], $5::text[], $6::text[], $7::bigint[]) with ordinality
       as item (app_id, experience_id, customer_id, key, hash, at_ms, ord)
     order by ord
     on conflict (scope_id, app_id, experience_id, customer_id, key) do nothing
     returning id, app_id as "appId", experience_id as "experienceId", customer_id as "customerId", key`,
    [
      scopeId,
      ...keyColumns(rows),
      texts(rows.map(({ contextHash }) => contextHash?.toString('hex') ?? '')),
      int8s(rows.map(({ at }) => at)),
    ],
  )
  return new Map(claimed.map((row) => [occurrenceKey(row), row.id]))
}

export function occurrenceKey({ appId, experienceId, customerId, key }: OccurrenceKey): string {
  return JSON.stringify([appId, experienceId, customerId, key])
}

export async function selectOccurrences(
  sql: Sql,
  { scopeId }: Scope,
  keys: readonly OccurrenceKey[],
): Promise<Map<string, OccurrenceRow>> {
  const rows = await sql.query<OccurrenceRow>(
    `select o.app_id as "appId", o.experience_id as "experienceId", o.customer_id as "customerId", o.key, o.status,
       o.reason, o.journey_id as "journeyId", o.context_sha256 as "contextHash"
     from unnest($2::text[], $3::int[], $4::uuid[], $5::text[]) as asked (app_id, experience_id, customer_id, key)
     join journey_occurrence o
       on o.scope_id = $1 and o.app_id = asked.app_id and o.experience_id = asked.experience_id
       and o.customer_id = asked.customer_id and o.key = asked.key`,
    [scopeId, ...keyColumns(keys)],
  )
  return new Map(rows.map((row) => [occurrenceKey(row), row]))
}

/** What the claimed keys came to, by their rows: no index but theirs can be taken for it. */
export async function settleOccurrences(
  tx: Tx,
  { scopeId }: Scope,
  rows: readonly (Pick<OccurrenceRow, 'experienceId' | 'status' | 'reason' | 'journeyId'> & { id: bigint })[],
): Promise<void> {
  await tx.query(
    `update journey_occurrence o
     set status = item.status, reason = nullif(item.reason, ''), journey_id = nullif(item.journey, '')::uuid
     from unnest($2::int[], $3::bigint[], $4::text[], $5::text[], $6::text[]) as item (experience_id, id, status, reason, journey)
     where o.scope_id = $1
       and o.experience_id = item.experience_id
       and o.id = item.id`,
    [
      scopeId,
      int4s(rows.map(({ experienceId }) => experienceId)),
      int8s(rows.map(({ id }) => id)),
      texts(rows.map(({ status }) => status)),
      texts(rows.map(({ reason }) => reason ?? '')),
      texts(rows.map(({ journeyId }) => journeyId ?? '')),
    ],
  )
}

/** Those of the customers whose journeys rest. */
export async function selectPaused(sql: Sql, { scopeId }: Scope, customerIds: readonly string[]): Promise<Set<string>> {
  const rows = await sql.query<{ id: string }>(
    `select customer_id as id
     from journey_pause
     where scope_id = $1
       and customer_id = any($2::uuid[])`,
    [scopeId, customerIds],
  )
  return new Set(rows.map(({ id }) => id))
}

/** Device enrolments of a customer since then. */
export async function countDeviceEnrolments(
  sql: Sql,
  { scopeId }: Scope,
  customerIds: readonly string[],
  sinceMs: number,
): Promise<Map<string, number>> {
  const rows = await sql.query<{ id: string; count: bigint }>(
    `select j.customer_id as id, count(*) as count
     from journey j
     join journey_transition t on t.scope_id = j.scope_id and t.journey_id = j.id and t.rev = 1
     where j.scope_id = $1
       and j.customer_id = any($2::uuid[])
       and j.origin = 'device'
       and t.at_ms >= $3
     group by j.customer_id`,
    [scopeId, customerIds, sinceMs],
  )
  return new Map(rows.map(({ id, count }) => [id, Number(count)]))
}
