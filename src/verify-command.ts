import type { Config } from './config.ts'
import { pendingMigrations } from './db/migrate.ts'
import { isConnectionLoss, Pool, sqlState } from './db/pool.ts'
import { visitEmbedded } from './db/visit-embedded.ts'
import { type Finding, verifyLedger } from './entitlements/index.ts'
import { StartError } from './kernel/start-error.ts'

/**
 * `ledger verify`: one line per finding, then one that sums up. Beside the service or without it. Resolves to whether the
 * tables say what their entries say. Throws StartError when it cannot tell.
 */
export async function verifyCommand(config: Config, print: (line: string) => void): Promise<boolean> {
  await using stack = new AsyncDisposableStack()
  const stop = new AbortController()
  const onSignal = () => stop.abort(new StartError('stopped before the end'))
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, onSignal)
    stack.defer(() => void process.off(name, onSignal))
  }
  const { signal } = stop
  const log = { info() {}, warn: print, error: print }
  const url = config.databaseUrl ?? stack.use(await visitEmbedded({ dataDir: config.dataDir, log, signal })).url
  const pool = stack.use(new Pool(url, { name: 'ledger verify', max: 1 }))
  try {
    await checkSchema(pool)
    const counts = await verifyLedger(pool, { onFinding: (finding) => print(lineOf(finding)), signal })
    const totals = Object.entries(counts).map(([name, count]) => `${name}=${count}`)
    print(`ledger: ${counts.findings === 0 ? 'OK' : 'DIFFERENT'} ${totals.join(' ')}`)
    return counts.findings === 0
  } catch (error) {
    if (!isConnectionLoss(error)) throw error
    throw new StartError(`the database cannot be read: ${(error as Error).message}`, { cause: error }) // of the driver
  }
}

async function checkSchema(pool: Pool): Promise<void> {
  const undefinedTable = '42P01'
  const pending = await pendingMigrations(pool).catch((error: unknown) => {
    if (sqlState(error) === undefinedTable) return ['every migration']
    throw error
  })
  if (pending.length > 0) throw new StartError(`the database lacks ${pending.join(', ')}: start or migrate it first`)
}

function lineOf({ rule, ids, expected, found }: Finding): string {
  const where = Object.entries(ids).map(([name, id]) => `${name}=${typeof id === 'string' ? JSON.stringify(id) : id}`)
  return `finding: ${rule} ${where.join(' ')} expected=${JSON.stringify(expected)} found=${JSON.stringify(found)}`
}
