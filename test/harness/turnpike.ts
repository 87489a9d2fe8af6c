import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { openCluster } from '../../src/db/embedded/cluster.ts'
import { socketUrl } from '../../src/db/embedded/owner.ts'
import { findPostmaster } from '../../src/db/embedded/postmaster.ts'
import { must } from '../../src/kernel/assert.ts'
import type { FirstRun } from '../../src/setup.ts'

const root = join(import.meta.dirname, '../..')

/** What `npm start` gives to every start. */
const ambient = { PATH: process.env.PATH, NODE_COMPILE_CACHE: 'node_modules/.cache/turnpike' }

export interface RunOptions {
  dataDir: string
  /** Settings beside DATA_DIR; PORT is any free one unless given. */
  settings?: Record<string, string>
  /** Whom it runs as, and from which clone with which Node. */
  uid?: number | undefined
  gid?: number | undefined
  clone?: string
  node?: string
  /** Instead of Node itself: the program and its arguments that lead to it. */
  command?: readonly string[]
  /** Gets everything it writes, as it comes. */
  onOutput?: (text: string) => void
}

/** `npm start` without npm: the real command in a process of its own. Disposing ends it as an operator would, by SIGTERM. */
export interface RunningTurnpike extends AsyncDisposable {
  process: ChildProcess
  processId: number
  /** Resolves when it listens; rejects with what it said when it ended instead. */
  url: Promise<string>
  /** Everything it wrote so far. */
  out: () => string
  err: () => string
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

export function runTurnpike(options: RunOptions): RunningTurnpike {
  const { dataDir, settings = {}, clone = root, node = process.execPath, uid, gid, onOutput = () => {} } = options
  const [program = node, ...rest] = options.command ?? [node, 'src/main.ts', 'start']
  const child = spawn(program, rest, {
    ...(uid !== undefined && gid !== undefined ? { uid, gid } : {}),
    cwd: clone,
    env: { ...ambient, DATA_DIR: dataDir, PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said = { out: '', err: '' }
  const listening = Promise.withResolvers<string>()
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said.out += text
    onOutput(text)
    const [, url] = /"msg":"listening on (\S+)"/.exec(said.out) ?? []
    if (url) listening.resolve(url)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said.err += text
    onOutput(text)
  })
  const ended = once(child, 'close').then(([code, signal]) => {
    listening.reject(new Error(`it ended with ${code ?? signal}: ${said.err}${said.out}`))
    return { code, signal }
  })
  listening.promise.catch(() => {}) // for those who do not ask
  return {
    process: child,
    processId: must(child.pid, 'it was started'),
    url: listening.promise,
    out: () => said.out,
    err: () => said.err,
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

export async function readFirstRun(dataDir: string): Promise<FirstRun> {
  return JSON.parse(await readFile(join(dataDir, 'first-run.json'), 'utf8')) as FirstRun // its documented shape
}

/** The embedded PostgreSQL of a DATA_DIR: its main process, 0 when none runs, and its address. */
export async function postgresOf(dataDir: string): Promise<{ processId: number; url: string }> {
  const { data } = await openCluster(dataDir)
  const postmaster = findPostmaster(data)
  return {
    processId: postmaster?.runs ? postmaster.processId : 0,
    url: socketUrl(postmaster?.socketDirectory ?? '', 'turnpike'),
  }
}

/** For a service that is told of by its address, before and after it is started again. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // it listens on a port
  server.close()
  await once(server, 'close')
  return port
}

/** Calls the App API or the Workspace API with JSON. */
export async function call(
  url: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${url}${path}`, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: { 'content-type': 'application/json', ...headers },
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? {} : JSON.parse(text) }
}
