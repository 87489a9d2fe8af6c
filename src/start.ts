import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { createCustomerIdHint } from './customers/index.ts'
import { checkServer } from './db/check-server.ts'
import { startEmbedded } from './db/embedded.ts'
import { migrate } from './db/migrate.ts'
import { Pool } from './db/pool.ts'
import {
  Catalogues,
  createCheck,
  createConsume,
  createStanding,
  createVersions,
  ledgerSettings,
} from './entitlements/index.ts'
import { checkLogMeta, createLog } from './events/index.ts'
import { docsPages } from './http/docs.ts'
import { createHealthServer, createServer } from './http/server.ts'
import { systemClock as clock } from './kernel/clock.ts'
import { StartError } from './kernel/start-error.ts'
import { wireNames } from './kernel/wire-names.ts'
import { startMaintenance } from './maintenance.ts'
import { readMasterKey } from './master-key.ts'
import { metricsOf, readinessOf } from './readiness.ts'
import { type FirstRun, setUp } from './setup.ts'
import { Directory, type InstanceSecrets, Marks, openInstance } from './tenancy/index.ts'
import { version } from './version.ts'
import { startWorker } from './worker.ts'

/** A running service; disposing it stops accepting, finishes what is in flight and stops what was started, in reverse. */
export interface Service extends AsyncDisposable {
  /** Where it listens, such as `http://127.0.0.1:4000`. */
  url: string
  /** What the first run on an empty database made; undefined on every later start. */
  firstRun: FirstRun | undefined
}

/** Everything that one process runs, in the order it comes up: database, configuration, workers, HTTP. */
export async function start(config: Config, log: Logger): Promise<Service> {
  await using started = new AsyncDisposableStack()
  const url = config.databaseUrl ?? started.use(await startEmbedded({ dataDir: config.dataDir, log })).url
  const pool = started.use(new Pool(url, { name: 'service', max: 10 }))
  await checkServer(pool)
  const applied = await migrate(pool)
  if (applied.length > 0) log.info(`applied ${applied.length} migrations`)
  const masterKey = await readMasterKey(config)
  const secrets = await pool.transaction((tx) => openInstance(tx, masterKey))
  await checkLogMeta(pool)
  started.use(await startMaintenance(pool, log))
  const firstRun = await setUp(pool, config, secrets.tombstoneKey)
  const ready = readinessOf(pool, config.role)

  if (config.role.worker) started.use(startWorker({ url, secrets }, log))
  const server = config.role.api
    ? await createServer(await services(started, { config, log, url, pool, secrets, ready }))
    : createHealthServer({ log, health: { version, ready }, metrics: metricsOf(config, pool) })
  started.defer(() => server.close())
  await listen(server, config)
  const { port } = server.server.address() as AddressInfo // a TCP address after listen
  const everything = started.move()
  return {
    url: `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${port}`,
    firstRun,
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
}

interface Ground {
  config: Config
  log: Logger
  url: string
  pool: Pool
  secrets: InstanceSecrets
  ready: ReturnType<typeof readinessOf>
}

/** What the HTTP surfaces are built on. Hot verbs have connections of their own. */
async function services(started: AsyncDisposableStack, { config, log, url, pool, secrets, ready }: Ground) {
  const { tombstoneKey } = secrets
  const names = wireNames(config.namespace)
  const directory = started.use(await Directory.open({ pool, url, clock, log }))
  const catalogues = new Catalogues(pool, directory)
  const marks = new Marks(pool, clock, log)
  const ledger = (name: string, max: number) =>
    started.use(new Pool(url, { name, max, pipeline: true, settings: ledgerSettings }))
  const reads = { pool: ledger('access', 4), catalogues, tombstoneKey, clock }
  const spending = { pool: ledger('usage', 2), catalogues, directory, tombstoneKey, clock }
  const eventLog = started.use(createLog({ url, tombstoneKey, clock }))
  return {
    log,
    health: { version, ready },
    metrics: metricsOf(config, pool),
    app: {
      directory,
      marks,
      names,
      clock,
      catalogues,
      renderBaseUrl: config.renderBaseUrl,
      assetBaseUrl: config.assetBaseUrl,
      append: eventLog.append,
      appendBatch: eventLog.appendBatch,
      customerIdHint: createCustomerIdHint({ pool: reads.pool, clock }),
      check: createCheck(reads),
      consume: createConsume(spending),
      versions: createVersions(reads),
      standing: createStanding(reads),
    },
    workspace: { directory, marks, names, pool, catalogues, clock, tombstoneKey, standing: createStanding(reads) },
    extend: docsPages,
  }
}

async function listen(
  server: { listen: (to: { host: string; port: number }) => Promise<string> },
  { host, port }: Config,
) {
  try {
    await server.listen({ host, port })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') throw new StartError(`PORT ${port} on ${host} is in use by another program`)
    if (code === 'EACCES') throw new StartError(`PORT ${port} on ${host} may not be opened by this user`)
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
      throw new StartError(`HOST ${host} is no address of this machine`)
    throw error
  }
}
