import type pg from 'pg'
import { bools, int4s, int8s, texts, uuids } from '../../db/binary-array.ts'
import { raw, type Statement } from '../../db/raw.ts'
import type { Journey } from '../types.ts'
import { journeyColumns, journeyOf, pendingText } from './journey-row.ts'

/**
 * For connections that apply inputs: everything is a probe of an index, in order, also on tables that nobody has analysed
 * yet.
 */
export const journeySettings = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  lock_timeout: '2s',
}

export interface JourneyKey {
  scopeId: number
  journeyId: string
}

export interface ScopedJourney {
  scopeId: number
  journey: Journey
}

/** A probe of the primary key for each. */
const byKeys = (name: string, columns: string, how: string): Statement => ({
  name,
  text: `
    select k.scope_id, j.*
    from unnest($1::int[], $2::uuid[]) as k(scope_id, id)
    cross join lateral (
      select ${columns}
      from journey
      where scope_id = k.scope_id
        and id = k.id
      limit 1
      ${how}
    ) j`,
})
const lockAll = byKeys('journeys_lock', journeyColumns, 'for no key update')
const lockFree = byKeys('journeys_lock_free', journeyColumns, 'for no key update skip locked')
const exist = byKeys('journeys_exist', 'id', '')

function keyArrays(keys: readonly JourneyKey[]): [Buffer, Buffer] {
  return [int4s(keys.map(({ scopeId }) => scopeId)), uuids(keys.map(({ journeyId }) => journeyId))]
}

/** Locked in the order of the keys, which is everybody's. `skipLocked` leaves out those that somebody holds. */
export async function lockJourneys(
  client: pg.ClientBase,
  keys: readonly JourneyKey[],
  { skipLocked = false } = {},
): Promise<ScopedJourney[]> {
  if (keys.length === 0) return []
  const rows = await raw(client, skipLocked ? lockFree : lockAll, keyArrays(keys.toSorted(byKey)))
  return rows.map((row) => ({ scopeId: Number(row[0]), journey: journeyOf(row, 1) }))
}

export function byKey(a: JourneyKey, b: JourneyKey): number {
  if (a.scopeId !== b.scopeId) return a.scopeId - b.scopeId
  return a.journeyId < b.journeyId ? -1 : Number(a.journeyId > b.journeyId)
}

/** Ids of those that are there, whoever holds them. */
export async function selectExisting(client: pg.ClientBase, keys: readonly JourneyKey[]): Promise<Set<string>> {
  const rows = await raw(client, exist, keyArrays(keys))
  return new Set(rows.map(([, id]) => id ?? ''))
}

const insert: Statement = {
  name: 'journeys_insert',
  text: `
    insert into journey (scope_id, ${journeyColumns})
    select *
    from unnest($1::int[], $2::uuid[], $3::uuid[], $4::text[], $5::int[], $6::int[], $7::text[], $8::text[], $9::text[],
      $10::text[], $11::text[], $12::text[], $13::int[], $14::int[], $15::text[], $16::text[], $17::text[], $18::bool[],
      $19::text[], $20::text[], $21::text[], $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[])
    on conflict do nothing
    returning 1`,
}

/** How many of them are new. */
export async function insertJourneys(client: pg.ClientBase, made: readonly ScopedJourney[]): Promise<number> {
  if (made.length === 0) return 0
  const of = made.map(({ journey }) => journey)
  const rows = await raw(client, insert, [
    int4s(made.map(({ scopeId }) => scopeId)),
    uuids(of.map(({ id }) => id)),
    uuids(of.map(({ customerId }) => customerId)),
    texts(of.map(({ appId }) => appId)),
    int4s(of.map(({ experienceId }) => experienceId)),
    int4s(of.map(({ versionNumber }) => versionNumber)),
    texts(of.map(({ buildId }) => buildId)),
    texts(of.map(({ origin }) => origin)),
    texts(of.map(({ occurrence }) => occurrence)),
    texts(of.map(({ status }) => status)),
    texts(of.map(({ endReason }) => endReason)),
    texts(of.map(({ endDetail }) => endDetail)),
    int4s(of.map(({ rev }) => rev)),
    int4s(of.map(({ generation }) => generation)),
    texts(of.map(({ sectionKey }) => sectionKey)),
    texts(of.map(({ stepId }) => stepId)),
    texts(of.map(({ trust }) => trust)),
    bools(of.map(({ held }) => held)),
    texts(of.map(({ context }) => JSON.stringify(context))),
    texts(of.map(({ conversion }) => JSON.stringify(conversion))),
    texts(of.map(pendingText)),
    int8s(of.map(({ startedAt }) => startedAt)),
    int8s(of.map(({ expiresAt }) => expiresAt)),
    int8s(of.map(({ endedAt }) => endedAt)),
    int8s(of.map(({ watchedUntil }) => watchedUntil)),
  ])
  return rows.length
}

const update: Statement = {
  name: 'journeys_update',
  text: `
    update journey j
    set version_number = u.version_number, build_id = u.build_id, status = u.status, end_reason = u.end_reason,
      end_detail = u.end_detail, rev = u.rev, generation = u.generation, section_key = u.section_key, step_id = u.step_id,
      trust = u.trust, held = u.held, context = u.context, conversion = u.conversion, pending = u.pending,
      ended_at_ms = u.ended_at_ms, watched_until_ms = u.watched_until_ms
    from unnest($1::int[], $2::uuid[], $3::int[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[],
      $10::int[], $11::text[], $12::text[], $13::text[], $14::bool[], $15::text[], $16::text[], $17::text[], $18::bigint[],
      $19::bigint[])
      as u(scope_id, id, seen, version_number, build_id, status, end_reason, end_detail, rev, generation, section_key,
        step_id, trust, held, context, conversion, pending, ended_at_ms, watched_until_ms)
    where j.scope_id = u.scope_id
      and j.id = u.id
      and j.rev = u.seen
    returning 1`,
}

/** Compare and set: how many still were at the rev that was seen. */
export async function updateJourneys(
  client: pg.ClientBase,
  changed: readonly (ScopedJourney & { seenRev: number })[],
): Promise<number> {
  if (changed.length === 0) return 0
  const of = changed.map(({ journey }) => journey)
  const rows = await raw(client, update, [
    int4s(changed.map(({ scopeId }) => scopeId)),
    uuids(of.map(({ id }) => id)),
    int4s(changed.map(({ seenRev }) => seenRev)),
    int4s(of.map(({ versionNumber }) => versionNumber)),
    texts(of.map(({ buildId }) => buildId)),
    texts(of.map(({ status }) => status)),
    texts(of.map(({ endReason }) => endReason)),
    texts(of.map(({ endDetail }) => endDetail)),
    int4s(of.map(({ rev }) => rev)),
    int4s(of.map(({ generation }) => generation)),
    texts(of.map(({ sectionKey }) => sectionKey)),
    texts(of.map(({ stepId }) => stepId)),
    texts(of.map(({ trust }) => trust)),
    bools(of.map(({ held }) => held)),
    texts(of.map(({ context }) => JSON.stringify(context))),
    texts(of.map(({ conversion }) => JSON.stringify(conversion))),
    texts(of.map(pendingText)),
    int8s(of.map(({ endedAt }) => endedAt)),
    int8s(of.map(({ watchedUntil }) => watchedUntil)),
  ])
  return rows.length
}

export interface TransitionRow extends JourneyKey {
  rev: number
  at: number
  input: string
  facts: string | null
  from: string
  to: string
  effects: string
}

const log: Statement = {
  name: 'journeys_log',
  text: `
    insert into journey_transition (scope_id, journey_id, rev, at_ms, input, facts, from_state, to_state, effects)
    select *
    from unnest($1::int[], $2::uuid[], $3::int[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[])`,
}

export async function insertTransitions(client: pg.ClientBase, rows: readonly TransitionRow[]): Promise<void> {
  if (rows.length === 0) return
  await raw(client, log, [
    int4s(rows.map(({ scopeId }) => scopeId)),
    uuids(rows.map(({ journeyId }) => journeyId)),
    int4s(rows.map(({ rev }) => rev)),
    int8s(rows.map(({ at }) => at)),
    texts(rows.map(({ input }) => input)),
    texts(rows.map(({ facts }) => facts)),
    texts(rows.map(({ from }) => from)),
    texts(rows.map(({ to }) => to)),
    texts(rows.map(({ effects }) => effects)),
  ])
}
