import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import test from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { testDatabase } from '../../test/harness/database.ts'
import { givesWay } from '../../test/harness/gives-way.ts'
import { isConnectionLoss, isRetryable, Pool } from './pool.ts'

test('a transaction that throws leaves nothing behind', async () => {
  await using database = await testDatabase()
  await database.pool.query('create table t (n int)')
  const work = database.pool.transaction(async (tx) => {
    await tx.query('insert into t (n) values (1)')
    throw new Error('stop')
  })
  await assert.rejects(work, /stop/)
  assert.deepEqual(await database.pool.query('select n from t'), [])
})

test('a transaction tells what went wrong first, also when its connection is lost before it can roll back', async () => {
  await using database = await testDatabase()
  await using pool = new Pool(database.url, { name: 'test', max: 1 })
  const work = pool.transaction(async (tx) => {
    const [own] = await tx.query<{ id: number }>('select pg_backend_pid() as id')
    await database.pool.query('select pg_terminate_backend($1, 5000)', [own?.id])
    throw new Error('stop')
  })
  await assert.rejects(work, /stop/)
  assert.deepEqual(await pool.query('select 3 as n'), [{ n: 3 }])
})

test('a transaction that stood still too long is lost with its connection, and worth another try', async () => {
  await using database = await testDatabase()
  await using pool = new Pool(database.url, {
    ...{ name: 'test', max: 1 },
    settings: { idle_in_transaction_session_timeout: '20ms' },
  })
  const work = pool.transaction(async (tx) => {
    await tx.query('select 1')
    while (
      (await database.pool.query(`select 1 from pg_stat_activity where state = 'idle in transaction'`)).length > 0
    );
    await tx.query('select 2')
  })
  await assert.rejects(work, (error) => isConnectionLoss(error) && isRetryable(error))
  assert.deepEqual(await pool.query('select 3 as n'), [{ n: 3 }])
})

test('server processes of a pool that gives way have the lowest priority, and no others', async () => {
  await using database = await testDatabase()
  await using giving = new Pool(database.url, { name: 'test', max: 2, givesWay: true })
  const processIds = async (pool: Pool) => {
    const one = () => pool.query<{ id: number }>('select pg_backend_pid() as id, pg_sleep(0.01)')
    return (await Promise.all([one(), one()])).flatMap((rows) => rows.map(({ id }) => id))
  }
  for (const id of await processIds(giving)) while (!givesWay(id)) await nextTurn()
  for (const id of await processIds(database.pool)) assert.ok(!givesWay(id))
})

test('a connection that the server ends in the breath in which it was made fails its user only, not the process', async () => {
  // Welcome and farewell in one packet, as a server sends them that is asked to stop.
  const words = [
    message('R', '\0\0\0\0'),
    message('Z', 'I'),
    message('E', 'SFATAL\0C57P01\0Mterminating connection\0\0'),
  ]
  await using server = createServer((socket) => socket.once('data', () => socket.end(Buffer.concat(words))))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // a TCP address after listen
  await using pool = new Pool(`postgresql://nobody@127.0.0.1:${port}/none`, { name: 'test', max: 2 })
  for (const work of [
    pool.query('select 1'),
    pool.connected((client) => client.query('select 1')),
    pool.transaction((tx) => tx.query('select 1')),
  ]) {
    await assert.rejects(work, isConnectionLoss)
  }
})

function message(type: string, body: string): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(4 + body.length)
  return Buffer.concat([Buffer.from(type), length, Buffer.from(body, 'latin1')])
}
