import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { storeInboxTriesMax } from '../../src/kernel/limits.ts'
import { insertInbox, selectInboxFigures } from '../../src/purchases/notifications/inbox-store.ts'
import { type Processed, processDue } from '../../src/purchases/notifications/process.ts'
import { type OutboxRow, selectOutboxFigures } from '../../src/purchases/outbox/outbox-store.ts'
import { type Told, tellDue } from '../../src/purchases/outbox/pump.ts'
import { createQuota } from '../../src/purchases/quota.ts'
import { testDatabase } from '../harness/database.ts'
import { silent } from '../harness/server.ts'

const database = await testDatabase()
after(() => database[Symbol.asyncDispose]())
const { pool } = database

let keys = 0
async function owe(): Promise<string> {
  const key = `key-${++keys}`
  await pool.query(
    `insert into store_outbox (scope_id, app_id, store, store_environment, kind, key, payload, due_at_ms, created_at_ms)
     values (1, 'app_1', 'playstore', 'sandbox', 'ack', $1, '{}', 0, 0)`,
    [key],
  )
  return key
}
const statusOf = async (key: string) =>
  (await pool.query<{ status: string }>('select status from store_outbox where key = $1', [key]))[0]?.status
const dueNow = () => pool.query('update store_outbox set due_at_ms = 0 where due_at_ms is not null')
const tell = (answer: (row: OutboxRow) => Promise<Told>) => tellDue({ sql: pool, tell: answer, log: silent })

test('many processes tell each thing once, and what a dead one had taken is told by another', async () => {
  const owed = await Promise.all(Array.from({ length: 40 }, owe))
  const told: string[] = []
  const once = async ({ key }: OutboxRow): Promise<Told> => {
    told.push(key)
    return { kind: 'done' }
  }
  await Promise.all(Array.from({ length: 6 }, () => tell(once)))
  while ((await tell(once)) > 0);
  assert.deepEqual(told.toSorted(), owed.toSorted())

  const key = await owe()
  const died = new Promise<Told>(() => {})
  void tell(() => died)
  while ((await pool.query('select id from store_outbox where key = $1 and attempts = 1', [key])).length === 0);
  assert.equal(await tell(once), 0)
  await dueNow()
  assert.equal(await tell(once), 1)
  assert.equal(await statusOf(key), 'done')
})

test('what a store does not take now waits longer each time; what it never takes stays to be seen', async () => {
  const key = await owe()
  const waits: number[] = []
  for (let n = 0; n < 4; n++) {
    await tell(async () => ({ kind: 'again', error: 'silent' }))
    const [row] = await pool.query<{ wait: number }>(
      `select (due_at_ms - extract(epoch from clock_timestamp()) * 1000)::float8 as wait from store_outbox where key = $1`,
      [key],
    )
    waits.push(Math.round((row?.wait ?? 0) / 1000))
    await dueNow()
  }
  assert.deepEqual(waits, [1, 2, 4, 8])
  assert.deepEqual((await selectOutboxFigures(pool, { tester: 60_000, buyer: 86_400_000 })).late, 1)
  await tell(async () => ({ kind: 'given_up', error: 'purchase: expired' }))
  assert.equal(await statusOf(key), 'dead')
  assert.deepEqual(await selectOutboxFigures(pool, { tester: 60_000, buyer: 86_400_000 }), {
    waiting: 0,
    dead: 1,
    late: 0,
  })
})

test('a notification that nobody can process is kept as a dead one, and holds up no other', async () => {
  const row = { scopeId: 1, appId: 'app_1', store: 'playstore', trust: 'test', kind: 'k', payload: {} } as const
  await insertInbox(pool, { ...row, notificationId: 'poison' })
  await insertInbox(pool, { ...row, notificationId: 'good' })
  await insertInbox(pool, { ...row, notificationId: 'good' })
  let tries = 0
  const process = async ({ notification_id: id }: { notification_id: string }): Promise<Processed> => {
    if (id === 'good') return { kind: 'done' }
    tries++
    throw new Error('poison')
  }
  for (let n = 0; n < storeInboxTriesMax + 2; n++) {
    await processDue({ sql: pool, process, log: silent })
    await pool.query('update store_inbox set due_at_ms = 0 where due_at_ms is not null')
  }
  assert.equal(tries, storeInboxTriesMax)
  const rows = await pool.query('select notification_id, status from store_inbox order by notification_id')
  assert.deepEqual(rows, [
    { notification_id: 'good', status: 'done' },
    { notification_id: 'poison', status: 'dead' },
  ])
  assert.deepEqual(await selectInboxFigures(pool), { waiting: 0, dead: 1, oldestSeconds: 0 })
})

test('all processes share a bucket of calls, and background work leaves half of it to clients', async () => {
  const allowed = { name: 'play somebody', perMinute: 60 }
  const take = async (priority: 'client' | 'background', quotas = [createQuota(pool), createQuota(pool)]) => {
    let taken = 0
    for (let n = 0; n < 100; n++) if (await quotas[n % 2]?.take(allowed, priority)) taken++
    return taken
  }
  const background = await take('background')
  assert.ok(background >= 30 && background <= 33, `${background}`)
  const client = await take('client')
  assert.ok(client >= 30 && client <= 33, `${client}`)
})
