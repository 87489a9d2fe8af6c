import type { Pool } from '../src/db/pool.ts'
import { raw } from '../src/db/raw.ts'
import type { Account, StoredEvent, StoredOperation } from './check.ts'
import type { Person, Value } from './model.ts'

/** What the proof reads of the service's tables. The scope is the one the load wrote into. */

const events = {
  name: 'chaos_events',
  text: `
    select uuid::text, sum(stored), sum(seen), sum(logged)
    from (
      select uuid, 1 as stored, 0 as seen, 0 as logged
      from event
      where scope_id = $1
        and uuid between $2::uuid and $3::uuid
        and event in ('counted', 'seen', 'told', '$identify')
      union all
      select uuid, 0, 1, 0
      from event_seen
      where scope_id = $1
        and uuid between $2::uuid and $3::uuid
      union all
      select uuid, 0, 0, 1
      from event_log
      where lane = $1
        and uuid between $2::uuid and $3::uuid
    ) found
    group by uuid`,
}

/** Every uuid of which there is anything, a sixteenth at a time so that they need not fit into one answer. */
export async function* readEvents(pool: Pool, scopeId: number): AsyncGenerator<StoredEvent> {
  for (const digit of '0123456789abcdef') {
    const [from, to] = ['0', 'f'].map((rest) => digit + '0000000-0000-0000-0000-000000000000'.replaceAll('0', rest))
    const rows = await pool.connected((client) => raw(client, events, [scopeId, from, to]))
    for (const [uuid, stored, seen, logged] of rows) {
      yield { uuid: uuid ?? '', rows: Number(stored), seen: Number(seen), logged: Number(logged) }
    }
  }
}

/** Positions that more than one event has. */
export async function countSharedPositions(pool: Pool, scopeId: number): Promise<number> {
  const [row] = await pool.query<{ shared: number }>(
    `select (count(*) - count(distinct pos))::int as shared
    from event
    where scope_id = $1`,
    [scopeId],
  )
  return row?.shared ?? 0
}

/** Every live customer, under each of its distinct ids. */
export async function readPeople(pool: Pool, scopeId: number): Promise<Map<string, Person>> {
  const rows = await pool.query<{ distinct_ids: string[]; identified: boolean; properties: Record<string, Value> }>(
    `select array_agg(alias.distinct_id) as distinct_ids, customer.identified, customer.properties
    from customer_alias alias
    join customer on customer.scope_id = alias.scope_id and customer.id = alias.customer_id
    where alias.scope_id = $1
    group by customer.id, customer.identified, customer.properties`,
    [scopeId],
  )
  return new Map(
    rows.flatMap(({ distinct_ids: distinctIds, identified, properties }) =>
      distinctIds.map((id) => [id, { distinctIds, identified, properties }] as const),
    ),
  )
}

interface OperationRow {
  operation_id: string
  mode: number
  quantity: number
  accepted: boolean
  code: string
  balance: number | null
  occurred_at_ms: number
}

export async function readOperations(pool: Pool, scopeId: number): Promise<Map<string, StoredOperation>> {
  const rows = await pool.query<OperationRow>(
    `select operation_id, mode, quantity::float8 as quantity, accepted, code, balance::float8 as balance,
      occurred_at_ms::float8 as occurred_at_ms
    from operation
    where scope_id = $1
      and kind = 0`,
    [scopeId],
  )
  return new Map(
    rows.map(({ operation_id, mode, quantity, accepted, code, balance, occurred_at_ms }) => [
      operation_id,
      {
        ...({ mode: mode === 0 ? 'consume' : 'set_usage', quantity, accepted, code, balance } as const),
        occurredAtMs: occurred_at_ms,
      },
    ]),
  )
}

/** Of the Feature with this key, by distinct id. Entries stay with the account they were written for when it is merged. */
export async function readAccounts(pool: Pool, scopeId: number, featureKey: string): Promise<Map<string, Account>> {
  const rows = await pool.query<Account & { distinct_id: string }>(
    `select alias.distinct_id, account.used_total::float8 as used,
      (select coalesce(-sum(entry.delta), 0)
        from account own
        join entry on entry.account_id = own.id
        where (own.id = account.id or own.merged_into = account.id)
          and entry.kind = 'draw')::float8 as drawn,
      (select coalesce(sum(amount), 0) from ledger_grant where account_id = account.id)::float8 as granted,
      (select coalesce(sum(remaining), 0) from ledger_grant where account_id = account.id)::float8 as remaining
    from feature
    join account on account.scope_id = feature.scope_id and account.feature_id = feature.id
    join customer_alias alias on alias.scope_id = account.scope_id and alias.customer_id = account.customer_id
    where feature.scope_id = $1
      and feature.key = $2`,
    [scopeId, featureKey],
  )
  return new Map(rows.map(({ distinct_id, ...account }) => [distinct_id, account]))
}
