/** `npm run bench`: the service against its floors, in one run on one machine. README.md says what the figures mean. */
import { writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { Pool } from '../src/db/pool.ts'
import { must } from '../src/kernel/assert.ts'
import { Bench } from './bench.ts'
import { customersOf } from './cases.ts'
import { type CaseFigures, notes, table } from './figures.ts'
import { tables } from './floors/store.ts'
import { distinctIdOf } from './ids.ts'
import { makeLegs } from './legs.ts'
import { type Options, readOptions, usage } from './options.ts'
import { contestedCustomer, featureId, plentyUnits, seedCustomers } from './seed.ts'
import { seedBulk } from './seed-bulk.ts'
import { makeSegments } from './segments.ts'
import { type Service, startFloor, startService } from './service.ts'
import * as store from './store.ts'

/** Customers made as a backend makes them; the others come straight into the tables. */
const seededByRequests = 10_000
/** Connections of the bench itself: for seeding, looking at the lane, and the checks. */
const ownConnections = 2

try {
  process.exitCode = await main(optionsOf(process.argv.slice(2)))
} catch (error) {
  console.error(`bench: ${wordsOf(error)}`)
  process.exitCode = 1
}

function optionsOf(args: string[]): Options {
  try {
    return readOptions(args)
  } catch (error) {
    throw new Error(`${wordsOf(error)}\n\n${usage}`, { cause: error })
  }
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // fetch says why it failed in its cause only.
  return error.message === 'fetch failed' ? `${error.message}: ${wordsOf(error.cause)}` : error.message
}

async function main(options: Options): Promise<number> {
  await using cleanup = new AsyncDisposableStack()
  const stop = () => void cleanup.disposeAsync().finally(() => process.exit(130))
  process.once('SIGINT', stop).once('SIGTERM', stop)
  say('starting the service and its floors')
  const service = cleanup.use(await startService())
  try {
    return await compare(service, options, cleanup)
  } catch (error) {
    if (!cleanup.disposed) console.error(`\nthe service's last words:\n${await service.lastWords()}\n`)
    throw error
  }
}

/** Gives the exit code. */
async function compare(service: Service, options: Options, cleanup: AsyncDisposableStack): Promise<number> {
  const turnpikeDb = cleanup.use(pool(service.databaseUrl('turnpike')))
  await store.createDatabase(turnpikeDb, 'bench_echo')
  await store.createDatabase(turnpikeDb, 'bench_naive')
  const naiveDb = cleanup.use(pool(service.databaseUrl('bench_naive')))
  await naiveDb.query(tables)
  const echo = cleanup.use(await startFloor('echo', service.databaseUrl('bench_echo')))
  const naive = cleanup.use(await startFloor('naive', service.databaseUrl('bench_naive')))

  const { firstRun } = service
  const apiKey = must(
    firstRun.apps.find((app) => app.platform === 'ios'),
    'the demo has an iOS app',
  ).keys.test
  const customers = Math.max(...options.cases.map(customersOf))
  say(`making ${customers} customers with a grant each`)
  const scopeId = await store.scopeOf(turnpikeDb, firstRun.project_id)
  await seedCustomers(firstRun, Math.min(customers, seededByRequests))
  await seedBulk(turnpikeDb, scopeId, { from: seededByRequests, to: customers })
  if (options.segments > 0) {
    say(`making ${options.segments} Segments`)
    await makeSegments(firstRun, options.segments)
  }
  const distinctIds = [...Array.from({ length: customers }, (_, i) => distinctIdOf(i)), distinctIdOf(contestedCustomer)]
  await store.seedNaive(naiveDb, { apiKey, featureKey: featureId, distinctIds, units: plentyUnits })
  await Promise.all([store.settle(turnpikeDb), store.settle(naiveDb)])

  const bench = new Bench({ options, apiKey, scopeId, service, echo, naive, turnpikeDb, naiveDb, say })
  const cases: CaseFigures[] = []
  for (const name of options.cases) {
    if (name === 'profile_legs') await makeLegs(firstRun, apiKey, customersOf(name))
    cases.push(await bench.case(name))
  }
  const faults = await bench.check()
  if (faults.length > 0) {
    console.error(`\nno figures: what is stored is not what was acknowledged\n${faults.slice(0, 20).join('\n')}`)
    return 1
  }

  const machine = { node: process.version, postgres: await store.postgresVersion(turnpikeDb), cores: cpus().length }
  console.log(
    `\nNode ${machine.node}, PostgreSQL ${machine.postgres} (fsync on), ${machine.cores} cores, generator included`,
  )
  console.log(`${options.rounds} rounds of ${options.seconds} s for each server, medians\n\n${table(cases)}\n`)
  console.log(notes(cases).join('\n'))
  console.log('\nevery answer was right; every acknowledged event and unit is in the database, once')
  if (options.json) await writeFile(options.json, `${JSON.stringify({ ...machine, cases }, null, 2)}\n`)
  return 0
}

function pool(url: string): Pool {
  // The checks read whole tables.
  return new Pool(url, { name: 'bench', max: ownConnections, settings: { statement_timeout: '300s' } })
}

function say(words: string): void {
  console.error(words)
}
