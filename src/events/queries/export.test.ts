import assert from 'node:assert/strict'
import { hash, randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { testDatabase } from '../../../test/harness/database.ts'
import { testScope } from '../../../test/harness/lane.ts'
import { silent } from '../../../test/harness/server.ts'
import { storeCustomers, storeEvents } from '../../../test/harness/stored-events.ts'
import { somebodyWaits } from '../../../test/harness/waits.ts'
import { must } from '../../kernel/assert.ts'
import { systemClock } from '../../kernel/clock.ts'
import { exportTriesMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { ensurePartitions } from '../partitions.ts'
import { createExport, getExport, getExportFile, writeNext } from './export.ts'
import { claimExport, saveFile } from './export-store.ts'
import { eraseEventAnswers } from './forget.ts'
import { answerLater, getLater, newQueryId } from './later.ts'
import { finishQuery } from './later-store.ts'
import type { StoredEvent } from './list-store.ts'

const database = await testDatabase()
const { pool } = database
await ensurePartitions(pool)
after(() => database[Symbol.asyncDispose]())

const log = silent
const show = ({ position, customerId, event }: StoredEvent) => ({ position: Number(position), customerId, event })
const options = { pool, clock: systemClock, log, show }
const write = () => writeNext(options, 'me', new AbortController().signal)
const [survivor, gone] = [randomUUID(), randomUUID()]
const start = Date.parse('2026-03-01T00:00:00Z')

async function world(count: number): Promise<Scope> {
  await pool.query('delete from event_export')
  const scope = await testScope(pool)
  await storeCustomers(pool, scope, [
    { id: survivor, properties: {}, mergedInto: null },
    { id: gone, properties: {}, mergedInto: survivor },
  ])
  await storeEvents(
    pool,
    scope,
    Array.from({ length: count }, (_, i) => ({
      ...{ position: i + 1, at: start + i * 1000, event: i % 3 === 0 ? 'a' : 'b', appId: null, value: null },
      ...{ properties: { i, text: 'x'.repeat(50) }, record: i % 2 === 0 ? gone : survivor },
    })),
  )
  return scope
}

const ask = (scope: Scope, request: object = {}) =>
  pool.transaction((tx) =>
    createExport(tx, scope, { start: null, end: null, events: null, fromPosition: 0n, ...request }),
  )

async function linesOf(scope: Scope, id: string): Promise<{ position: number; customerId: string; event: string }[]> {
  const { files, status, error } = must(await getExport(pool, [scope], id), 'it is there')
  assert.equal(status, 'completed', error ?? '')
  const lines = []
  for (const { n, rows, bytes, sha256 } of files) {
    const file = must(await getExportFile(pool, [scope], { id, n }), 'a file')
    assert.deepEqual([file.length, hash('sha256', file)], [bytes, sha256])
    const own = gunzipSync(file).toString().trim().split('\n')
    assert.equal(own.length, rows)
    lines.push(...own.map((line) => JSON.parse(line)))
  }
  return lines
}

const upTo = (n: number, from = 1) => Array.from({ length: n - from + 1 }, (_, i) => from + i)

test('an export holds each event once, in order, with the customer it belongs to now, as of when it was asked for', async () => {
  const scope = await world(1700)
  const id = await ask(scope)
  await storeEvents(pool, scope, [
    { position: 1701, at: start, event: 'late', appId: null, value: null, properties: {}, record: survivor },
  ])
  assert.equal(await write(), true)
  const lines = await linesOf(scope, id)
  assert.deepEqual(
    lines.map(({ position }) => position),
    upTo(1700),
  )
  assert.ok(lines.every(({ customerId }) => customerId === survivor))
  assert.equal(await write(), false)
  const { toPosition } = must(await getExport(pool, [scope], id), 'it is there')
  const next = await ask(scope, { fromPosition: toPosition })
  await write()
  assert.deepEqual(
    (await linesOf(scope, next)).map(({ event }) => event),
    ['late'],
  )
  assert.equal(await getExport(pool, [await testScope(pool)], id), undefined)
})

test('an export can be of a time range and of some names', async () => {
  const scope = await world(30)
  const id = await ask(scope, { start: start + 3000, end: start + 9000, events: ['a'] })
  const none = await ask(scope, { events: ['none'] })
  await write()
  await write()
  assert.deepEqual(
    (await linesOf(scope, id)).map(({ position }) => position),
    [4, 7],
  )
  assert.deepEqual(await linesOf(scope, none), [])
})

test('one that was cut off at any file goes on behind it, and a writer that lost it changes nothing', async () => {
  const scope = await world(20)
  const id = await ask(scope)
  const dead = must(await claimExport(pool, 'dead'), 'it waits')
  const file = { rows: 0, bytes: Buffer.from('x'), sha256: Buffer.alloc(32) }
  assert.equal(await claimExport(pool, 'other'), undefined)
  await pool.query(`update event_export set lease_until = '-infinity'`)
  assert.equal(await write(), true)
  assert.equal(await pool.transaction((tx) => saveFile(tx, dead, { position: 5n, file })), false)
  assert.deepEqual(
    (await linesOf(scope, id)).map(({ position }) => position),
    upTo(20),
  )

  const second = await ask(scope)
  const killed = must(await claimExport(pool, 'killed'), 'it waits')
  await pool.transaction((tx) => saveFile(tx, killed, { position: 12n, file: null }))
  await pool.query(`update event_export set lease_until = '-infinity'`)
  await write()
  assert.deepEqual(
    (await linesOf(scope, second)).map(({ position }) => position),
    upTo(20, 13),
  )
})

test('one that fails again and again is given up, and says so', async () => {
  const scope = await world(1)
  const id = await ask(scope)
  const broken = {
    ...options,
    show: () => {
      throw new Error('no')
    },
  }
  for (let i = 0; i < exportTriesMax; i++) {
    await assert.rejects(writeNext(broken, 'me', new AbortController().signal), /no/)
    await pool.query(`update event_export set lease_until = '-infinity'`)
  }
  assert.equal(await write(), false)
  assert.equal((await getExport(pool, [scope], id))?.status, 'failed')
})

test('when a customer is deleted, finished files go and unfinished exports begin again', async () => {
  const scope = await world(10)
  const finished = await ask(scope)
  await write()
  const open = await ask(scope)
  const held = must(await claimExport(pool, 'slow'), 'it waits')
  await pool.transaction((tx) => eraseEventAnswers(tx, scope))
  assert.equal(await getExportFile(pool, [scope], { id: finished, n: 1 }), undefined)
  assert.equal((await getExport(pool, [scope], finished))?.status, 'failed')
  assert.equal(await pool.transaction((tx) => saveFile(tx, held, { position: 10n, file: null })), false)
  await write()
  assert.equal((await linesOf(scope, open)).length, 10)
})

test('a file that is saved while a customer is deleted goes too, and nothing is exported twice', async () => {
  const scope = await world(10)
  const id = await ask(scope)
  const held = must(await claimExport(pool, 'slow'), 'it waits')
  const file = { rows: 4, bytes: Buffer.from('of the deleted'), sha256: Buffer.alloc(32) }
  let erased: Promise<unknown> | undefined
  await pool.transaction(async (tx) => {
    assert.ok(await saveFile(tx, held, { position: 4n, file }))
    erased = pool.transaction((other) => eraseEventAnswers(other, scope))
    await somebodyWaits(pool)
  })
  await erased
  await write()
  assert.deepEqual(
    (await linesOf(scope, id)).map(({ position }) => position),
    upTo(10),
  )
})

test('a question that was under way when a customer was deleted keeps no answer', async () => {
  const scope = await testScope(pool)
  const stateOf = async (id: string) => {
    const { status, result } = must(await getLater(pool, [scope], id), 'it was asked')
    return [status, result]
  }
  const ended = Promise.withResolvers<object>()
  const id = newQueryId()
  await answerLater({ pool, log }, scope, id, () => ended.promise)
  assert.deepEqual(await stateOf(id), ['running', null])
  await pool.transaction((tx) => eraseEventAnswers(tx, scope))
  await finishQuery(pool, { id, status: 'completed', result: '{"of":"the deleted"}', error: null })
  assert.deepEqual(await stateOf(id), ['failed', null])

  // It ends in a transaction that the deletion waits for.
  const late = newQueryId()
  await answerLater({ pool, log }, scope, late, () => ended.promise)
  let erased: Promise<unknown> | undefined
  await pool.transaction(async (tx) => {
    await finishQuery(tx, { id: late, status: 'completed', result: '{"of":"the deleted"}', error: null })
    erased = pool.transaction((other) => eraseEventAnswers(other, scope))
    await somebodyWaits(pool)
  })
  await erased
  assert.equal(await getLater(pool, [scope], late), undefined)
})
