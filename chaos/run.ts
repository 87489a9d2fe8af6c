/** `npm run chaos`: README.md says what happens to the service, and what is proved afterwards. */
import { cpSync, existsSync, globSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { must } from '../src/kernel/assert.ts'
import { removeFolder, temporaryFolder } from '../test/harness/server.ts'
import { check, type Verdict } from './check.ts'
import { errorsIn } from './logs.ts'
import { type Options, readOptions, usage } from './options.ts'
import { readExpectation, readStored, settled } from './prove.ts'
import { patienceMsMax, scheduleOf, told } from './schedule.ts'
import { authorised } from './send.ts'
import { Troublemaker } from './trouble.ts'
import { allUp, makeSpenders, startLoad, startWorld, type World } from './world.ts'

const loadProcesses = 2
const clientsOfEach = 12
/** Enough for a thousand events each to be more than the queues hold. */
const floodClientsOfEach = 16
const firstFloodClient = 1000
/** For the last answers, and for the lane to apply what waits. */
const answerMsMax = 90_000
const settleMsMax = 180_000
const faultsShown = 40

interface Result extends Verdict {
  kills: number
  acknowledged: number
  unlisted: number
}

try {
  process.exitCode = await main(optionsOf(process.argv.slice(2)))
} catch (error) {
  console.error(`chaos: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}

function optionsOf(args: string[]): Options {
  try {
    return readOptions(args)
  } catch (error) {
    throw new Error(`${(error as Error).message}\n\n${usage}`, { cause: error }) // of our own or of parseArgs
  }
}

async function main(options: Options): Promise<number> {
  const folder = await temporaryFolder()
  const stack = new AsyncDisposableStack()
  let isInterrupted = false
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (isInterrupted) return
      isInterrupted = true
      void stack
        .disposeAsync()
        .then(() => removeFolder(folder))
        .finally(() => process.exit(130))
    })
  }
  say(`chaos of ${options.durationMs / 60_000} minutes, seed ${options.seed}`)
  let result: Result | undefined
  try {
    result = await trouble(options, folder, stack)
  } catch (error) {
    if (isInterrupted) return await new Promise(() => {})
    say(`chaos could not be run to its end: ${error instanceof Error ? error.stack : String(error)}`)
  }
  if (isInterrupted) return await new Promise(() => {})
  await stack.disposeAsync()
  const passed = result !== undefined && result.faults.length === 0 && result.unlisted === 0
  if (passed) await removeFolder(folder)
  else await keep(folder)
  const { kills = 0, acknowledged = 0, lost = 0, doubled = 0, unlisted = 0 } = result ?? {}
  console.log(
    `chaos: ${passed ? 'PASS' : 'FAIL'} kills=${kills} acked=${acknowledged} lost=${lost} doubled=${doubled} unlisted=${unlisted} seed=${options.seed}`,
  )
  return passed ? 0 : 1
}

async function trouble({ seed, durationMs }: Options, folder: string, stack: AsyncDisposableStack): Promise<Result> {
  const world = stack.use(await startWorld(folder))
  await makeSpenders(world, loadProcesses * clientsOfEach)
  const deletes = await canDelete(world)
  if (!deletes) say('customers cannot be deleted in this version: without deletions')
  const loads = Array.from({ length: loadProcesses }, (_, i) => {
    const clients = Array.from({ length: clientsOfEach }, (_, n) => ({ client: i * clientsOfEach + n, flood: false }))
    const floods = Array.from({ length: floodClientsOfEach }, (_, n) => ({
      client: firstFloodClient + i * floodClientsOfEach + n,
      flood: true,
    }))
    const options = [...clients, ...floods].map((client) => ({ seed, deletes, ...client }))
    return stack.use(startLoad(folder, world, options))
  })
  const maker = stack.use(new Troublemaker(world, loads))
  await runSchedule({ seed, durationMs }, world, maker)

  say('no more trouble: waiting for the last answers')
  const faults: string[] = []
  const answered = await Promise.all(loads.map((load) => load.stop(answerMsMax)))
  if (answered.includes(false)) faults.push(`not every request got an answer within ${answerMsMax / 1000} s`)
  if (!(await settled(world, settleMsMax))) faults.push(`not everything was applied within ${settleMsMax / 1000} s`)
  for (const piece of Object.values(world.pieces)) faults.push(...piece.crashes)

  for (const error of errorsIn(join(folder, 'logs'))) say(`logged as an error: ${error}`)
  say('comparing the record with the database')
  const expectation = await readExpectation(loads)
  const verdict = check(expectation, await readStored(world))
  faults.push(...verdict.faults)
  for (const fault of faults.slice(0, faultsShown)) say(`  ${fault}`)
  if (faults.length > faultsShown) say(`  and ${faults.length - faultsShown} more`)
  say(
    `${expectation.events.size} events sent, ${expectation.operations.size} operations, ${expectation.stories.size} stories, ${expectation.deleted.size} customers deleted`,
  )
  return {
    ...verdict,
    faults,
    kills: maker.kills,
    acknowledged: expectation.acknowledged,
    unlisted: expectation.unlisted,
  }
}

async function runSchedule({ seed, durationMs }: Options, world: World, maker: Troublemaker): Promise<void> {
  const began = performance.now()
  const under: Promise<void>[] = []
  let last = began
  for (const trouble of scheduleOf(seed)) {
    const due = Math.min(last + trouble.afterMs, began + durationMs)
    await sleep(Math.max(0, due - performance.now()))
    if (trouble.isPatient) await Promise.race([allUp(world), sleep(patienceMsMax, undefined, { ref: false })])
    last = performance.now()
    if (last >= began + durationMs) break
    say(told(trouble, last - began))
    const made = maker.make(trouble)
    // Heard below, when all are over.
    made.catch(() => {})
    under.push(made)
  }
  await Promise.all(under)
}

async function canDelete({ access }: World): Promise<boolean> {
  const nobody = `${must(access.urls[0], 'there is a way')}/v1/customers/cus_00000000-0000-4000-8000-000000000000`
  const { status } = await fetch(nobody, { method: 'DELETE', headers: authorised(access) })
  return status === 404
}

/** What explains a failure stays: the record, and what the processes said. */
async function keep(folder: string): Promise<void> {
  const logs = join(folder, 'logs')
  for (const log of globSync('data/postgres/server.log', { cwd: folder }))
    cpSync(join(folder, log), join(logs, 'postgres.log'))
  for (const part of ['data', 'api', 'worker']) {
    const place = join(folder, part)
    if (existsSync(place)) await removeFolder(place)
    rmSync(place, { recursive: true, force: true })
  }
  say(`the record and the logs are in ${folder}`)
}

function say(words: string): void {
  console.log(words)
}
