import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { byDistinctId, type Customer, createProjection, createSegment } from '../../src/customers/index.ts'
import { createSegmentConsumer } from '../../src/customers/segments/lane.ts'
import { segmentParticipant } from '../../src/customers/segments/participant.ts'
import type { Transition } from '../../src/customers/segments/process.ts'
import { takeStep } from '../../src/customers/segments/steps.ts'
import type { Pool } from '../../src/db/pool.ts'
import { checkLogMeta, type EventPayload, ensurePartitions, runLanes } from '../../src/events/index.ts'
import { must } from '../../src/kernel/assert.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { testDatabase } from '../harness/database.ts'
import { testScope } from '../harness/lane.ts'

export interface Sent {
  distinctId: string
  event?: string
  at?: number
  properties?: EventPayload['properties']
  live?: boolean
  uuid?: string
  trust?: 'server'
  more?: Partial<EventPayload>
}

/** A lane with segments over real tables; steps are taken by hand, and time stands still. */
export async function segmentLane() {
  const stack = new AsyncDisposableStack()
  const database = stack.use(await testDatabase())
  const { pool, url } = database
  await ensurePartitions(pool)
  await checkLogMeta(pool)
  const tombstoneKey = Buffer.alloc(32, 7)
  const clock = { at: Date.now(), now: () => clock.at }
  const heard: (Transition & { scopeId: number })[] = []
  const hear = async (_tx: unknown, scope: Scope, _slice: unknown, transitions: Transition[]) => {
    heard.push(...transitions.map((transition) => ({ ...transition, scopeId: scope.scopeId })))
  }
  const log = pino({ level: 'warn' })
  const consumers = [createSegmentConsumer(clock, [hear], log)]
  const projection = createProjection({ tombstoneKey, participants: [segmentParticipant] })
  const stop = new AbortController()
  const running = runLanes({ url, projection, consumers, clock: { now: () => Date.now() }, log, signal: stop.signal })
  stack.defer(async () => {
    stop.abort()
    await running
  })
  const everything = stack.move()
  return {
    ...{ pool, url, clock, heard, tombstoneKey, log },
    scope: () => testScope(pool),
    send: (scope: Scope, events: Sent[]) => send(pool, scope, events, clock.at),
    /** Takes steps until nothing is left. */
    async settle(scope: Scope): Promise<void> {
      for (let steps = 0; steps < 1000; steps++) {
        if ((await takeStep({ pool, consumers: [hear], log }, scope, clock.at)) === null) return
      }
      throw new Error('steps do not end')
    },
    async define(scope: Scope, where: object, name = 'S'): Promise<string> {
      const { segment } = await pool.transaction((tx) =>
        createSegment(tx, scope, { name, definition: { version: 1, where }, keptDays: 400 }),
      )
      return segment.publicId
    },
    customer: async (scope: Scope, distinctId: string): Promise<Customer> =>
      must(await byDistinctId(pool, scope, distinctId), 'the customer is there'),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
}

/** Into the log as one transaction, and through the lane. */
async function send(pool: Pool, scope: Scope, events: Sent[], now: number): Promise<void> {
  const uuids = events.map(({ uuid }) => uuid ?? randomUUID())
  await pool.transaction(async (tx) => {
    for (const [
      i,
      { distinctId, event = 'e', at = now, properties = {}, live = true, trust, more = {} },
    ] of events.entries()) {
      const uuid = must(uuids[i], 'each has one')
      const payload: EventPayload = {
        ...{ event, distinct_id: distinctId, uuid, timestamp: new Date(at).toISOString(), properties },
        trust: trust ?? 'device',
        ...(trust === 'server' ? { fact: true } : {}),
        ...more,
      }
      await tx.query(
        `insert into event_log (lane, stream, uuid, distinct_id, received_at, payload) values ($1, $2, $3, $4, $5, $6)`,
        [scope.scopeId, live ? 0 : 1, uuid, distinctId, new Date(now).toISOString(), JSON.stringify(payload)],
      )
    }
  })
  await pool.query(`select pg_notify('turnpike_lane', $1)`, [String(scope.scopeId)])
  for (;;) {
    const [row] = await pool.query<{ n: bigint }>(
      'select count(*) as n from event_seen where scope_id = $1 and uuid = any ($2)',
      [scope.scopeId, uuids],
    )
    if (Number(row?.n) === new Set(uuids).size) return
    const [dead] = await pool.query<{ error: string }>('select error from dead_event where scope_id = $1', [
      scope.scopeId,
    ])
    if (dead) throw new Error(dead.error)
    await sleep(5)
  }
}
