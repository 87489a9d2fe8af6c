import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { countDecisions, countEvents } from './count-usage.ts'
import { createCustomerIdHint, createFindCustomer } from './customers/index.ts'
import { checkServer } from './db/check-server.ts'
import { startEmbedded } from './db/embedded.ts'
import { migrate } from './db/migrate.ts'
import { Pool } from './db/pool.ts'
import {
  Catalogues,
  createCheck,
  createConsume,
  createPaidSpends,
  createStanding,
  ledgerSettings,
} from './entitlements/index.ts'
import {
  checkLogMeta,
  createIntakeGuard,
  createLog,
  type LaneStats,
  laneSettings,
  openEventReads,
  startExports,
} from './events/index.ts'
import { createDeliveries, selectPublishedKeys } from './experiences/index.ts'
import { finishRequestsOf } from './finish-requests.ts'
import { docsPages } from './http/docs.ts'
import { createHealthServer, createServer } from './http/server.ts'
import { eventObject } from './http/workspace/event-object.ts'
import { createStart, findIntroOffer, type OfferQuestion } from './journeys/index.ts'
import { systemClock as clock } from './kernel/clock.ts'
import { aboveDatabaseStopMsMax, accountWaitsAtOnce } from './kernel/limits.ts'
import { wireNames } from './kernel/wire-names.ts'
import { findPort, listen, withPort } from './listen.ts'
import { startMail } from './mail.ts'
import { startMaintenance } from './maintenance.ts'
import { readMasterKey, settleRotation } from './master-key.ts'
import { metricsOf } from './metrics.ts'
import { participantsOf } from './participants.ts'
import { createProfiles, createTryProfiles } from './profiles/index.ts'
import { checkLiveCredentials, createReceivers } from './purchases/index.ts'
import { readinessOf } from './readiness.ts'
import { startSettling } from './settling.ts'
import { type FirstRun, setUp } from './setup.ts'
import { openStores, purchasesOf, startPurchases } from './start-purchases.ts'
import {
  Directory,
  type InstanceSecrets,
  Marks,
  openInstance,
  openSignIn,
  opensDatabase,
  sealingKeyOf,
  UsageTally,
} from './tenancy/index.ts'
import { version } from './version.ts'
import { startWorker } from './worker.ts'

/** A running service; disposing it stops accepting, finishes what is in flight and stops what was started, in reverse. */
export interface Service extends AsyncDisposable {
  /** Where it listens, such as `http://127.0.0.1:4000`. */
  url: string
  /** What the first run on an empty database made; undefined on every later start. */
  firstRun: FirstRun | undefined
}

/**
 * Everything that one process runs, in the order it comes up: database, configuration, workers, HTTP. `signal` gives up
 * waiting for a database that is still recovering.
 */
export async function start(settings: Config, log: Logger, signal?: AbortSignal): Promise<Service> {
  await using database = new AsyncDisposableStack()
  await using started = new AsyncDisposableStack()
  const url = settings.databaseUrl ?? database.use(await startEmbedded({ dataDir: settings.dataDir, log, signal })).url
  const config = withPort(settings, await findPort(settings))
  const pool = started.use(new Pool(url, { name: 'service', max: 10 }))
  await checkServer(pool)
  const applied = await migrate(pool)
  if (applied.length > 0) log.info(`applied ${applied.length} migrations`)
  await settleRotation(config, (key) => pool.transaction((tx) => opensDatabase(tx, key)))
  const masterKey = await readMasterKey(config)
  const secrets = await pool.transaction((tx) => openInstance(tx, masterKey))
  await checkLogMeta(pool)
  await checkLiveCredentials(pool, sealingKeyOf(secrets))
  started.use(await startMaintenance(pool, config, log))
  const { tombstoneKey } = secrets
  const firstRun = await setUp(pool, config, { tombstoneKey, sealingKey: sealingKeyOf(secrets) })
  const { smtpUrl, publicUrl } = config
  started.use(startMail({ pool, sealingKey: sealingKeyOf(secrets), smtpUrl, publicUrl, log }))
  const ready = readinessOf(pool, config.role)

  const lanes = config.role.worker ? started.use(startWorker({ url, secrets, config }, log)).stats : undefined
  const stores = await openStores(started, { config, log, url, secrets })
  const { openCircuits: circuits } = stores
  if (config.role.worker) started.use(startPurchases(stores, log))
  if (config.role.worker) started.use(startSettling({ url, secrets }, log))
  if (config.role.worker) started.use(startExports({ url, clock, log, show: eventObject }))
  const server = config.role.api
    ? await createServer(await services(started, { config, log, url, pool, secrets, ready, lanes, stores }))
    : createHealthServer({ log, health: { version, ready }, metrics: metricsOf(config, { pool, lanes, circuits }) })
  started.defer(finishRequestsOf(server))
  const address = await listen(server, config)
  const [everything, below] = [started.move(), database.move()]
  return {
    url: address,
    firstRun,
    async [Symbol.asyncDispose]() {
      // Whatever hangs above, the database below is stopped: nobody else would.
      await using _ = below
      await Promise.race([everything.disposeAsync(), sleep(aboveDatabaseStopMsMax, undefined, { ref: false })])
    },
  }
}

interface Ground {
  config: Config
  log: Logger
  url: string
  pool: Pool
  secrets: InstanceSecrets
  ready: ReturnType<typeof readinessOf>
  lanes: (() => LaneStats | undefined) | undefined
  stores: Awaited<ReturnType<typeof openStores>>
}

/** What the HTTP surfaces are built on. Hot verbs have connections of their own. */
async function services(started: AsyncDisposableStack, ground: Ground) {
  const { config, log, url, pool, secrets, ready, lanes, stores } = ground
  const { tombstoneKey } = secrets
  const { publicUrl } = config
  const sealingKey = sealingKeyOf(secrets)
  const names = wireNames(config.namespace)
  const directory = started.use(await Directory.open({ pool, url, clock, log }))
  const catalogues = new Catalogues(pool, directory)
  const marks = new Marks(pool, clock, log)
  const usage = started.use(new UsageTally(pool, clock, log))
  const ledger = (name: string, max: number) =>
    started.use(new Pool(url, { name, max, pipeline: true, settings: ledgerSettings }))
  const reads = { pool: ledger('access', 4), catalogues, tombstoneKey, clock }
  const holdupPool = ledger('usage held up', accountWaitsAtOnce)
  const spending = { pool: ledger('usage', 2), holdupPool, catalogues, directory, tombstoneKey, clock }
  const journeys = { tombstoneKey, log }
  const starts = started.use(new Pool(url, { name: 'starts', max: 3, settings: laneSettings }))
  const dataDir = config.databaseUrl === undefined ? config.dataDir : null
  const guard = started.use(createIntakeGuard({ pool, log, dataDir }))
  const eventLog = started.use(createLog({ url, tombstoneKey, clock, guard: guard.check }))
  const { renderBaseUrl, assetBaseUrl } = config
  const deliveries = createDeliveries({ pool, directory, names })
  const wire = { names, renderBaseUrl, assetBaseUrl }
  const profiles = createProfiles({ ...reads, writePool: pool, deliveries, wire })
  const eventReads = started.use(openEventReads({ url, clock, secret: tombstoneKey, isHere: dataDir !== null }))
  const standing = createStanding(reads)
  const spends = createPaidSpends({ pool, catalogues, directory, tombstoneKey })
  const { purchase, checkout, paidConsume, introToken, reverify, checkCredential, loadStoreApp } = purchasesOf(stores, {
    whois: standing,
    spends,
  })
  const { receiveAppStore, receivePlay, receiveCard } = createReceivers({
    services: stores,
    appStore: stores.appStore,
    log,
  })
  return {
    log,
    health: { version, ready },
    metrics: metricsOf(config, { pool, log: eventLog.stats, lanes, circuits: stores.openCircuits }),
    app: {
      directory,
      marks,
      usage,
      names,
      clock,
      catalogues,
      ...countEvents(usage, eventLog),
      customerIdHint: createCustomerIdHint({ pool: reads.pool, clock }),
      check: countDecisions(usage, createCheck(reads)),
      consume: countDecisions(usage, createConsume(spending)),
      paidConsume: countDecisions(usage, paidConsume),
      whose: standing,
      introOffer: (question: OfferQuestion) => findIntroOffer(pool, question, clock.now()),
      introToken,
      releaseKeys: () => selectPublishedKeys(pool),
      purchase,
      checkout,
      filePool: started.use(new Pool(url, { name: 'files', max: 2 })),
      standing,
      profiles,
    },
    workspace: {
      directory,
      marks,
      names,
      deliverAlways: config.namespace === 'service',
      tryProfiles: createTryProfiles(wire),
      pool,
      find: createFindCustomer({ pool: reads.pool, clock }),
      catalogues,
      clock,
      requestsPerMinute: config.workspaceRateLimit,
      eventRetentionDays: config.eventRetentionDays,
      tombstoneKey,
      sealingKey,
      publicUrl,
      signIn: started.use(openSignIn({ pool, sealingKey, publicUrl, log })),
      standing,
      profiles,
      loadStoreApp,
      reverify,
      checkCredential,
      participants: participantsOf(clock, journeys),
      journeys,
      start: createStart({ pool: starts, clock, tombstoneKey, services: journeys }),
      appendBatch: eventLog.appendBatch,
      ...eventReads,
      log,
    },
    webhooks: { receiveAppStore, receivePlay, receiveCard },
    extend: docsPages,
  }
}
