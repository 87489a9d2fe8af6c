import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openCluster } from '../src/db/embedded/cluster.ts'
import { socketUrl } from '../src/db/embedded/owner.ts'
import { findPostmaster } from '../src/db/embedded/postmaster.ts'
import { must } from '../src/kernel/assert.ts'
import { systemClock } from '../src/kernel/clock.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
/** On the disk of the clone: a temporary folder may lie in memory, where fsync costs nothing. */
const results = join(root, 'bench/results')
const startMsMax = 60_000
const stopMsMax = 15_000
const pollMs = 50
/** Lines shown when something went wrong, and how much of each. */
const lastWordsMax = 5
const lineCharsMax = 400

/** What the first run writes for whoever started the service. */
export interface FirstRun {
  base_url: string
  workspace_base_url: string
  secret_key: string
  project_id: string
  apps: { id: string; platform: string; keys: { test: string; live: string } }[]
}

export interface Service {
  port: number
  processId: number
  /** Of PostgreSQL's main process. */
  postgresId: number
  firstRun: FirstRun
  /** Address of a database of its embedded PostgreSQL. */
  databaseUrl: (name: string) => string
  /** The last lines of its output. */
  lastWords: () => Promise<string>
  [Symbol.asyncDispose]: () => Promise<void>
}

/** Starts the service on an empty data folder, as `npm start` does; disposing stops it and removes the folder. */
export async function startService(): Promise<Service> {
  await mkdir(results, { recursive: true })
  const dataDir = await mkdtemp(join(results, 'data-'))
  const port = await freePort()
  const child = start(dataDir, port)
  try {
    await waitUntilReady(child, dataDir, port)
    const { data } = await openCluster(dataDir)
    const postmaster = must(findPostmaster(data), 'the embedded PostgreSQL runs')
    return {
      port,
      processId: must(child.pid, 'the service has a process id'),
      postgresId: postmaster.processId,
      firstRun: JSON.parse(await readFile(join(dataDir, 'first-run.json'), 'utf8')) as FirstRun, // its documented shape
      databaseUrl: (name) => socketUrl(postmaster.socketDirectory, name),
      lastWords: () => lastWords(dataDir),
      [Symbol.asyncDispose]: () => stop(child, dataDir),
    }
  } catch (error) {
    await stop(child, dataDir)
    throw error
  }
}

function start(dataDir: string, port: number): ChildProcess {
  const log = openSync(join(dataDir, 'service.log'), 'a')
  try {
    return spawn(process.execPath, ['src/main.ts', 'start'], {
      cwd: root,
      // One caller asks more than any backend may.
      env: { ...process.env, PORT: String(port), DATA_DIR: dataDir, DEMO: '1', WORKSPACE_RATE_LIMIT: '0' },
      stdio: ['ignore', log, log],
      // Ctrl-C is passed on by us, once everything that uses the database has stopped.
      detached: true,
    })
  } finally {
    closeSync(log)
  }
}

async function waitUntilReady(child: ChildProcess, dataDir: string, port: number): Promise<void> {
  const deadline = systemClock.now() + startMsMax
  while (systemClock.now() < deadline) {
    if (child.exitCode !== null) break
    const ready = await fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined)
    await ready?.arrayBuffer()
    if (ready?.status === 200) return
    await sleep(pollMs)
  }
  throw new Error(`the service did not become ready; its last words:\n${await lastWords(dataDir)}`)
}

async function lastWords(dataDir: string): Promise<string> {
  const said = await readFile(join(dataDir, 'service.log'), 'utf8')
  const lines = said.trim().split('\n').slice(-lastWordsMax)
  return lines.map((line) => line.slice(0, lineCharsMax)).join('\n')
}

async function stop(child: ChildProcess, dataDir: string): Promise<void> {
  await end(child)
  const { home } = await openCluster(dataDir)
  await rm(home, { recursive: true, force: true })
  await rm(dataDir, { recursive: true, force: true })
}

/** A floor: a server in a process of its own over a database of its own. */
export interface Floor {
  port: number
  processId: number
  [Symbol.asyncDispose]: () => Promise<void>
}

const floors = {
  echo: new URL('./floors/echo.ts', import.meta.url),
  naive: new URL('./floors/naive.ts', import.meta.url),
}

/** Starts a floor, which tells its port on its first line. */
export async function startFloor(name: keyof typeof floors, databaseUrl: string): Promise<Floor> {
  const child = spawn(process.execPath, [fileURLToPath(floors[name]), databaseUrl], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await Promise.race([
    once(createInterface(child.stdout), 'line'),
    once(child, 'exit').then(() => {
      throw new Error(`the ${name} server did not start`)
    }),
  ])
  return {
    port: (JSON.parse(String(line)) as { port: number }).port, // written by floors/listen.ts
    processId: must(child.pid, 'the floor has a process id'),
    [Symbol.asyncDispose]: () => end(child),
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const late = setTimeout(() => child.kill('SIGKILL'), stopMsMax)
  await ended
  clearTimeout(late)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return must(typeof address === 'object' ? address?.port : undefined, 'a port was given')
}
