import type pino from 'pino'
import { readConfig } from './config.ts'
import { migrate } from './db/migrate.ts'
import { Pool } from './db/pool.ts'
import { stopMsMax } from './kernel/limits.ts'
import { StartError } from './kernel/start-error.ts'
import { openLog } from './log.ts'
import { summaryOf } from './setup.ts'
import { start } from './start.ts'
import { verifyCommand } from './verify-command.ts'
import { version } from './version.ts'

const help = `turnpike ${version}

  start           run the service (npm start)
  migrate         bring the database of DATABASE_URL to this version's schema, and end
  ledger verify   recompute every balance from the ledger's entries, beside the service or without it; ends with 0 only
                  when all agree (npm run ledger:verify)
  version         print the version
  help            print this

Settings are environment variables; README.md lists them.
`

const commands: Record<string, () => Promise<void>> = {
  start: runService,
  migrate: runMigrations,
  'ledger verify': runVerification,
  version: async () => void process.stdout.write(`${version}\n`),
  help: async () => void process.stdout.write(help),
}

async function runService(): Promise<void> {
  const config = readConfig()
  const log = openLog({ level: config.logLevel })
  const stop = stopSignal(log)
  const stopping = new Promise((resolve) => stop.addEventListener('abort', resolve))
  const service = await start(config, log, stop).catch((error: unknown) => {
    if (!stop.aborted) throw error
  })
  if (service?.firstRun) process.stdout.write(summaryOf(service.firstRun, config))
  if (service) log.info(`listening on ${service.url}`)
  await stopping
  await service?.[Symbol.asyncDispose]()
  log.info('stopped')
}

/** Aborted by the first signal to stop. Later ones are heard and change nothing: npm repeats a Ctrl-C that has reached us too. */
function stopSignal(log: pino.Logger): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) return
      log.info(`${signal}: stopping`)
      stop.abort()
      setTimeout(() => {
        log.warn('not everything stopped in time')
        process.exit(0)
      }, stopMsMax).unref()
    })
  }
  return stop.signal
}

async function runMigrations(): Promise<void> {
  const { databaseUrl } = readConfig()
  if (!databaseUrl) throw new StartError('migrate needs DATABASE_URL; the embedded database is migrated by every start')
  await using pool = new Pool(databaseUrl, { name: 'migrate', max: 1 })
  const applied = await migrate(pool)
  process.stdout.write(applied.length === 0 ? 'nothing to apply\n' : `applied ${applied.join(', ')}\n`)
}

async function runVerification(): Promise<void> {
  const isRight = await verifyCommand(readConfig(), (line) => process.stdout.write(`${line}\n`))
  if (!isRight) process.exitCode = 1
}

/** A reason not to start is one line; anything else is a bug and thrown. */
const name = process.argv.slice(2).join(' ') || 'help'
const command = Object.hasOwn(commands, name) ? commands[name] : undefined
try {
  if (!command) throw new StartError(`unknown command "${name}"; see: node src/main.ts help`)
  await command()
} catch (error) {
  if (!(error instanceof StartError)) throw error
  process.exitCode = 1
  process.stderr.write(`turnpike: ${error.message}\n`)
}
