import type { ChildProcess } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { systemClock } from '../kernel/clock.ts'
import { randomText } from '../kernel/ids.ts'
import { databaseQuitMsMax, databaseStartMsMax, databaseStopMsMax } from '../kernel/limits.ts'
import { StartError } from '../kernel/start-error.ts'
import { type Cluster, openCluster } from './embedded/cluster.ts'
import { answers, claim, socketUrl } from './embedded/owner.ts'
import { findPostmaster, lastWords, launch, removeLeft } from './embedded/postmaster.ts'
import { isAlive, signal } from './embedded/process.ts'
import { isRetryable } from './pool.ts'

export interface EmbeddedOptions {
  dataDir: string
  log: { info(message: string): void; warn(message: string): void; error(message: string): void }
  /** Gives up the start. */
  signal?: AbortSignal | undefined
}

/**
 * Starts the PostgreSQL of `dataDir`, makes it on the first start, takes it over when its Turnpike was killed, and keeps it
 * running until disposed. Throws StartError, also when another Turnpike owns it.
 */
export async function startEmbedded({ dataDir, log, signal }: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const folder = resolve(dataDir)
  const cluster = await openCluster(folder)
  const embedded = new EmbeddedPostgres({ cluster, dataDir: folder, log })
  try {
    await embedded.start(signal)
    return embedded
  } catch (error) {
    // Leaves nothing running that it has launched.
    await embedded[Symbol.asyncDispose]()
    throw error
  }
}

/** Longest address of a socket on every system (sun_path), without the socket's own name. */
const socketDirectoryBytesMax = 100 - '/.s.PGSQL.5432'.length
const pollMs = 10
const healPauseMsMax = 5000
/** How long the lock of a process that has just died may outlive it. */
const lockLingersMsMax = 10_000

export class EmbeddedPostgres implements AsyncDisposable {
  readonly #cluster: Cluster
  readonly #dataDir: string
  readonly #log: EmbeddedOptions['log']
  readonly #stopping = new AbortController()
  #socketDirectory: string
  #connection: pg.Client | undefined
  #processId = 0
  #launched: ChildProcess | undefined
  /** From the launch until the server is ours: when it ends in between, it could not start. */
  #starting = false
  #healing: Promise<void> | undefined

  constructor({ cluster, dataDir, log }: { cluster: Cluster; dataDir: string; log: EmbeddedOptions['log'] }) {
    this.#cluster = cluster
    this.#dataDir = dataDir
    this.#log = log
    const inside = join(cluster.home, 'socket')
    const fits = Buffer.byteLength(inside) <= socketDirectoryBytesMax
    this.#socketDirectory = fits ? inside : join(tmpdir(), `turnpike-${randomText(8)}`)
  }

  /** Address of the database `turnpike` on a socket that only the database's account (and root) can reach. */
  get url(): string {
    return socketUrl(this.#socketDirectory, 'turnpike')
  }

  /** Of PostgreSQL's main process. */
  get processId(): number {
    return this.#processId
  }

  /** Where the database lies. */
  get directory(): string {
    return this.#cluster.home
  }

  async start(signal?: AbortSignal): Promise<void> {
    const { home, account } = this.#cluster
    signal?.throwIfAborted()
    const giveUp = () => this.#stopping.abort(signal?.reason)
    signal?.addEventListener('abort', giveUp)
    await this.#acquire().finally(() => signal?.removeEventListener('abort', giveUp))
    const user = account ? `, running as user ${account.uid}` : ''
    this.#log.info(`embedded PostgreSQL in ${home}${user} (process ${this.#processId})`)
  }

  /** Stops PostgreSQL cleanly; what it could not write in time it recovers at the next start. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort()
    await this.#healing
    const launched = isRunning(this.#launched) ? this.#launched?.pid : undefined
    const processId = this.#connection ? this.#processId : launched
    if (processId !== undefined) await this.#stop(processId)
    await this.#connection?.end()
    if (!this.#socketDirectory.startsWith(this.#cluster.home))
      await rm(this.#socketDirectory, { recursive: true, force: true })
  }

  /**
   * Looks at what runs and does the next step, until a server runs that is ours: start one where none runs, wait for one that
   * starts or stops, take over one whose owner is gone.
   */
  async #acquire(): Promise<void> {
    const began = systemClock.now()
    let failure: unknown
    while (systemClock.now() - began < databaseStartMsMax) {
      this.#stopping.signal.throwIfAborted()
      const running = findPostmaster(this.#cluster.data)
      if (running?.runs === false) {
        // Process ids of another container mean nothing here, its socket does.
        if (await answers(running)) throw this.#inUse('of another container')
        removeLeft(this.#cluster.data)
        continue
      }
      if (running?.ready) {
        try {
          const ownership = await claim(running)
          if (ownership.kind === 'owner') return this.#own(ownership.connection, running)
          failure = this.#inUse(`process ${ownership.processId}`)
          if (ownership.isAlive || systemClock.now() - began > lockLingersMsMax) throw failure
        } catch (error) {
          // Between crash and recovery, about to go, or with every connection taken.
          if (!isRetryable(error)) throw error
          failure = error
        }
      } else if (running === undefined && !isRunning(this.#launched)) {
        if (this.#starting) failure = this.#explainEnd()
        this.#launched = launch(this.#cluster, this.#socketDirectory)
        this.#starting = true
      }
      await sleep(pollMs)
    }
    throw new StartError(`the database in ${this.#cluster.home} did not come up in time`, { cause: failure })
  }

  #inUse(by: string): StartError {
    return new StartError(`DATA_DIR ${this.#dataDir} is in use by another Turnpike (${by})`)
  }

  /** Why the server that was launched has ended. Thrown when another try would end the same way. */
  #explainEnd(): StartError {
    this.#starting = false
    const words = lastWords(this.#cluster.home)
    const error = new StartError(`PostgreSQL did not start: ${words} (${join(this.#cluster.home, 'server.log')})`)
    // Another start was faster, or processes of a killed server are still going.
    if (!/lock file|shared memory block/.test(words)) throw error
    return error
  }

  #own(connection: pg.Client, { processId, socketDirectory }: { processId: number; socketDirectory: string }): void {
    this.#starting = false
    this.#connection = connection
    this.#processId = processId
    this.#socketDirectory = socketDirectory
    connection.once('end', () => {
      if (this.#stopping.signal.aborted) return
      this.#connection = undefined
      this.#healing = this.#heal()
    })
  }

  /** The connection is lost only when the server, or a process of it, has died. Callers see connection errors meanwhile. */
  async #heal(): Promise<void> {
    this.#log.warn('PostgreSQL went away: bringing it back')
    for (let pauseMs = 100; !this.#stopping.signal.aborted; pauseMs = Math.min(pauseMs * 2, healPauseMsMax)) {
      try {
        await this.#acquire()
        this.#log.info(`PostgreSQL is back (process ${this.#processId})`)
        return
      } catch (error) {
        if (this.#stopping.signal.aborted) return
        this.#log.error((error as Error).message)
        await sleep(pauseMs, undefined, { signal: this.#stopping.signal }).catch(() => {})
      }
    }
  }

  async #stop(processId: number): Promise<void> {
    // Fast shutdown: ends connections, writes everything, leaves nothing to recover.
    signal(processId, 'SIGINT')
    if (await hasEnded(processId, databaseStopMsMax)) return
    this.#log.warn('PostgreSQL takes too long to stop: it will recover at the next start')
    signal(processId, 'SIGQUIT')
    await hasEnded(processId, databaseQuitMsMax)
  }
}

async function hasEnded(processId: number, msMax: number): Promise<boolean> {
  const deadline = systemClock.now() + msMax
  while (isAlive(processId) && systemClock.now() < deadline) await sleep(pollMs)
  return !isAlive(processId)
}

function isRunning(child: ChildProcess | undefined): boolean {
  return child?.pid !== undefined && child.exitCode === null && child.signalCode === null
}
