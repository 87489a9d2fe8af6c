import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config.ts'
import { serverFacts, serverObjection } from '../../db/check-server.ts'
import { appliedMigrations, knownMigrations } from '../../db/migrate.ts'
import { Pool, sqlState, type Tx } from '../../db/pool.ts'
import { visitEmbedded } from '../../db/visit-embedded.ts'
import { laneLag, logGauges } from '../../events/index.ts'
import { selectEngineGauges } from '../../journeys/index.ts'
import { systemClock } from '../../kernel/clock.ts'
import { clockSkewMsMax, connectionsOfProcessMax } from '../../kernel/limits.ts'
import { StartError } from '../../kernel/start-error.ts'
import { readMasterKey } from '../../master-key.ts'
import { checkLiveCredentials, selectFailingCredentials } from '../../purchases/index.ts'
import { lagMsMax } from '../../readiness.ts'
import { openInstance, opensDatabase, readSealedSecrets, sealingKeyOf, selectKeyFigures } from '../../tenancy/index.ts'
import { remark } from '../print.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** The database: whether it answers, keeps its word, has our schema and our key, and agrees about the time. */
export async function lookAtDatabase(config: Config): Promise<Finding[]> {
  if (config.databaseUrl === undefined && !(await hasEmbedded(config.dataDir))) {
    return [ok('database', 'there is none yet: the first start makes it')]
  }
  try {
    await using stack = new AsyncDisposableStack()
    const log = { info() {}, warn: remark, error: remark }
    const url = config.databaseUrl ?? stack.use(await visitEmbedded({ dataDir: config.dataDir, log })).url
    const pool = stack.use(new Pool(url, { name: 'doctor', max: 1 }))
    const objection = await serverObjection(pool)
    if (objection !== undefined) return [problem('database', objection, 'set it right on the server, then look again')]
    const schema = await lookAtSchema(pool)
    const about = [await lookAtServer(pool), await lookAtClock(pool), schema]
    if (schema.state === 'problem') return about
    return [
      ...about,
      await lookAtKey(config, pool),
      await lookAtLanes(pool),
      await lookAtJourneys(pool),
      await lookAtAccess(pool),
      await lookAtStores(config, pool),
      await lookAtStoreCalls(pool),
    ]
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    return [
      problem(
        'database',
        error.message,
        'start it, or correct DATABASE_URL; server.log in DATA_DIR/postgres tells of an embedded one',
      ),
    ]
  }
}

async function hasEmbedded(dataDir: string): Promise<boolean> {
  const there = ['postgres', 'postgres.location'].map((name) => stat(join(dataDir, name)).catch(() => undefined))
  return (await Promise.all(there)).some((found) => found !== undefined)
}

async function lookAtServer(pool: Pool): Promise<Finding> {
  const { version, connections, connectionsMax } = await serverFacts(pool)
  const says = `PostgreSQL ${version}, ${connections} of ${connectionsMax} connections in use`
  if (connections < connectionsMax * 0.9) return ok('database', says)
  return warning(
    'database',
    says,
    `raise max_connections: a process of the service uses up to ${connectionsOfProcessMax.all}`,
  )
}

/** The answer of the database is taken to be from the middle of the question. */
async function lookAtClock(pool: Pool): Promise<Finding> {
  const asked = systemClock.now()
  const { now } = await serverFacts(pool)
  const answered = systemClock.now()
  const skewMs = Math.round(now.getTime() - (asked + answered) / 2)
  const says = `the clocks of this machine and the database differ by ${Math.abs(skewMs)} ms`
  if (Math.abs(skewMs) <= clockSkewMsMax + (answered - asked) / 2) return ok('clock', says)
  return problem('clock', says, 'run a time service such as chrony on both: resets and expiry follow the database')
}

async function lookAtSchema(pool: Pool): Promise<Finding> {
  const undefinedTable = '42P01'
  const [applied, known] = [
    await appliedMigrations(pool).catch((error: unknown) => {
      if (sqlState(error) === undefinedTable) return []
      throw error
    }),
    await knownMigrations(),
  ]
  const newest = known.at(-1)?.number ?? 0
  const ahead = applied.find(({ number }) => number > newest)
  if (ahead)
    return problem(
      'migrations',
      `the database has ${ahead.name}, newer than this version`,
      'run the newer version, or restore a backup of before',
    )
  const changed = applied.find(({ number, sha256 }) =>
    known.some((each) => each.number === number && each.sha256 !== sha256),
  )
  if (changed)
    return problem(
      'migrations',
      `${changed.name} is not the file that was applied`,
      'run an unchanged copy of this version',
    )
  const pending = known.filter(({ number }) => !applied.some((each) => each.number === number))
  if (pending.length === 0) return ok('migrations', `all ${known.length} applied`)
  return problem(
    'migrations',
    `${pending.length} of ${known.length} are not applied yet`,
    'start the service, or run: turnpike migrate',
  )
}

async function lookAtKey(config: Config, pool: Pool): Promise<Finding> {
  const key = await readMasterKey(config, { make: false })
  if (await pool.transaction((tx) => opensDatabase(tx, key))) return ok('secrets', 'they open with the master key')
  return problem(
    'secrets',
    'they were sealed under another master key',
    'bring back the key this database was set up with',
  )
}

/** What a start would refuse to run with, too. */
async function lookAtStores(config: Config, pool: Pool): Promise<Finding> {
  const key = await readMasterKey(config, { make: false })
  const isOurs = await pool.transaction(async (tx) => (await hasSecrets(tx)) && (await opensDatabase(tx, key)))
  if (!isOurs) return ok('stores', 'no store credentials can be looked at')
  try {
    const secrets = await pool.transaction((tx) => openInstance(tx, key))
    const records = await checkLiveCredentials(pool, sealingKeyOf(secrets))
    return ok('stores', `${records} live store credentials, none of them with a foreign root or address`)
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    return problem('stores', error.message, 'DELETE /v1/apps/{id}/store_credentials?kind=… with X-Service-Env: live')
  }
}

/** What processes wrote down of their calls: those that rest say so there. */
async function lookAtStoreCalls(pool: Pool): Promise<Finding> {
  const [failing] = await selectFailingCredentials(pool, 1)
  if (failing === undefined) return ok('store calls', 'no store credential failed when it was last used')
  const { app_id: appId, environment, kind, last_error: error, last_error_at: at } = failing
  return warning(
    'store calls',
    `${kind} of ${appId} in ${environment}, last at ${at.toISOString()}: ${error}`,
    `POST /v1/apps/${appId}/store_credentials/${kind}/check with X-Service-Env: ${environment}`,
  )
}

async function hasSecrets(tx: Tx): Promise<boolean> {
  return (await readSealedSecrets(tx)) !== undefined
}

async function lookAtLanes(pool: Pool): Promise<Finding> {
  const { lagMs, rows } = await laneLag(pool)
  const says = `${rows} events wait to be applied, the oldest for ${Math.round(lagMs / 1000)} s`
  const { stopped, deadEvents } = await logGauges(pool)
  if (stopped[0]) {
    const { why } = stopped[0]
    return problem(
      'events',
      `lanes stopped: ${stopped.length}, the first because ${why}`,
      'mend that, then restart a worker',
    )
  }
  if (lagMs > lagMsMax)
    return warning('events', says, 'see that a process with ROLE=worker runs, and what its log says')
  if (deadEvents === 0) return ok('events', says)
  return warning(
    'events',
    `could not be applied: ${deadEvents}`,
    'GET /v1/dead_events says why; replay them when mended',
  )
}

async function lookAtJourneys(pool: Pool): Promise<Finding> {
  const { quarantined, timerLagMs } = await selectEngineGauges(pool)
  const says = `the oldest timer that is due waits for ${Math.round(timerLagMs / 1000)} s`
  if (quarantined > 0) {
    const mend = 'GET /v1/journey_quarantine says why; release them when mended'
    return warning('journeys', `timers, inputs and webhooks set aside: ${quarantined}`, mend)
  }
  if (timerLagMs <= lagMsMax) return ok('journeys', says)
  return warning('journeys', says, 'see that a process with ROLE=worker runs, and what its log says')
}

async function lookAtAccess(pool: Pool): Promise<Finding> {
  const { workspaces, usable, expiring, blocked } = await selectKeyFigures(pool)
  if (workspaces === 0) return ok('keys', 'nothing is set up yet: the first start makes an owner and a key')
  const says = `${usable} secret keys can be used by ${workspaces} workspaces`
  if (blocked > 0)
    return warning(
      'keys',
      `${says}; ${blocked} workspaces are shut out`,
      'turnpike workspaces list, then: turnpike workspaces access <id> active',
    )
  if (usable === 0) return warning('keys', says, 'turnpike keys create <workspace>')
  if (expiring > 0)
    return warning('keys', `${says}; ${expiring} end within 14 days`, 'turnpike keys list; make new ones in time')
  return ok('keys', says)
}
