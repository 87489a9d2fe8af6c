import type pg from 'pg'
import { bools, int4s, int8s, texts, uuids } from '../../db/binary-array.ts'
import { type RawRow, raw, type Statement } from '../../db/raw.ts'
import type { TimerKind } from '../types.ts'
import type { JourneyKey } from './journey-store.ts'

export interface TimerKey extends JourneyKey {
  timer: TimerKind
}

export interface TimerRow extends TimerKey {
  rev: number
  dueAt: number
  /** When it is looked at next: not before it is due, but where eligibility fades. */
  lookAt: number
  afterLane: boolean
  parked: boolean
  attempts: number
}

const taken = `
  delete from journey_timer t
  using due d
  where t.scope_id = d.scope_id
    and t.journey_id = d.journey_id
    and t.kind = d.kind
  returning t.scope_id, t.journey_id, t.kind, t.rev, t.due_at_ms, t.look_at_ms, t.after_lane, t.parked, t.attempts`

const takeDue: Statement = {
  name: 'journeys_take_due',
  text: `
    with due as materialized (
      select scope_id, journey_id, kind
      from journey_timer
      where look_at_ms <= $1
        and not parked
      order by look_at_ms
      limit $2
      for update skip locked
    )
    ${taken}`,
}

const takeNamed: Statement = {
  name: 'journeys_take_named',
  text: `
    with due as materialized (
      select t.scope_id, t.journey_id, t.kind
      from unnest($2::int[], $3::uuid[], $4::text[]) as k(scope_id, journey_id, kind)
      cross join lateral (
        select scope_id, journey_id, kind
        from journey_timer
        where scope_id = k.scope_id
          and journey_id = k.journey_id
          and kind = k.kind
          and look_at_ms <= $1
          and not parked
        limit 1
        for update skip locked
      ) t
    )
    ${taken}`,
}

/** Takes due timers off the list, the oldest first; rolled back they are on it again. Nobody else gets them meanwhile. */
export async function takeDueTimers(client: pg.ClientBase, now: number, limit: number): Promise<TimerRow[]> {
  return (await raw(client, takeDue, [now, limit])).map(timerOf)
}

/** The same for some of them. */
export async function takeTimers(client: pg.ClientBase, now: number, keys: readonly TimerKey[]): Promise<TimerRow[]> {
  return (await raw(client, takeNamed, [now, ...keyArrays(keys)])).map(timerOf)
}

function timerOf([scopeId, journeyId, kind, rev, dueAt, lookAt, afterLane, parked, attempts]: RawRow): TimerRow {
  return {
    ...{ scopeId: Number(scopeId), journeyId: journeyId ?? '', timer: kind as TimerKind, rev: Number(rev) }, // a check of the table
    ...{
      dueAt: Number(dueAt),
      lookAt: Number(lookAt),
      afterLane: afterLane === 't',
      parked: parked === 't',
      attempts: Number(attempts),
    },
  }
}

const put: Statement = {
  name: 'journeys_put_timers',
  text: `
    insert into journey_timer (scope_id, journey_id, kind, rev, due_at_ms, look_at_ms, after_lane, parked, attempts)
    select *
    from unnest($1::int[], $2::uuid[], $3::text[], $4::int[], $5::bigint[], $6::bigint[], $7::bool[], $8::bool[], $9::int[])
    on conflict (scope_id, journey_id, kind) do update
    set rev = excluded.rev, due_at_ms = excluded.due_at_ms, look_at_ms = excluded.look_at_ms, after_lane = excluded.after_lane, parked = excluded.parked,
      attempts = excluded.attempts`,
}

/** Each journey has one timer of a kind: the last that was set. */
export async function putTimers(client: pg.ClientBase, timers: readonly TimerRow[]): Promise<void> {
  if (timers.length === 0) return
  await raw(client, put, [
    ...keyArrays(timers),
    int4s(timers.map(({ rev }) => rev)),
    int8s(timers.map(({ dueAt }) => dueAt)),
    int8s(timers.map(({ lookAt }) => lookAt)),
    bools(timers.map(({ afterLane }) => afterLane)),
    bools(timers.map(({ parked }) => parked)),
    int4s(timers.map(({ attempts }) => attempts)),
  ])
}

const remove: Statement = {
  name: 'journeys_remove_timers',
  text: `
    delete from journey_timer t
    using unnest($1::int[], $2::uuid[], $3::text[]) as k(scope_id, journey_id, kind)
    where t.scope_id = k.scope_id
      and t.journey_id = k.journey_id
      and t.kind = k.kind`,
}

export async function removeTimers(client: pg.ClientBase, keys: readonly TimerKey[]): Promise<void> {
  if (keys.length > 0) await raw(client, remove, keyArrays(keys))
}

const park: Statement = {
  name: 'journeys_park_timers',
  text: `
    update journey_timer t
    set parked = true
    from unnest($1::int[], $2::uuid[]) as k(scope_id, journey_id)
    where t.scope_id = k.scope_id
      and t.journey_id = k.journey_id`,
}

export async function parkTimers(client: pg.ClientBase, keys: readonly JourneyKey[]): Promise<void> {
  if (keys.length === 0) return
  await raw(client, park, [int4s(keys.map(({ scopeId }) => scopeId)), uuids(keys.map(({ journeyId }) => journeyId))])
}

export const engineChannel = 'turnpike_journeys'

const wake: Statement = { name: 'journeys_wake', text: `select pg_notify('${engineChannel}', '')` }

/** Somebody has something to do before the next look, from the COMMIT on. */
export async function wakeEngine(client: pg.ClientBase): Promise<void> {
  await raw(client, wake, [])
}

const clock: Statement = {
  name: 'journeys_clock',
  text: `select floor(date_part('epoch', clock_timestamp()) * 1000)::bigint`,
}

/** Of the database, in Unix milliseconds. */
export async function selectClock(client: pg.ClientBase): Promise<number> {
  const [row] = await raw(client, clock, [])
  return Number(row?.[0])
}

function keyArrays(keys: readonly TimerKey[]): [Buffer, Buffer, Buffer] {
  return [
    int4s(keys.map(({ scopeId }) => scopeId)),
    uuids(keys.map(({ journeyId }) => journeyId)),
    texts(keys.map(({ timer }) => timer)),
  ]
}
