import { rm } from 'node:fs/promises'
import pino from 'pino'
import { readConfig } from '../../src/config.ts'
import type { Pool } from '../../src/db/pool.ts'
import { must } from '../../src/kernel/assert.ts'
import { wireNames } from '../../src/kernel/wire-names.ts'
import { start } from '../../src/start.ts'
import { openInstance, sealingKeyOf } from '../../src/tenancy/index.ts'
import { caller, type Workspace } from '../workspace/api.ts'
import { type TestDatabase, testDatabase } from './database.ts'
import { temporaryFolder } from './server.ts'

/** The whole service in the test's process: HTTP, and the lane worker in its thread, over a database of its own. */
export interface TestService extends AsyncDisposable {
  url: string
  databaseUrl: string
  pool: Pool
  tombstoneKey: Buffer
  sealingKey: Buffer
  /** Calls the Workspace API with the first run's secret key. */
  workspace: Workspace['call']
  secretKey: string
  /** What it logged as errors: every 500 is one. Disposing fails when there are any. */
  errors: string[]
  /** All that it logged, where `LOG_LEVEL` is among its settings. */
  lines: string[]
  /** Another process over the same database, as far as one process can be two. */
  another: (settings?: Record<string, string>) => Promise<TestService>
}

const masterKey = Buffer.alloc(32, 7)
/** As pino numbers them. */
const errorLevel = 50

/** `settings` are those of the environment. */
export async function startService(settings: Record<string, string> = {}): Promise<TestService> {
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await testDatabase())
  const service = stack.use(await startOver(database, settings))
  const everything = stack.move()
  return { ...service, [Symbol.asyncDispose]: () => everything.disposeAsync() }
}

async function startOver(database: TestDatabase, settings: Record<string, string>, firstKey?: string) {
  await using stack = new AsyncDisposableStack()
  const [errors, lines]: [string[], string[]] = [[], []]
  const { LOG_LEVEL: level = 'error' } = settings
  const write = (line: string) => {
    if (settings.LOG_LEVEL !== undefined) lines.push(line)
    if ((JSON.parse(line) as { level: number }).level >= errorLevel) errors.push(line)
  }
  stack.defer(() => {
    if (errors.length > 0) throw new Error(`the service logged errors:\n${errors.join('')}`)
  })
  const dataDir = await temporaryFolder()
  stack.defer(() => rm(dataDir, { recursive: true }))
  const config = readConfig({
    DATABASE_URL: database.url,
    MASTER_KEY: masterKey.toString('base64'),
    DATA_DIR: dataDir,
    PORT: '0',
    ...settings,
  })
  const { url, firstRun } = stack.use(await start(config, pino({ level }, { write })))
  const secrets = await database.pool.transaction((tx) => openInstance(tx, masterKey))
  const secretKey = must(firstKey ?? firstRun?.secret_key, 'the database was empty')
  const call = caller(url, secretKey)
  const environmentHeader = wireNames(config.namespace).environmentHeader.toLowerCase()
  const everything = stack.move()
  const service: TestService = {
    url,
    databaseUrl: database.url,
    pool: database.pool,
    tombstoneKey: secrets.tombstoneKey,
    sealingKey: sealingKeyOf(secrets),
    workspace: (method, path, options = {}) =>
      call(method, path, {
        ...options,
        headers: { [environmentHeader]: options.environment ?? 'test', ...options.headers },
      }),
    secretKey,
    errors,
    lines,
    another: (more = {}) => startOver(database, more, secretKey),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
  return service
}
