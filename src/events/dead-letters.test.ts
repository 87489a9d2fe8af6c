import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, beforeEach, describe, test } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { testScope } from '../../test/harness/lane.ts'
import { silent } from '../../test/harness/server.ts'
import { createTally, effects, hear, runTally, tallied, tally } from '../../test/harness/tally.ts'
import { must } from '../kernel/assert.ts'
import { systemClock } from '../kernel/clock.ts'
import { deadInRowMax, deadTriesMax, laneStoppedMs } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { createLog } from './append.ts'
import { listDeadEvents } from './dead-event-store.ts'
import { stoppedLanes } from './gauges-store.ts'
import { checkLogMeta } from './log-meta.ts'
import { normalise } from './normalise.ts'
import { ensurePartitions } from './partitions.ts'
import { replayDeadEvent } from './replay.ts'
import { type Consumer, type LoggedEvent, type NewEvent, SliceTooLarge } from './types.ts'
import { listWarnings } from './warning-store.ts'

const database = await testDatabase()
const { pool, url } = database
await ensurePartitions(pool)
await checkLogMeta(pool)
await createTally(pool)
const tombstoneKey = Buffer.from('key')
const log = createLog({ url, tombstoneKey, clock: systemClock })
after(async () => {
  await log[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

let scope: Scope
beforeEach(async () => {
  scope = await testScope(pool)
})

function event(fields: Record<string, unknown> = {}): NewEvent {
  const judged = normalise(
    { event: 'e', distinct_id: 'u1', uuid: randomUUID(), value: 1, ...fields },
    { receivedAt: Date.parse('2026-11-20T12:00:00Z'), trust: 'device' },
  )
  assert.equal(judged.kind, 'event')
  return judged.event
}

const live = async (events: NewEvent[]) => {
  for (let n = 0; n < events.length; n += 1000)
    await log.appendBatch({ scopeId: scope.scopeId, appId: 'app_1' }, events.slice(n, n + 1000), { stream: 'live' })
}
/** Rows taken of this test's lane: what others left stopped goes on with every worker that starts. */
const taken = (lanes: ReturnType<typeof runTally>, rows: number) =>
  lanes.until(
    (slices) => slices.reduce((sum, { scopeId, read }) => sum + (scopeId === scope.scopeId ? read : 0), 0) >= rows,
  )
const dead = (to = scope) => listDeadEvents(pool, to, { limit: 100, after: null })

const isPoison = ({ distinctId }: { distinctId: string }) => distinctId.startsWith('poison')
const poisonous: typeof tally = {
  ...tally,
  decide(to, state, events) {
    if (events.some(isPoison)) throw new TypeError('cannot read it')
    return tally.decide(to, state, events)
  },
}

describe('an event that cannot be applied', () => {
  test('is set aside alone, and every other event of its slice is applied once, in order', async () => {
    const events = Array.from({ length: 2000 }, (_, n) =>
      event({ distinct_id: n === 1234 ? 'poison' : `u${n % 3}`, value: n }),
    )
    await live(events)
    await using lanes = runTally(url, { projection: poisonous })
    await taken(lanes, 2000)
    const applied = await effects(pool, scope)
    assert.deepEqual(
      applied.map(({ value }) => value),
      events.flatMap((_, n) => (n === 1234 ? [] : [n])),
    )
    const [only, ...others] = await dead()
    assert.equal(others.length, 0)
    const { uuid, distinctId, appId, stream, text, error, errorCode, replayedAt } = must(only, 'it is listed')
    const sent = must(events[1234], 'it was sent')
    assert.deepEqual(
      { uuid, distinctId, appId, stream, text, error, errorCode, replayedAt },
      {
        ...{ uuid: sent.uuid, distinctId: 'poison', appId: 'app_1', stream: 'live', text: sent.text },
        ...{ error: 'cannot read it', errorCode: null, replayedAt: null },
      },
    )
  })

  test('is tried three times alone', async () => {
    let alone = 0
    const projection: typeof tally = {
      ...tally,
      load(sql, to, events) {
        if (!events.some(isPoison)) return tally.load(sql, to, events)
        if (events.length === 1) alone++
        return Promise.reject(new Error('no'))
      },
    }
    await live([event(), event({ distinct_id: 'poison' }), event()])
    await using lanes = runTally(url, { projection })
    await taken(lanes, 3)
    assert.equal(alone, deadTriesMax)
    assert.equal((await dead()).length, 1)
  })

  test('is applied when it succeeds before its third failure', async () => {
    let failures = 0
    const projection: typeof tally = {
      ...tally,
      decide(to, state, events) {
        if (events.some(isPoison) && failures++ < 3) throw new Error('not yet')
        return tally.decide(to, state, events)
      },
    }
    await live([event(), event({ distinct_id: 'poison' })])
    await using lanes = runTally(url, { projection })
    await taken(lanes, 2)
    assert.deepEqual(await dead(), [])
    assert.equal((await effects(pool, scope)).length, 2)
  })

  test('may be one that a consumer or the database refuses, or a row that is no event', async () => {
    const consumer: Consumer = async (tx, to, slice) => {
      await hear(tx, to, slice)
      if (slice.some(isPoison)) throw new Error('not to my taste')
    }
    const projection: typeof tally = {
      ...tally,
      async write(tx, to, decision, positions) {
        if (decision.written.some(({ distinct_id }) => distinct_id === 'toobig')) await tx.query(`select 1 / 0`)
        await tally.write(tx, to, decision, positions)
      },
    }
    await live([event(), event({ distinct_id: 'poison' }), event()])
    await pool.query(
      `insert into event_log (lane, stream, uuid, distinct_id, received_at, payload) values ($1, 0, $2, 'odd', now(), '{')`,
      [scope.scopeId, randomUUID()],
    )
    await live([event({ distinct_id: 'toobig' }), event()])
    await using lanes = runTally(url, { projection, consumers: [consumer] })
    await taken(lanes, 6)
    assert.deepEqual(
      (await dead()).map(({ distinctId, errorCode }) => [distinctId, errorCode]),
      [
        ['toobig', '22012'],
        ['odd', null],
        ['poison', null],
      ],
    )
    assert.equal((await effects(pool, scope)).length, 3)
    const warnings = await listWarnings(pool, scope, { code: null, start: null, end: null })
    assert.deepEqual(
      warnings.map(({ code, count }) => [code, count]),
      [['event_dead_lettered', 3]],
    )
    assert.deepEqual(
      warnings[0]?.samples.map((sample) => [sample.event, sample.distinctId]),
      [
        ['e', 'toobig'],
        ['unknown', 'odd'],
        ['e', 'poison'],
      ],
    )
  })

  test('of an import is set aside as well', async () => {
    await log.appendBatch({ scopeId: scope.scopeId, appId: null }, [event({ distinct_id: 'poison' }), event()], {
      stream: 'historical',
    })
    await using lanes = runTally(url, { projection: poisonous })
    await taken(lanes, 2)
    assert.deepEqual(
      (await dead()).map(({ stream }) => stream),
      ['historical'],
    )
    assert.equal((await effects(pool, scope)).length, 1)
  })

  test('is not set aside by a worker that lost its lane meanwhile', async () => {
    let stolen = false
    const projection: typeof tally = {
      ...tally,
      async load(sql, to, events) {
        if (stolen) return tally.load(sql, to, events)
        await pool.query(
          `update lane set owner = 'other', fence = fence + 1, lease_until = now() + interval '300 ms' where id = $1`,
          [to.scopeId],
        )
        alone++
        stolen = alone === deadTriesMax
        throw new Error('no')
      },
    }
    let alone = 0
    await live([event()])
    await using lanes = runTally(url, { projection })
    await taken(lanes, 1)
    assert.deepEqual(await dead(), [])
    assert.equal((await effects(pool, scope)).length, 1)
  })
})

describe('a lane whose events keep failing', () => {
  test('stops after 20 in a row, says so, and holds up no other lane', async () => {
    const other = await testScope(pool)
    const told: object[] = []
    await live(Array.from({ length: 30 }, () => event({ distinct_id: 'poison' })))
    await using lanes = runTally(url, {
      projection: poisonous,
      log: { ...silent, error: (fields) => told.push(fields) },
    })
    await taken(lanes, deadInRowMax)
    await log.append({ scopeId: other.scopeId, appId: null }, event())
    await lanes.until((slices) => slices.some(({ scopeId }) => scopeId === other.scopeId))
    assert.deepEqual(await tallied(pool, other), { u1: [1, 1] })
    assert.equal((await dead()).length, deadInRowMax)
    assert.deepEqual(await stopped(), ['20 events in a row could not be applied'])
    assert.deepEqual(told.at(-1), {
      ...{ scopeId: scope.scopeId, why: '20 events in a row could not be applied', ms: laneStoppedMs },
    })
  })

  test('is tried again by the next worker: one more failure stops it, a success lets it go on', async () => {
    await live(Array.from({ length: deadInRowMax + 1 }, () => event({ distinct_id: 'poison' })))
    await live([event()])
    {
      await using lanes = runTally(url, { projection: poisonous })
      await taken(lanes, deadInRowMax)
    }
    {
      await using lanes = runTally(url, { projection: poisonous })
      await taken(lanes, 1)
      assert.equal((await stopped()).length, 1)
    }
    await using lanes = runTally(url, { projection: poisonous })
    await taken(lanes, 1)
    assert.deepEqual(await stopped(), [])
    assert.deepEqual(await tallied(pool, scope), { u1: [1, 1] })
    assert.equal((await dead()).length, deadInRowMax + 1)
  })

  test('is tried again when its time has passed', async () => {
    await live([event()])
    await using lanes = runTally(url)
    await lanes.until(() => true)
    await pool.query(`update lane set stopped_until = now() + interval '200 ms' where id = $1`, [scope.scopeId])
    await live([event()])
    await taken(lanes, 2)
    assert.deepEqual(await tallied(pool, scope), { u1: [2, 2] })
  })

  async function stopped(): Promise<string[]> {
    return (await stoppedLanes(pool)).flatMap(({ scopeId, why }) => (scopeId === scope.scopeId ? [why] : []))
  }
})

describe('a dead event is replayed', () => {
  /** Sets one event aside and gives it. */
  async function killed(fields: Record<string, unknown> = {}) {
    const [sent, later] = [event({ distinct_id: 'poison', ...fields }), event({ value: 10 })]
    await live([sent, later])
    await using lanes = runTally(url, { projection: poisonous })
    await taken(lanes, 2)
    return { sent, row: must((await dead())[0], 'it is dead') }
  }
  const replay = (id: bigint, scopes = [scope]) =>
    pool.transaction((tx) => replayDeadEvent(tx, scopes, { id, tombstoneKey }))

  test('under its uuid, at the end of the order, once', async () => {
    const { sent, row } = await killed({ value: 5 })
    const [first, second] = await Promise.all([replay(row.id), replay(row.id)])
    assert.notEqual(first.again, second.again)
    assert.equal(first.event.replayedAt?.getTime(), second.event.replayedAt?.getTime())
    await using lanes = runTally(url)
    await taken(lanes, 1)
    assert.deepEqual(
      (await effects(pool, scope)).map(({ uuid, pos, value }) => [uuid === sent.uuid, pos, value]),
      [
        [false, 1n, 10],
        [true, 2n, 5],
      ],
    )
    assert.deepEqual(await tallied(pool, scope), { u1: [1, 10], poison: [1, 5] })
  })

  test('and is a duplicate when a retry of it was applied meanwhile', async () => {
    const { sent, row } = await killed()
    await live([sent])
    await using lanes = runTally(url)
    await taken(lanes, 1)
    await replay(row.id)
    await taken(lanes, 2)
    assert.deepEqual(await tallied(pool, scope), { u1: [1, 10], poison: [1, 1] })
    assert.equal(
      lanes.slices.reduce((sum, { duplicates }) => sum + duplicates, 0),
      1,
    )
  })

  test('and is dead anew when it fails again', async () => {
    const { row } = await killed()
    await replay(row.id)
    await using lanes = runTally(url, { projection: poisonous })
    await taken(lanes, 1)
    const all = await dead()
    assert.deepEqual(
      all.map(({ uuid, replayedAt }) => [uuid, replayedAt === null]),
      [
        [row.uuid, true],
        [row.uuid, false],
      ],
    )
  })

  test('but not for a customer that was deleted, nor from another scope', async () => {
    const { row } = await killed()
    await assert.rejects(replay(row.id, [await testScope(pool)]), { code: 'not_found' })
    await pool.query(
      `insert into customer_tombstone (scope_id, id_hash) values ($1, sha256($2::bytea || convert_to('poison', 'UTF8')))`,
      [scope.scopeId, tombstoneKey],
    )
    await assert.rejects(replay(row.id), { code: 'customer_deleted' })
    const [rows] = await pool.query<{ n: bigint }>('select count(*) as n from event_log where lane = $1', [
      scope.scopeId,
    ])
    assert.equal(rows?.n, 2n)
  })
})

test('a slice takes no more events than their state fits in memory', async () => {
  const sizes: number[] = []
  const projection: typeof tally = {
    ...tally,
    async load(sql, to, events: LoggedEvent[]) {
      if (events.length > 7) throw new SliceTooLarge(7)
      sizes.push(events.length)
      return tally.load(sql, to, events)
    },
  }
  const twice = event({ distinct_id: 'twice', value: 100 })
  await live([twice, twice, ...Array.from({ length: 40 }, (_, n) => event({ value: n })), twice])
  await using lanes = runTally(url, { projection })
  await taken(lanes, 43)
  assert.deepEqual(sizes, [7, 7, 7, 7, 7, 6])
  assert.deepEqual(await tallied(pool, scope), { twice: [1, 100], u1: [40, (39 * 40) / 2] })
})
