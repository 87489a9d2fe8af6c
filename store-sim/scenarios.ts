/**
 * `npm run store-sim:scenarios [-- names…]`: starts the service on an embedded database in a temporary folder and a
 * simulator, plays every scenario, and ends with 0 only when all went as told.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { playScenario, type Theatre } from './scenarios/play-scenario.ts'
import { readScenarios } from './scenarios/scenario.ts'
import type { Service } from './scenarios/stage.ts'
import { startStoreSim } from './start.ts'

const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'turnpike-scenarios-'))
const wanted = process.argv.slice(2)
const all = readScenarios().filter(({ name }) => wanted.length === 0 || wanted.includes(name))
if (all.length === 0) {
  console.error(`no scenario is called ${wanted.join(' or ')}`)
  process.exit(1)
}

let child: ChildProcess | undefined
/** The same address after every start: notifications have to find it again. */
let port = '0'
const sim = await startStoreSim({ seed: 'scenarios' })
try {
  const theatre: Theatre = { sim: sim.url, service: await start(), start, stop }
  let failed = 0
  for (const scenario of all) {
    const { name, passed, why } = await playScenario(theatre, scenario)
    console.log(passed ? `as told    ${name}` : `OTHERWISE  ${name}: ${why}`)
    if (!passed) failed += 1
  }
  console.log(`${all.length - failed} of ${all.length} scenarios went as told`)
  process.exitCode = failed === 0 ? 0 : 1
} finally {
  await stop()
  await sim[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
}

async function start(): Promise<Service> {
  child = spawn(process.execPath, ['src/main.ts', 'start'], {
    cwd: root,
    env: { PATH: process.env.PATH, DATA_DIR: join(folder, 'data'), PORT: port, DEMO: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await listening(child)
  port = new URL(url).port
  const firstRun: { secret_key: string } = JSON.parse(readFileSync(join(folder, 'data/first-run.json'), 'utf8'))
  return { workspaceBaseUrl: `${url}/v1`, secretKey: firstRun.secret_key, namespace: 'service' }
}

async function stop(): Promise<void> {
  const stopping = child
  child = undefined
  if (stopping === undefined || stopping.exitCode !== null) return
  stopping.kill('SIGTERM')
  await once(stopping, 'exit')
}

function listening({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('its output is piped')
  return new Promise((resolve, reject) => {
    let said = ''
    stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text
      const [, url] = /"msg":"listening on (\S+)"/.exec(said) ?? []
      if (url !== undefined) resolve(url)
    })
    stdout.on('end', () => reject(new Error(`the service did not start: ${said}`)))
  })
}
