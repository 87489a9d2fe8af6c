import { after } from 'node:test'
import { Pool } from '../../src/db/pool.ts'
import { randomText } from '../../src/kernel/ids.ts'
import { startTestServer, templateDatabase, withDatabase } from './server.ts'

export interface TestDatabase extends AsyncDisposable {
  url: string
  pool: Pool
}

/**
 * A migrated, empty database of the caller's own: `await using database = await testDatabase()` in a test, or once per file
 * with `after(() => database[Symbol.asyncDispose]())`. Cheap (a copy of a template). Its pool is `database.pool`.
 */
export async function testDatabase(): Promise<TestDatabase> {
  const server = await serverUrl()
  const name = `test_${randomText(12)}`
  await onServer(server, `create database ${name} template ${templateDatabase}`)
  const url = withDatabase(server, name)
  const pool = new Pool(url, { name: 'test', max: 10 })
  return {
    url,
    pool,
    async [Symbol.asyncDispose]() {
      await pool[Symbol.asyncDispose]()
      // A file's own server may have stopped by then, and took it along.
      if (!stopped) await onServer(server, `drop database ${name} with (force)`)
    },
  }
}

let own: ReturnType<typeof startTestServer> | undefined
let stopped = false

/** The server that `npm test` started; a file run on its own starts one that ends with it. */
async function serverUrl(): Promise<string> {
  const given = process.env.TEST_SERVER_URL
  if (given !== undefined) return given
  if (own === undefined) {
    own = startTestServer()
    for (const signal of ['SIGINT', 'SIGTERM'])
      process.once(signal, () => void stopOwn().finally(() => process.exit(130)))
  }
  return (await own).url
}

async function stopOwn(): Promise<void> {
  stopped = own !== undefined
  await (await own)?.[Symbol.asyncDispose]()
}

// At the top, so that it runs after every test and hook of the file.
after(stopOwn)

async function onServer(url: string, statement: string): Promise<void> {
  await using pool = new Pool(url, { name: 'test server', max: 1 })
  await pool.query(statement)
}
