import type pg from 'pg'
import type { Pool } from '../db/pool.ts'
import { pipeline, type RawRow } from '../db/raw.ts'
import { verb } from '../db/verb.ts'
import { readStandings, refuseDeleted, type WholeStanding, type Whose } from '../entitlements/index.ts'
import type { JsonObject } from '../events/index.ts'
import type { Assignment, Delivery } from '../experiences/index.ts'
import { must } from '../kernel/assert.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Refusal } from '../kernel/errors.ts'
import { profileBatchMax, profileWaitingMax, profileWaitMsMax } from '../kernel/limits.ts'
import { type Asked, selectRevisions, selectStates } from './state-store.ts'
import type { Counted, Edge, OpenJourney, Person } from './types.ts'

export interface ReadOptions {
  /** Pipelined connections with the ledger's settings. */
  pool: Pool
  tombstoneKey: Buffer
  clock: Clock
}

/** A customer, and what of them the scope's Experiences ask. */
export type PersonQuery = Whose & Pick<Person, 'birthId'> & { delivery: Delivery }

/**
 * One lane, and batches of fewer than may be under way: while some are answered, others are read and others arrive. Two lanes
 * or whole queues at a time came back together, and the cores took turns to wait: bench/README.md.
 */
export const queue = {
  lanes: 1,
  itemsMax: profileBatchMax,
  waitingMax: profileWaitingMax,
  waitMsMax: profileWaitMsMax,
  overloaded: 'service_unavailable',
} as const

/** Everything a profile is made of, all of it as of one instant. Throws `customer_deleted`. */
export function createReadPerson({ pool, tombstoneKey, clock }: ReadOptions): (query: PersonQuery) => Promise<Person> {
  return verb<PersonQuery, Person>({
    ...queue,
    now: () => clock.now(),
    run: (queries) => pool.connected((client) => readBatch(client, queries, tombstoneKey)),
  })
}

async function readBatch(
  client: pg.PoolClient,
  queries: PersonQuery[],
  tombstoneKey: Buffer,
): Promise<(Person | Refusal)[]> {
  // As it is asked: more may be named before the answer is there.
  const named = queries.map(({ delivery }) => delivery.named)
  const asked = askedOf(queries)
  const [, revisions, standings, states] = await pipeline(client, () => [
    client.query('begin isolation level repeatable read read only'),
    selectRevisions(client, new Set(queries.map(({ scope }) => scope.scopeId))),
    readStandings(client, queries),
    selectStates(client, queries.map(stateQuery), asked),
    client.query('commit'),
  ])
  const persons: Person[] = []
  for (const row of states) {
    const n = Number(row[0])
    const { birthId, scope } = must(queries[n], 'one for each')
    const revision = revisions.get(scope.scopeId) ?? 0n
    persons[n] = {
      ...personOf(must(standings[n], 'one for each'), row, must(named[n], 'one for each')),
      ...(birthId === undefined ? { revision } : { revision, birthId }),
    }
  }
  return refuseDeleted(client, queries, persons, tombstoneKey)
}

function stateQuery(query: PersonQuery) {
  return {
    scopeId: query.scope.scopeId,
    distinctId: 'distinctId' in query ? query.distinctId : null,
    // Where the id names nobody: what was stored for the record that it will be.
    customerId: 'customerId' in query ? query.customerId : (query.birthId ?? null),
    withProperties: query.delivery.experiences.length > 0,
  }
}

/** Each snapshot once: what any Experience of it asks for. */
function askedOf(queries: readonly PersonQuery[]): Asked[] {
  const each = new Map(queries.map(({ scope, delivery }) => [delivery, scope.scopeId]))
  return [...each].map(([{ named, segments, current }, scopeId]) => {
    const all = [...current.values()].flat().filter((one) => one.isDeviceEnrolled)
    const edges = all.flatMap(({ trigger }) => {
      return 'segmentId' in trigger ? (segments.get(trigger.segmentId)?.segmentId ?? []) : []
    })
    const counting = all.filter(({ trigger, frequency }) => frequency.type !== 'every_match' || 'segmentId' in trigger)
    return {
      scopeId,
      segmentVersions: [...named].flatMap((id) => segments.get(id)?.versionId ?? []),
      edgeSegments: [...new Set(edges)],
      enrolments: [...new Set(counting.map(({ experienceRowId }) => experienceRowId))],
    }
  })
}

function personOf(standing: WholeStanding, row: RawRow, segments: ReadonlySet<string>): Omit<Person, 'revision'> {
  const [, , rev, properties, members, edges, enrolments, journeys, assignments, pausedAt] = row
  return {
    ...standing,
    rev: BigInt(rev ?? 0),
    properties: JSON.parse(properties ?? '{}') as JsonObject, // the column holds objects only
    members: members == null ? none : new Map(rowsOf<[number, number]>(members)),
    edges: edges == null ? none : new Map(rowsOf<EdgeRow>(edges).map(edgeOf)),
    segments,
    enrolments: enrolments == null ? none : new Map(rowsOf<EnrolmentRow>(enrolments).map(enrolmentOf)),
    journeys: rowsOf<JourneyRow>(journeys).map(journeyOf),
    pausedAt: pausedAt == null ? null : Number(pausedAt),
    assignments: assignments == null ? none : new Map(rowsOf<AssignmentRow>(assignments).map(assignmentOf)),
  }
}

const none: ReadonlyMap<never, never> = new Map<never, never>()

/** Mostly there are none. What each row holds is the statement's to say. */
function rowsOf<Row>(json: string | null | undefined): Row[] {
  return json == null ? [] : (JSON.parse(json) as Row[])
}

type AssignmentRow = [number, number, string, boolean]

function assignmentOf([experimentId, phase, variantId, isHoldout]: AssignmentRow): [string, Assignment] {
  return [`${experimentId} ${phase}`, { variantId, isHoldout }]
}

type JourneyRow = [string, string, number, number, string, number, string | null, boolean, string, string]

function journeyOf(row: JourneyRow): OpenJourney {
  const [id, appId, experienceRowId, versionNumber, status, generation, sectionKey, held, context, conversion] = row
  return {
    ...{ id, appId, experienceRowId, versionNumber, status, generation, sectionKey, held },
    context: JSON.parse(context) as OpenJourney['context'], // only journeys write these columns
    conversion: JSON.parse(conversion) as OpenJourney['conversion'],
  }
}

type EnrolmentRow = [number, number, number[]]

function enrolmentOf([id, count, times]: EnrolmentRow): [number, Counted] {
  return [id, { count, times }]
}

type EdgeRow = [number, Edge['edge'], string, number]

/** What a new definition or an import says is no edge: nothing happened to the customer. */
function edgeOf([segmentId, edge, cause, at]: EdgeRow): [number, Edge] {
  return [segmentId, { edge, at, isEvent: ['event', 'timer', 'merge'].includes(cause) }]
}
