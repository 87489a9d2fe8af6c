import { type Config, readConfig } from '../config.ts'
import { checkServer } from '../db/check-server.ts'
import { pendingMigrations } from '../db/migrate.ts'
import { isConnectionLoss, Pool, sqlState } from '../db/pool.ts'
import { visitEmbedded } from '../db/visit-embedded.ts'
import { StartError } from '../kernel/start-error.ts'
import { remark } from './print.ts'

/** The database of the settings, while a command works on it. */
export interface Database {
  config: Config
  url: string
  pool: Pool
  /** Aborted by Ctrl-C. */
  signal: AbortSignal
}

/**
 * Opens the database that the settings name: one that runs is used beside its service, an embedded one that does not is
 * started and stopped again. `name` is shown in pg_stat_activity. Throws StartError, also when the database goes away.
 */
export async function withDatabase<T>(name: string, work: (database: Database) => Promise<T>): Promise<T> {
  const config = readConfig()
  await using stack = new AsyncDisposableStack()
  const signal = stopSignal(stack)
  const log = { info() {}, warn: remark, error: remark }
  const url = config.databaseUrl ?? stack.use(await visitEmbedded({ dataDir: config.dataDir, log, signal })).url
  const pool = stack.use(new Pool(url, { name, max: 1 }))
  try {
    await checkServer(pool)
    await checkSchema(pool)
    return await work({ config, url, pool, signal })
  } catch (error) {
    if (!isConnectionLoss(error)) throw error
    throw new StartError(`the database cannot be read: ${(error as Error).message}`, { cause: error }) // of the driver
  }
}

function stopSignal(stack: AsyncDisposableStack): AbortSignal {
  const stop = new AbortController()
  const onSignal = () => stop.abort(new StartError('stopped before the end'))
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, onSignal)
    stack.defer(() => void process.off(name, onSignal))
  }
  return stop.signal
}

const undefinedTable = '42P01'

async function checkSchema(pool: Pool): Promise<void> {
  const pending = await pendingMigrations(pool).catch((error: unknown) => {
    if (sqlState(error) === undefinedTable) return ['every migration']
    throw error
  })
  if (pending.length > 0) throw new StartError(`the database lacks ${pending.join(', ')}: start or migrate it first`)
}
