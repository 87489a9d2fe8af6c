import type pg from 'pg'
import { int4s, int8s, texts, uuids } from '../../db/binary-array.ts'
import { raw, type Statement } from '../../db/raw.ts'
import type { Json } from '../../events/index.ts'
import type { JourneyKey } from './journey-store.ts'

export interface OutboxKey extends JourneyKey {
  rev: number
  index: number
}

export interface NewOutboxRow extends OutboxKey {
  endpointId: string
  body: Json
  timeoutMs: number
  /** Tries at most. */
  attempts: number
  dueAt: number
}

const insert: Statement = {
  name: 'journeys_outbox_insert',
  text: `
    insert into journey_outbox (scope_id, journey_id, rev, index, endpoint_id, body, timeout_ms, attempts_max, due_at_ms)
    select *
    from unnest($1::int[], $2::uuid[], $3::int[], $4::int[], $5::text[], $6::text[], $7::int[], $8::int[], $9::bigint[])`,
}

export async function insertOutbox(client: pg.ClientBase, rows: readonly NewOutboxRow[]): Promise<void> {
  if (rows.length === 0) return
  await raw(client, insert, [
    int4s(rows.map(({ scopeId }) => scopeId)),
    uuids(rows.map(({ journeyId }) => journeyId)),
    int4s(rows.map(({ rev }) => rev)),
    int4s(rows.map(({ index }) => index)),
    texts(rows.map(({ endpointId }) => endpointId)),
    texts(rows.map(({ body }) => JSON.stringify(body))),
    int4s(rows.map(({ timeoutMs }) => timeoutMs)),
    int4s(rows.map(({ attempts }) => attempts)),
    int8s(rows.map(({ dueAt }) => dueAt)),
  ])
}

/** What is to be sent, and under what. */
export interface OutboxRow extends OutboxKey {
  endpointId: string
  body: string
  timeoutMs: number
  attemptsMax: number
  /** This one included. */
  attempts: number
}

const claim: Statement = {
  name: 'journeys_outbox_claim',
  text: `
    with due as materialized (
      select scope_id, journey_id, rev, index
      from journey_outbox
      where due_at_ms <= $1
      order by due_at_ms
      limit $2
      for update skip locked
    )
    update journey_outbox o
    set attempts = o.attempts + 1,
      due_at_ms = $1 + o.timeout_ms + $3
    from due d
    where o.scope_id = d.scope_id
      and o.journey_id = d.journey_id
      and o.rev = d.rev
      and o.index = d.index
    returning o.scope_id, o.journey_id, o.rev, o.index, o.endpoint_id, o.body, o.timeout_ms, o.attempts_max, o.attempts`,
}

/** Takes due rows: nobody else tries them before the timeout and `leaseMs` are over. */
export async function claimOutbox(
  client: pg.ClientBase,
  { now, limit, leaseMs }: { now: number; limit: number; leaseMs: number },
): Promise<OutboxRow[]> {
  const rows = await raw(client, claim, [now, limit, leaseMs])
  return rows.map(([scopeId, journeyId, rev, index, endpointId, body, timeoutMs, attemptsMax, attempts]) => ({
    ...{ scopeId: Number(scopeId), journeyId: journeyId ?? '', rev: Number(rev), index: Number(index) },
    ...{ endpointId: endpointId ?? '', body: body ?? '', timeoutMs: Number(timeoutMs) },
    ...{ attemptsMax: Number(attemptsMax), attempts: Number(attempts) },
  }))
}

const later: Statement = {
  name: 'journeys_outbox_later',
  text: `
    update journey_outbox
    set due_at_ms = $5
    where scope_id = $1
      and journey_id = $2
      and rev = $3
      and index = $4
      and attempts = $6`,
}

/** Nothing where somebody else has taken it since: it is theirs until their lease is over. */
export async function postponeOutbox(
  client: pg.ClientBase,
  { scopeId, journeyId, rev, index, attempts }: OutboxRow,
  dueAt: number,
): Promise<void> {
  await raw(client, later, [scopeId, journeyId, rev, index, dueAt, attempts])
}

const remove: Statement = {
  name: 'journeys_outbox_remove',
  text: `
    delete from journey_outbox
    where scope_id = $1
      and journey_id = $2
      and rev = $3
      and index = $4
    returning 1`,
}

/** False: somebody else has written down a result. */
export async function removeOutbox(
  client: pg.ClientBase,
  { scopeId, journeyId, rev, index }: OutboxKey,
): Promise<boolean> {
  return (await raw(client, remove, [scopeId, journeyId, rev, index])).length > 0
}

const failure: Statement = {
  name: 'journeys_outbox_failure',
  text: `
    update journey_outbox
    set failures = failures + 1
    where scope_id = $1
      and journey_id = $2
      and rev = $3
      and index = $4
    returning failures`,
}

/** How often its result could not be written down. */
export async function countOutboxFailure(
  client: pg.ClientBase,
  { scopeId, journeyId, rev, index }: OutboxKey,
): Promise<number> {
  const [row] = await raw(client, failure, [scopeId, journeyId, rev, index])
  return Number(row?.[0] ?? 0)
}
