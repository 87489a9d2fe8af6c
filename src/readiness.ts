import type { Config } from './config.ts'
import { pendingMigrations } from './db/migrate.ts'
import type { Pool } from './db/pool.ts'
import { laneLag, stoppedLanes } from './events/index.ts'
import type { Check } from './http/app/health.ts'

/** A worker that is further behind than this should not be called ready. */
export const lagMsMax = 10 * 60_000

/** The named checks of `GET /ready`. Lanes fail it only where the process runs the worker: others go on acknowledging. */
export function readinessOf(pool: Pool, role: Config['role']): () => Promise<Check[]> {
  return async () => [
    await check('database', async () => {
      await pool.query('select 1')
      return undefined
    }),
    await check('migrations', async () => {
      const pending = await pendingMigrations(pool)
      return pending.length === 0 ? undefined : `pending: ${pending.join(', ')}`
    }),
    await check('processing_lag', async () => {
      const { lagMs } = await laneLag(pool)
      return role.worker && lagMs > lagMsMax ? `${lagMs} ms behind` : undefined
    }),
    await check('lanes', async () => {
      const [stopped, ...others] = await stoppedLanes(pool)
      if (!role.worker || stopped === undefined) return undefined
      return `${1 + others.length} stopped, the first one because ${stopped.why}`
    }),
  ]
}

async function check(name: string, look: () => Promise<string | undefined>): Promise<Check> {
  try {
    const objection = await look()
    return objection === undefined ? { name, ok: true } : { name, ok: false, detail: objection }
  } catch {
    return { name, ok: false, detail: 'could not be checked' }
  }
}
