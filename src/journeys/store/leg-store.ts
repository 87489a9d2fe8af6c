import type pg from 'pg'
import { int4s, int8s, texts, uuids } from '../../db/binary-array.ts'
import { raw, type Statement } from '../../db/raw.ts'
import type { LegChange, LegRun } from '../types.ts'
import type { JourneyKey } from './journey-store.ts'

export interface LegKey extends JourneyKey {
  generation: number
}

const select: Statement = {
  name: 'journeys_legs',
  text: `
    select k.scope_id, k.journey_id, l.*
    from unnest($1::int[], $2::uuid[], $3::int[]) as k(scope_id, journey_id, generation)
    cross join lateral (
      select generation, section_key, leg_id, version_number, status, started_event, completed_event
      from journey_leg
      where scope_id = k.scope_id
        and journey_id = k.journey_id
        and generation = k.generation
      limit 1
    ) l`,
}

/** Those that were offered. */
export async function selectLegs(
  client: pg.ClientBase,
  keys: readonly LegKey[],
): Promise<(JourneyKey & { leg: LegRun })[]> {
  const rows = await raw(client, select, keyArrays(keys))
  return rows.map(([scopeId, journeyId, generation, sectionKey, legId, version, status, started, completed]) => ({
    ...{ scopeId: Number(scopeId), journeyId: journeyId ?? '' },
    leg: {
      ...{ generation: Number(generation), sectionKey: sectionKey ?? '', legId: legId ?? '' },
      ...{ versionNumber: Number(version), status: status as LegRun['status'] }, // a check of the table
      ...{ startedEvent: started ?? null, completedEvent: completed ?? null },
    },
  }))
}

export interface NewLeg extends LegKey {
  sectionKey: string
  legId: string
  versionNumber: number
  armedAt: number | null
}

const insert: Statement = {
  name: 'journeys_legs_insert',
  text: `
    insert into journey_leg (scope_id, journey_id, generation, section_key, leg_id, version_number, status, armed_at_ms)
    select scope_id, journey_id, generation, section_key, leg_id, version_number, 'armed', armed_at_ms
    from unnest($1::int[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::int[], $7::bigint[])
      as u(scope_id, journey_id, generation, section_key, leg_id, version_number, armed_at_ms)`,
}

export async function insertLegs(client: pg.ClientBase, legs: readonly NewLeg[]): Promise<void> {
  if (legs.length === 0) return
  await raw(client, insert, [
    ...keyArrays(legs),
    texts(legs.map(({ sectionKey }) => sectionKey)),
    texts(legs.map(({ legId }) => legId)),
    int4s(legs.map(({ versionNumber }) => versionNumber)),
    int8s(legs.map(({ armedAt }) => armedAt)),
  ])
}

export interface LegUpdate extends LegKey {
  set: LegChange
  /** Of this change: names such as `late`. */
  notes: string[]
}

const update: Statement = {
  name: 'journeys_legs_update',
  text: `
    update journey_leg l
    set status = coalesce(u.status, l.status),
      started_at_ms = coalesce(l.started_at_ms, u.started_at_ms),
      started_event = coalesce(l.started_event, u.started_event::uuid),
      completed_at_ms = coalesce(l.completed_at_ms, u.completed_at_ms),
      completed_event = coalesce(l.completed_event, u.completed_event::uuid),
      outcome = coalesce(l.outcome, u.outcome),
      outputs = coalesce(l.outputs, u.outputs),
      dispositions = case u.notes when '[]' then l.dispositions else (l.dispositions::jsonb || u.notes::jsonb)::text end
    from unnest($1::int[], $2::uuid[], $3::int[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::text[],
      $9::text[], $10::text[], $11::text[])
      as u(scope_id, journey_id, generation, status, started_at_ms, started_event, completed_at_ms, completed_event,
        outcome, outputs, notes)
    where l.scope_id = u.scope_id
      and l.journey_id = u.journey_id
      and l.generation = u.generation`,
}

/** What was noted once is not noted over. Each leg once. */
export async function updateLegs(client: pg.ClientBase, legs: readonly LegUpdate[]): Promise<void> {
  if (legs.length === 0) return
  const of = legs.map(({ set }) => set)
  await raw(client, update, [
    ...keyArrays(legs),
    texts(of.map(({ status }) => status ?? null)),
    int8s(of.map(({ startedAt }) => startedAt ?? null)),
    texts(of.map(({ startedEvent }) => startedEvent ?? null)),
    int8s(of.map(({ completedAt }) => completedAt ?? null)),
    texts(of.map(({ completedEvent }) => completedEvent ?? null)),
    texts(of.map(({ outcome }) => outcome ?? null)),
    texts(of.map(({ outputs }) => (outputs === undefined ? null : JSON.stringify(outputs)))),
    texts(legs.map(({ notes }) => JSON.stringify(notes))),
  ])
}

function keyArrays(keys: readonly LegKey[]): [Buffer, Buffer, Buffer] {
  return [
    int4s(keys.map(({ scopeId }) => scopeId)),
    uuids(keys.map(({ journeyId }) => journeyId)),
    int4s(keys.map(({ generation }) => generation)),
  ]
}
