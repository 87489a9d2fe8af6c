import { bools, float8s, int4s, int8s, texts, uuids } from '../../db/binary-array.ts'
import type { Tx } from '../../db/pool.ts'
import { raw, type Statement } from '../../db/raw.ts'
import type { JsonObject } from '../../events/index.ts'
import { must } from '../../kernel/assert.ts'
import type { Scope } from '../../tenancy/index.ts'
import { orRaise } from '../rev-store.ts'
import type { Cause, Due, Found } from './visit.ts'

/** Epoch milliseconds to timestamptz and back, exact in whole milliseconds. */
const instant = (ms: string) => `'epoch'::timestamptz + ${ms} * interval '1 millisecond'`
const never = Number.NEGATIVE_INFINITY

/** What a lane knows about its definitions, and customers that were marked to be looked at. */
export interface Header {
  revision: string
  walkedTo: string | null
  settling: boolean
  marked: { customerId: string; cause: string }[]
}

const readHeader: Statement = {
  name: 'segments_header',
  text: `
    select s.revision, s.walked_to, s.settling,
      (
        select json_agg(json_build_array(t.customer_id, t.cause))
        from (
          select customer_id, cause
          from segment_timer
          where scope_id = $1
            and due_at <= $2::timestamptz
          order by scope_id, due_at
          limit $3
        ) t
      )
    from segment_set s
    where s.scope_id = $1`,
}

/** One descent where no definitions are. `dueBy`: timers up to then, in Unix milliseconds; null: only what was marked. */
export async function selectHeader(
  tx: Tx,
  scope: Scope,
  { dueBy, limit }: { dueBy: number | null; limit: number },
): Promise<Header | null> {
  const by = dueBy === null ? '-infinity' : new Date(dueBy).toISOString()
  const [row] = await raw(tx.client, readHeader, [scope.scopeId, by, limit])
  if (!row) return null
  const [revision, walkedTo, settling, marked] = row
  const pairs = JSON.parse(marked ?? '[]') as [string, string][] // of the statement above
  return {
    revision: must(revision, 'a set has a revision'),
    walkedTo: walkedTo ?? null,
    settling: settling === 't',
    marked: pairs.map(([customerId, cause]) => ({ customerId, cause })),
  }
}

const readStates: Statement = {
  name: 'segments_read_states',
  text: `
    select i.id, c.id is not null or not ($5 or i.whole or ($4 and s.state is null)), c.merged_into,
      case when i.whole or ($4 and s.state is null) then c.properties::text end, s.state
    from unnest($2::uuid[], $3::bool[]) as i(id, whole)
    left join lateral (
      select state
      from segment_customer
      where scope_id = $1
        and customer_id = i.id
      limit 1
    ) s on true
    left join lateral (
      select id, merged_into, properties
      from customer
      where ($5 or i.whole or ($4 and s.state is null))
        and scope_id = $1
        and id = i.id
      limit 1
    ) c on true`,
}

export interface StoredCustomer extends Found {
  mergedInto: string | null
}

/**
 * By id; customers that are gone are left out. `asked`: whether with properties; `newWhole`: those of customers without a
 * state too. `areCurrent`: all are there and none was merged, so most need not be looked up.
 */
export async function selectStates(
  tx: Tx,
  scope: Scope,
  asked: ReadonlyMap<string, boolean>,
  { newWhole, areCurrent = false }: { newWhole: boolean; areCurrent?: boolean },
): Promise<Map<string, StoredCustomer>> {
  const values = [scope.scopeId, uuids([...asked.keys()]), bools([...asked.values()]), newWhole, !areCurrent]
  const found = new Map<string, StoredCustomer>()
  for (const [id, there, mergedInto, properties, text] of await raw(tx.client, readStates, values)) {
    if (there !== 't') continue
    found.set(id ?? '', {
      mergedInto: mergedInto ?? null,
      properties: properties ? (JSON.parse(properties) as JsonObject) : null, // the column holds objects only
      text: text ?? null,
    })
  }
  return found
}

const writeStates: Statement = {
  name: 'segments_write_states',
  text: `
    insert into segment_customer (scope_id, customer_id, state)
    select $1, id, state
    from unnest($2::uuid[], $3::text[]) as i(id, state)
    on conflict (scope_id, customer_id) do update
    set state = excluded.state`,
}

export async function upsertStates(tx: Tx, scope: Scope, rows: { customerId: string; text: string }[]): Promise<void> {
  if (rows.length === 0) return
  const ids = uuids(rows.map(({ customerId }) => customerId))
  await raw(tx.client, writeStates, [scope.scopeId, ids, texts(rows.map(({ text }) => text))])
}

const writeTimers: Statement = {
  name: 'segments_write_timers',
  text: `
    insert into segment_timer (scope_id, customer_id, due_at, cause)
    select $1, id, case when due_ms = '-infinity' then '-infinity' else ${instant('due_ms')} end, cause
    from unnest($2::uuid[], $3::float8[], $4::text[]) as i(id, due_ms, cause)
    on conflict (scope_id, customer_id) do update
    set due_at = excluded.due_at,
      cause = excluded.cause
    where $5
      or segment_timer.cause = 'timer'`,
}

const deleteTimers: Statement = {
  name: 'segments_drop_timers',
  text: `
    delete from segment_timer t
    using unnest($2::uuid[]) as i(id)
    where t.scope_id = $1
      and t.customer_id = i.id
      and ($3 or t.cause = 'timer')`,
}

/** Arms timers; `at` null takes one away. What a customer is still to be looked at for stays, unless its timer rang. */
export async function writeDue(tx: Tx, scope: Scope, rows: readonly (Due & { customerId: string })[]): Promise<void> {
  for (const rang of [false, true]) {
    const own = rows.filter((row) => row.rang === rang)
    const armed = own.filter(({ at }) => at !== null)
    if (armed.length > 0) {
      const ids = uuids(armed.map(({ customerId }) => customerId))
      const [dues, causes] = [float8s(armed.map(({ at }) => at)), texts(armed.map(({ cause }) => cause))]
      await raw(tx.client, writeTimers, [scope.scopeId, ids, dues, causes, rang])
    }
    const gone = own.filter(({ at }) => at === null).map(({ customerId }) => customerId)
    if (gone.length > 0) await raw(tx.client, deleteTimers, [scope.scopeId, uuids(gone), rang])
  }
}

/** Whatever they were to be looked at for. */
export async function dropTimers(tx: Tx, scope: Scope, customerIds: string[]): Promise<void> {
  if (customerIds.length > 0) await raw(tx.client, deleteTimers, [scope.scopeId, uuids(customerIds), true])
}

const markCustomers: Statement = {
  name: 'segments_mark',
  text: `
    insert into segment_timer (scope_id, customer_id, due_at, cause)
    select $1, id, '-infinity', $3
    from unnest($2::uuid[]) as i(id)
    where exists (
      select
      from segment_set
      where scope_id = $1
    )
    on conflict (scope_id, customer_id) do update
    set due_at = '-infinity',
      cause = case when segment_timer.cause = 'recount' then 'recount' else excluded.cause end`,
}

/** Has customers looked at by the lane's next slice or step. Nothing where no definitions are. */
export async function mark(tx: Tx, scope: Scope, customerIds: string[], cause: Mark): Promise<void> {
  await raw(tx.client, markCustomers, [scope.scopeId, uuids(customerIds), cause])
}

const readRecounting: Statement = {
  name: 'segments_recounting',
  text: `
    select t.customer_id
    from unnest($2::uuid[]) as i(id)
    cross join lateral (
      select customer_id
      from segment_timer
      where scope_id = $1
        and customer_id = i.id
        and cause = 'recount'
      limit 1
    ) t`,
}

/** Whether any of them is still to be counted again. */
export async function isRecounting(tx: Tx, scope: Scope, customerIds: string[]): Promise<boolean> {
  return (await raw(tx.client, readRecounting, [scope.scopeId, uuids(customerIds)])).length > 0
}

/** Why a customer is to be looked at: edited or born, merged, split. */
export type Mark = 'event' | 'merge' | 'recount'

/**
 * Has the next step taken at once, when this transaction commits. Notifying commits wait for each other, so only what took
 * the lane's row anyway does it; others are found within half a second.
 */
export async function ring(tx: Tx, { scopeId }: Scope): Promise<void> {
  await tx.query(`select pg_notify('${segmentChannel}', $1)`, [String(scopeId)])
}

export const segmentChannel = 'turnpike_segments'

export interface MembershipWrite {
  versionId: number
  customerId: string
  /** Unix milliseconds; null: no longer a member. */
  since: number | null
  told: boolean
}

const writeMembers: Statement = {
  name: 'segments_write_members',
  text: `
    with item as materialized (
      select version_id, customer_id, since_ms, told
      from unnest($2::int[], $3::uuid[], $4::float8[], $5::bool[]) as i(version_id, customer_id, since_ms, told)
    ), gone as (
      delete from membership m
      using item
      where item.since_ms = '-infinity'
        and m.scope_id = $1
        and m.version_id = item.version_id
        and m.customer_id = item.customer_id
      returning m.version_id, m.customer_id
    ), here as (
      insert into membership (scope_id, version_id, customer_id, since, told)
      select $1, version_id, customer_id, ${instant('since_ms')}, told
      from item
      where since_ms > '-infinity'
      on conflict (scope_id, version_id, customer_id) do update
      set since = excluded.since,
        told = excluded.told
      returning version_id, customer_id, xmax = 0 as is_new
    ), raised as (
      insert into customer_rev (scope_id, customer_id, rev)
      select distinct $1::int, c.customer_id, 1
      from (
        select version_id, customer_id from gone
        union all
        select version_id, customer_id from here where is_new
      ) c
      join segment_version v on v.scope_id = $1 and v.id = c.version_id and v.state = 'serving'
      order by c.customer_id
      ${orRaise}
    ), delta as (
      select version_id, sum(change) as change
      from (
        select version_id, -1 as change from gone
        union all
        select version_id, 1 from here where is_new
      ) changes
      group by version_id
    )
    update segment_version v
    set member_count = v.member_count + delta.change
    from delta
    where v.scope_id = $1
      and v.id = delta.version_id`,
}

/** Writes who is a member, and counts. Profiles of those who enter or leave what serves count as changed. */
export async function writeMemberships(tx: Tx, scope: Scope, rows: MembershipWrite[]): Promise<void> {
  if (rows.length === 0) return
  await raw(tx.client, writeMembers, [
    scope.scopeId,
    int4s(rows.map(({ versionId }) => versionId)),
    uuids(rows.map(({ customerId }) => customerId)),
    float8s(rows.map(({ since }) => since ?? never)),
    bools(rows.map(({ told }) => told)),
  ])
}

export interface ChangeRow {
  pos: bigint
  segmentId: number
  customerId: string
  edge: 'entered' | 'left'
  cause: Cause
  at: number
}

const writeChangeRows: Statement = {
  name: 'segments_write_changes',
  text: `
    insert into membership_change (scope_id, pos, n, segment_id, customer_id, edge, cause, at)
    select $1, pos, n, segment_id, customer_id, edge, cause, ${instant('at_ms')}
    from unnest($2::int8[], $3::int[], $4::uuid[], $5::text[], $6::text[], $7::float8[]) with ordinality
      as i(pos, segment_id, customer_id, edge, cause, at_ms, n)`,
}

export async function insertChanges(tx: Tx, scope: Scope, rows: ChangeRow[]): Promise<void> {
  if (rows.length === 0) return
  await raw(tx.client, writeChangeRows, [
    scope.scopeId,
    int8s(rows.map(({ pos }) => pos)),
    int4s(rows.map(({ segmentId }) => segmentId)),
    uuids(rows.map(({ customerId }) => customerId)),
    texts(rows.map(({ edge }) => edge)),
    texts(rows.map(({ cause }) => cause)),
    float8s(rows.map(({ at }) => at)),
  ])
}

const dropStates: Statement = {
  name: 'segments_drop_states',
  text: `
    delete from segment_customer s
    using unnest($2::uuid[]) as i(id)
    where s.scope_id = $1
      and s.customer_id = i.id`,
}

/** Forgets customers: their counts and timers, not their memberships. */
export async function deleteStates(tx: Tx, scope: Scope, customerIds: string[]): Promise<void> {
  await raw(tx.client, dropStates, [scope.scopeId, uuids(customerIds)])
  await dropTimers(tx, scope, customerIds)
}
