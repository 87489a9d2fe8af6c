import type { Logger } from 'pino'
import type { Pool } from '../db/pool.ts'
import type { Clock } from '../kernel/clock.ts'
import { markAppConnected, markKeyUsed } from './store.ts'
import type { AppScope, Environment } from './types.ts'

/** One write per key and per app in this time, whatever the traffic. */
const everyMs = 30_000

/** Remembers that keys were used and apps connected, without a write per request and without holding one up. */
export class Marks {
  readonly #pool: Pool
  readonly #clock: Clock
  readonly #log: Logger
  readonly #writtenAt = new Map<string, number>()

  constructor(pool: Pool, clock: Clock, log: Logger) {
    this.#pool = pool
    this.#clock = clock
    this.#log = log
  }

  keyUsed(kind: 'publishable' | 'secret', keyId: string): void {
    if (this.#due(keyId)) this.#write(markKeyUsed(this.#pool, kind, keyId), keyId)
  }

  /** Evidence that an app of this platform and environment reached the service: `last_connected_at`. */
  appConnected(app: AppScope): void {
    const mark = `${app.appId} ${app.environment satisfies Environment}`
    if (this.#due(mark)) this.#write(markAppConnected(this.#pool, app.appId, app.environment), mark)
  }

  #due(mark: string): boolean {
    const now = this.#clock.now()
    if (now - (this.#writtenAt.get(mark) ?? Number.NEGATIVE_INFINITY) < everyMs) return false
    this.#writtenAt.set(mark, now)
    return true
  }

  #write(writing: Promise<void>, mark: string): void {
    writing.catch((error: unknown) => {
      this.#writtenAt.delete(mark)
      this.#log.warn({ err: error }, 'a use mark could not be written')
    })
  }
}
