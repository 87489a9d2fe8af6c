import { once } from 'node:events'
import pino from 'pino'
import { readConfig } from './config.ts'
import { migrate } from './db/migrate.ts'
import { Pool } from './db/pool.ts'
import { StartError } from './kernel/start-error.ts'
import { summaryOf } from './setup.ts'
import { start } from './start.ts'
import { version } from './version.ts'

const help = `turnpike ${version}

  start      run the service (npm start)
  migrate    bring the database of DATABASE_URL to this version's schema, and end
  version    print the version
  help       print this

Settings are environment variables; README.md lists them.
`

const commands: Record<string, () => Promise<void>> = {
  start: runService,
  migrate: runMigrations,
  version: async () => void process.stdout.write(`${version}\n`),
  help: async () => void process.stdout.write(help),
}

/** Stops within this long after a signal, whatever is in flight. */
const stopMsMax = 9500

async function runService(): Promise<void> {
  const config = readConfig()
  const log = pino({ level: config.logLevel })
  const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
  const service = await start(config, log)
  if (service.firstRun) process.stdout.write(summaryOf(service.firstRun, config))
  log.info(`listening on ${service.url}`)
  const [signal] = (await stopped) as [string]
  log.info(`${signal}: stopping`)
  setTimeout(() => {
    log.warn('not everything stopped in time')
    process.exit(0)
  }, stopMsMax).unref()
  await service[Symbol.asyncDispose]()
  log.info('stopped')
}

async function runMigrations(): Promise<void> {
  const { databaseUrl } = readConfig()
  if (!databaseUrl) throw new StartError('migrate needs DATABASE_URL; the embedded database is migrated by every start')
  await using pool = new Pool(databaseUrl, { name: 'migrate', max: 1 })
  const applied = await migrate(pool)
  process.stdout.write(applied.length === 0 ? 'nothing to apply\n' : `applied ${applied.join(', ')}\n`)
}

/** A reason not to start is one line; anything else is a bug and thrown. */
const [name = 'help', ...rest] = process.argv.slice(2)
const command = commands[name]
try {
  if (!command || rest.length > 0) {
    throw new StartError(`unknown command "${[name, ...rest].join(' ')}"; see: node src/main.ts help`)
  }
  await command()
} catch (error) {
  if (!(error instanceof StartError)) throw error
  process.exitCode = 1
  process.stderr.write(`turnpike: ${error.message}\n`)
}
