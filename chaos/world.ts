import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Pool } from '../src/db/pool.ts'
import { must } from '../src/kernel/assert.ts'
import { type CutProxy, cutProxy } from '../test/harness/cut-proxy.ts'
import { call, postgresOf, readFirstRun } from '../test/harness/turnpike.ts'
import { type CallerProxy, callerProxy } from './caller-proxy.ts'
import type { LoadConfig } from './load.ts'
import { Piece } from './piece.ts'
import { type Access, authorised } from './send.ts'
import { type ClientOptions, meterOf, spenders } from './turns.ts'

/**
 * The service as somebody runs it who has grown: one process with everything and the embedded PostgreSQL, an API process and
 * a worker beside it over the same database, callers in processes of their own, and a network that can fail before each.
 */
export interface World extends AsyncDisposable {
  dataDir: string
  pieces: { service: Piece; api: Piece; worker: Piece }
  /** Between callers and the two processes that serve them. */
  callers: CallerProxy[]
  /** Between the API process and the worker on one side and PostgreSQL on the other. */
  network: CutProxy
  /** Straight to the database. */
  pool: Pool
  projectId: string
  access: Access
}

export async function startWorld(folder: string): Promise<World> {
  await using stack = new AsyncDisposableStack()
  const dataDir = join(folder, 'data')
  const logs = join(folder, 'logs')
  mkdirSync(logs)
  const callers = [stack.use(await callerProxy()), stack.use(await callerProxy())]
  const [toService, toApi] = callers.map((proxy) => (url: string) => proxy.leadTo(url))
  const piece = (
    name: string,
    place: string,
    settings: Record<string, string>,
    onUp: (url: string) => void = () => {},
  ) => stack.use(new Piece({ name, dataDir: place, settings, logFile: join(logs, `${name}.log`), onUp }))

  const service = piece('service', dataDir, {}, toService)
  await soon(service.up)
  const { url } = await postgresOf(dataDir)
  const pool = stack.use(new Pool(url, { name: 'chaos', max: 2, settings: { statement_timeout: '300s' } }))
  const network = stack.use(await cutProxy(url))
  const masterKey = readFileSync(join(dataDir, 'master.key'), 'utf8').trim()
  const shared = { DATABASE_URL: network.url, MASTER_KEY: masterKey }
  const api = piece('api', join(folder, 'api'), { ...shared, ROLE: 'api' }, toApi)
  const worker = piece('worker', join(folder, 'worker'), { ...shared, ROLE: 'worker' })
  await soon(Promise.all([api.up, worker.up]))

  const { project_id: projectId, apps = [], secret_key: secretKey } = await readFirstRun(dataDir)
  const access = { urls: callers.map((proxy) => proxy.url), apiKeys: apps.map(({ keys }) => keys.test), secretKey }
  const everything = stack.move()
  return {
    ...{ dataDir, pieces: { service, api, worker }, callers, network, pool, access },
    projectId: must(projectId, 'the demo has a project'),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
}

const startMsMax = 120_000

/** Whoever does not start at all is told of by the logs. */
async function soon(up: Promise<unknown>): Promise<void> {
  const late = sleep(startMsMax, 'late', { ref: false })
  if ((await Promise.race([up, late])) === 'late') throw new Error(`it did not start within ${startMsMax / 1000} s`)
}

/** Resolves when every process listens. */
export async function allUp({ pieces }: World): Promise<void> {
  await Promise.all(Object.values(pieces).map(({ up }) => up))
}

/** Makes the customers whose units are spent. */
export async function makeSpenders({ access }: World, clients: number): Promise<void> {
  const url = must(access.urls[0], 'there is a way')
  for (const distinctId of [...spenders, ...Array.from({ length: clients }, (_, client) => meterOf(client))]) {
    const { status } = await call(url, '/v1/customers', { distinct_id: distinctId }, authorised(access))
    if (status !== 201) throw new Error(`a customer could not be made: ${status}`)
  }
}

export interface Load extends AsyncDisposable {
  record: string
  clients: ClientOptions[]
  flood(): void
  /** No more turns; resolves when every turn is answered, at the latest after `msMax`. Gives whether all were. */
  stop(msMax: number): Promise<boolean>
}

/** Starts a load process with these clients. */
export function startLoad(folder: string, { access }: World, clients: ClientOptions[]): Load {
  const name = `load-${clients[0]?.client}`
  const record = join(folder, `${name}.record`)
  const path = join(folder, `${name}.json`)
  writeFileSync(path, JSON.stringify({ ...access, clients, record } satisfies LoadConfig))
  const errors = openSync(join(folder, 'logs', `${name}.log`), 'a')
  const child: ChildProcess = spawn(process.execPath, [fileURLToPath(new URL('./load.ts', import.meta.url)), path], {
    stdio: ['pipe', 'ignore', errors],
  })
  // What is written to it when it has ended.
  child.stdin?.on('error', () => {})
  const ended = once(child, 'exit')
  return {
    ...{ record, clients },
    flood: () => void child.stdin?.write('flood\n'),
    async stop(msMax) {
      child.stdin?.write('stop\n')
      const late = setTimeout(() => child.kill('SIGKILL'), msMax)
      const [code] = await ended
      clearTimeout(late)
      return code === 0
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
