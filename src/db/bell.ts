import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/** A connection that listens, and a pause that a notification ends. */
export interface Bell extends AsyncDisposable {
  /** Listens; again after the connection was lost. Throws when the database is away. */
  open: () => Promise<void>
  /** Waits for a ring since the last wait, at most so long. */
  rung: (signal: AbortSignal, msMax: number) => Promise<void>
}

/** Rings at every notification of the channel. Rings may be lost: whoever waits looks by itself too. */
export function createBell(url: string, { channel, name }: { channel: string; name: string }): Bell {
  let client: pg.Client | null = null
  let ring = () => {}
  let rang = false
  return {
    async open() {
      if (client !== null) return
      const opening = new pg.Client({
        connectionString: url,
        application_name: `turnpike ${name}`,
        connectionTimeoutMillis: 2000,
      })
      const lost = () => {
        if (client === opening) client = null
      }
      opening.on('error', lost)
      opening.on('end', lost)
      opening.on('notification', () => {
        rang = true
        ring()
      })
      client = opening
      try {
        await opening.connect()
        await opening.query(`listen ${channel}`)
      } catch (error) {
        lost()
        void opening.end().catch(() => {})
        throw error
      }
    },
    async rung(signal, msMax) {
      const { promise, resolve } = Promise.withResolvers<void>()
      ring = resolve
      if (!rang) await Promise.race([promise, sleep(msMax, undefined, { signal }).catch(() => {})])
      rang = false
    },
    async [Symbol.asyncDispose]() {
      await client?.end()
    },
  }
}
