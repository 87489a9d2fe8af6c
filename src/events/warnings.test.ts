import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { testScope } from '../../test/harness/lane.ts'
import { loggedEvent } from '../../test/harness/logged-event.ts'
import fc from '../../test/harness/random.ts'
import { createTally, runTally } from '../../test/harness/tally.ts'
import { systemClock } from '../kernel/clock.ts'
import { warningSamplesMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { createLog } from './append.ts'
import { countWarnings, type Noted } from './count-warnings.ts'
import { checkLogMeta } from './log-meta.ts'
import { normalise } from './normalise.ts'
import { ensurePartitions } from './partitions.ts'
import type { NewEvent } from './types.ts'
import { insertWarnings, listWarnings } from './warning-store.ts'

const database = await testDatabase()
const { pool, url } = database
await ensurePartitions(pool)
await checkLogMeta(pool)
await createTally(pool)
const log = createLog({ url, tombstoneKey: Buffer.from('key'), clock: systemClock })
after(async () => {
  await log[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

let scope: Scope
beforeEach(async () => {
  scope = await testScope(pool)
})

const noon = Date.parse('2026-11-20T12:00:00Z')
const hour = 3600_000

function noted(code: string, receivedAt = noon, detail?: string): Noted {
  const event = { ...loggedEvent('u1'), uuid: randomUUID(), receivedAt }
  return { event, warning: detail === undefined ? { code } : { code, detail } }
}
const note = (all: Noted[]) => pool.transaction((tx) => Promise.all(insertWarnings(tx, scope, all)))
const list = (query: { code?: string; start?: number; end?: number } = {}) =>
  listWarnings(pool, scope, {
    code: query.code ?? null,
    start: query.start === undefined ? null : new Date(query.start),
    end: query.end === undefined ? null : new Date(query.end),
  })

test('warnings are counted by code and hour of receipt', async () => {
  await note([noted('a', noon), noted('a', noon + 5), noted('b', noon), noted('a', noon + hour)])
  await note([noted('a', noon - 5), noted('a', noon + 1)])
  const counts = async (query = {}) =>
    (await list(query)).map(({ code, count, firstSeen, lastSeen }) => [
      code,
      count,
      +firstSeen - noon,
      +lastSeen - noon,
    ])
  assert.deepEqual(await counts(), [
    ['a', 5, -5, hour],
    ['b', 1, 0, 0],
  ])
  assert.deepEqual(await counts({ code: 'b' }), [['b', 1, 0, 0]])
  assert.deepEqual(await counts({ start: noon, end: noon + 1 }), [
    ['a', 3, 0, 5],
    ['b', 1, 0, 0],
  ])
  assert.deepEqual(await counts({ start: noon + 59 * 60_000, end: noon + hour }), [
    ['a', 3, 0, 5],
    ['b', 1, 0, 0],
  ])
  assert.deepEqual(await counts({ start: noon + hour }), [['a', 1, hour, hour]])
  assert.deepEqual(await counts({ end: noon }), [['a', 1, -5, -5]])
})

test('the newest hundred samples of a code are kept, newest first, however they arrive', async () => {
  const all = Array.from({ length: 350 }, (_, n) => noted('a', noon + n, `n${n}`))
  for (const [from, to] of [
    [0, 1],
    [1, 100],
    [100, 250],
    [250, 253],
    [253, 350],
  ] as const)
    await note([...all.slice(from, to), noted('other')])
  const [a, other] = await list()
  assert.equal(a?.count, 350)
  assert.deepEqual(
    a?.samples.map(({ detail }) => detail),
    Array.from({ length: warningSamplesMax }, (_, n) => `n${349 - n}`),
  )
  assert.equal(other?.samples.length, 5)
  const [early] = await list({ code: 'a', end: noon + 260 })
  assert.equal(early?.samples.length, 10)
})

test('a flood of warnings is a few rows', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 0, max: 5 * hour }))), (all) => {
      const counted = countWarnings(all.map(([code, at]) => noted(code, noon + at)))
      assert.equal(
        counted.hours.reduce((sum, { count }) => sum + count, 0),
        all.length,
      )
      assert.ok(counted.hours.length <= 3 * 6)
      assert.ok(counted.samples.length <= 3 * warningSamplesMax)
      for (const { code, samples } of counted.codes) {
        const backs = counted.samples.flatMap((sample) => (sample.code === code ? [sample.back] : []))
        assert.deepEqual(
          backs,
          Array.from({ length: samples }, (_, n) => samples - 1 - n),
        )
      }
    }),
    { numRuns: 50 },
  )
})

test('the lane counts what was odd on receipt and when it was applied, once for each event', async () => {
  const event = (fields: Record<string, unknown>): NewEvent => {
    const judged = normalise(
      { event: 'e', distinct_id: 'u1', uuid: randomUUID(), ...fields },
      { receivedAt: noon, trust: 'device' },
    )
    assert.equal(judged.kind, 'event')
    return judged.event
  }
  const uuid = randomUUID()
  const odd = event({ uuid, properties: { a: '\0' }, timestamp: '2030-01-01' })
  const events = [
    odd,
    odd,
    event({ uuid, value: 7 }),
    event({ event: '$unknown' }),
    event({ distinct_id: 'gone', event: '$unknown' }),
  ]
  await log.appendBatch({ scopeId: scope.scopeId, appId: null }, events, { stream: 'live' })
  await using lanes = runTally(url)
  await lanes.taken(5)
  const found = await list()
  assert.deepEqual(
    found.map(({ code, count, samples }) => [
      code,
      count,
      samples.map((sample) => [sample.uuid, sample.event, sample.detail]),
    ]),
    [
      ['duplicate_body_differs', 1, [[uuid, 'e', null]]],
      ['text_replaced', 1, [[uuid, 'e', null]]],
      ['timestamp_clamped', 1, [[uuid, 'e', '2030-01-01']]],
      ['unrecognised_system_event', 1, [[events[3]?.uuid, '$unknown', null]]],
    ],
  )
})
