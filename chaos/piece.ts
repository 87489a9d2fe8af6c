import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RunningTurnpike, runTurnpike } from '../test/harness/turnpike.ts'

export interface PieceOptions {
  name: string
  dataDir: string
  settings?: Record<string, string>
  /** Where its output goes. */
  logFile: string
  /** Told its address at each start. */
  onUp: (url: string) => void
}

const startAgainMs = 250

/** One process of the service, brought back whenever it ends, as a supervisor would. */
export class Piece implements AsyncDisposable {
  readonly name: string
  /** How often it ended by itself after it had listened: it must never. */
  readonly crashes: string[] = []
  readonly #options: PieceOptions
  #running: RunningTurnpike
  #up: PromiseWithResolvers<void> = Promise.withResolvers()
  #killed = false
  #deadMs = 0
  #stopping = false
  #paused = false
  readonly #supervision: Promise<void>

  constructor(options: PieceOptions) {
    this.name = options.name
    this.#options = options
    this.#running = this.#start()
    this.#supervision = this.#supervise()
  }

  /** Resolves when it listens. */
  get up(): Promise<void> {
    return this.#up.promise
  }

  /** SIGKILL; it stays dead for that long. False when it was not running. */
  kill(deadMs: number): boolean {
    if (this.#killed || this.#running.process.exitCode !== null) return false
    this.#killed = true
    this.#deadMs = deadMs
    return this.#running.process.kill('SIGKILL')
  }

  /** SIGSTOP, and SIGCONT after that time, unless it was killed in between. */
  async pause(ms: number): Promise<void> {
    if (this.#paused) return
    this.#paused = true
    const { process } = this.#running
    process.kill('SIGSTOP')
    await sleep(ms)
    process.kill('SIGCONT')
    this.#paused = false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true
    this.#running.process.kill('SIGCONT')
    await this.#running[Symbol.asyncDispose]()
    await this.#supervision
  }

  #start(): RunningTurnpike {
    const { dataDir, settings = {}, logFile } = this.#options
    return runTurnpike({ dataDir, settings, onOutput: (text) => appendFileSync(logFile, text) })
  }

  async #supervise(): Promise<void> {
    for (;;) {
      const listened = await this.#running.url.then(
        (url) => {
          this.#options.onUp(url)
          this.#up.resolve()
          return true
        },
        () => false,
      )
      const { code, signal } = await this.#running.ended
      if (this.#stopping) return
      if (listened) this.#up = Promise.withResolvers()
      if (listened && !this.#killed) this.crashes.push(`${this.name} ended by itself with ${code ?? signal}`)
      await sleep(this.#killed ? this.#deadMs : startAgainMs)
      if (this.#stopping) return
      this.#killed = false
      this.#running = this.#start()
    }
  }
}
