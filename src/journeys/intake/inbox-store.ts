import { int4s, int8s, texts, uuids } from '../../db/binary-array.ts'
import type { Tx } from '../../db/pool.ts'
import { raw, type Statement } from '../../db/raw.ts'
import type { Scope } from '../../tenancy/index.ts'
import { engineChannel } from '../store/timer-store.ts'
import type { InboxBody, InboxRow } from './inbox.ts'

/** One statement: whoever waits for rows hears of them with the COMMIT that makes them visible. */
const insert: Statement = {
  name: 'journey_inbox_insert',
  text: `
    with stored as (
      insert into journey_inbox (scope_id, customer_id, pos, n, kind, received_at_ms, body)
      select $1, customer_id, pos, n, kind, received_at_ms, body
      from unnest($2::uuid[], $3::bigint[], $4::int[], $5::text[], $6::bigint[], $7::text[])
        as item (customer_id, pos, n, kind, received_at_ms, body)
    )
    select pg_notify('${engineChannel}', $1::text)`,
}

export async function insertInbox(tx: Tx, { scopeId }: Scope, rows: readonly InboxRow[]): Promise<void> {
  await raw(tx.client, insert, [
    scopeId,
    uuids(rows.map(({ customerId }) => customerId)),
    int8s(rows.map(({ pos }) => pos)),
    int4s(rows.map(({ n }) => n)),
    texts(rows.map(({ body }) => body.kind)),
    int8s(rows.map(({ receivedAt }) => receivedAt)),
    texts(rows.map(({ body }) => JSON.stringify(body))),
  ])
}

/** Lanes with rows that are due, a loose scan of the index journey_inbox_order. */
export async function selectScopesWithRows(sql: Pick<Tx, 'query'>, now: number): Promise<Scope[]> {
  return sql.query<Scope>(
    `with recursive lane as (
       (select scope_id from journey_inbox order by scope_id limit 1)
       union all
       select (select i.scope_id from journey_inbox i where i.scope_id > lane.scope_id order by i.scope_id limit 1)
       from lane
       where lane.scope_id is not null
     )
     select s.id as "scopeId", p.workspace_id as "workspaceId", p.id as "projectId", s.environment
     from lane
     join scope s on s.id = lane.scope_id
     join project p on p.id = s.project_id
     where exists (select from journey_inbox i where i.scope_id = lane.scope_id and i.due_at_ms <= $1)`,
    [now],
  )
}

/** One consumer of a lane at a time: its rows have one order. False: somebody else is at it. */
export async function lockInbox(tx: Tx, { scopeId }: Scope): Promise<boolean> {
  const [row] = await tx.query<{ locked: boolean }>(`select pg_try_advisory_xact_lock($1, $2) as locked`, [
    inboxLock,
    scopeId,
  ])
  return row?.locked ?? false
}

/** Any constant that no other lock has. */
const inboxLock = 0x6a696e62

interface StoredRow {
  customer_id: string
  pos: bigint
  n: number
  received_at_ms: bigint
  body: string
  attempts: number
}

/** `text` is the body as it is stored. */
export interface WaitingRow extends Omit<InboxRow, 'body'> {
  text: string
  attempts: number
}

export function readRow({ text, ...row }: WaitingRow): InboxRow {
  return { ...row, body: JSON.parse(text) as InboxBody } // written by insertInbox
}

/** The next rows in the order of the lane. Customers with a row that failed wait for it. */
export async function selectInbox(
  tx: Tx,
  { scopeId }: Scope,
  { now, limit }: { now: number; limit: number },
): Promise<WaitingRow[]> {
  const rows = await tx.query<StoredRow>(
    `select customer_id, pos, n, received_at_ms, body, attempts
     from journey_inbox
     where scope_id = $1
       and customer_id not in (select customer_id from journey_inbox where scope_id = $1 and due_at_ms > 0 and due_at_ms > $2)
     order by scope_id, pos, n
     limit $3`,
    [scopeId, now, limit],
  )
  return rows.map(({ customer_id: customerId, pos, n, received_at_ms: receivedAt, body: text, attempts }) => ({
    ...{ customerId, pos, n, attempts, text, receivedAt: Number(receivedAt) },
  }))
}

type Place = Pick<InboxRow, 'customerId' | 'pos' | 'n'>

export async function deleteInbox(tx: Tx, { scopeId }: Scope, rows: readonly Place[]): Promise<void> {
  await tx.query(
    `delete from journey_inbox i
     using unnest($2::uuid[], $3::bigint[], $4::int[]) as gone (customer_id, pos, n)
     where i.scope_id = $1
       and i.customer_id = gone.customer_id
       and i.pos = gone.pos
       and i.n = gone.n`,
    [
      scopeId,
      uuids(rows.map(({ customerId }) => customerId)),
      int8s(rows.map(({ pos }) => pos)),
      int4s(rows.map(({ n }) => n)),
    ],
  )
}

export async function postpone(
  tx: Tx,
  { scopeId }: Scope,
  { customerId, pos, n }: Place,
  dueAt: number,
): Promise<void> {
  await tx.query(
    `update journey_inbox
     set attempts = attempts + 1, due_at_ms = $5
     where scope_id = $1
       and customer_id = $2
       and pos = $3
       and n = $4`,
    [scopeId, customerId, pos, n, dueAt],
  )
}

/** What fails however often it is tried makes way for what comes after it. */
export async function quarantine(
  tx: Tx,
  scope: Scope,
  row: WaitingRow,
  { error, now }: { error: string; now: number },
): Promise<void> {
  await tx.query(
    `insert into journey_quarantine (scope_id, source, customer_id, body, error, at_ms)
     values ($1, 'inbox', $2, $3, $4, $5)`,
    [
      ...[scope.scopeId, row.customerId],
      JSON.stringify({ pos: String(row.pos), n: row.n, received_at_ms: row.receivedAt, body: row.text }),
      ...[error, now],
    ],
  )
  await deleteInbox(tx, scope, [row])
}

/** What waits to be told, over all lanes. */
export interface IntakeGauges {
  rows: number
  lagMs: number
}

export async function selectIntakeGauges(sql: Pick<Tx, 'query'>): Promise<IntakeGauges> {
  const [row] = await sql.query<{ rows: bigint; lag: number | null }>(
    `select count(*) as rows, date_part('epoch', clock_timestamp()) * 1000 - min(received_at_ms) as lag
     from (select received_at_ms from journey_inbox limit 100000) i`,
  )
  return { rows: Number(row?.rows ?? 0), lagMs: Math.max(Math.round(row?.lag ?? 0), 0) }
}
