import type { Config } from './config.ts'
import { pendingMigrations } from './db/migrate.ts'
import type { Pool } from './db/pool.ts'
import { laneLag } from './events/index.ts'
import type { Check } from './http/app/health.ts'
import type { MetricsOptions } from './http/app/metrics.ts'

/** A worker that is further behind than this should not be called ready. */
const lagMsMax = 10 * 60_000

/** The named checks of `GET /ready`. Lag fails it only where the process runs the worker: others go on acknowledging. */
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

/** What `GET /metrics` tells beside requests and the process itself. */
export function metricsOf({ metricsToken }: Config, pool: Pool): MetricsOptions {
  return {
    token: metricsToken,
    gauges: [
      {
        name: 'turnpike_lane_lag_seconds',
        help: 'Age of the oldest acknowledged event that is not applied yet',
        read: async () => (await laneLag(pool)).lagMs / 1000,
      },
      {
        name: 'turnpike_lane_waiting_events',
        help: 'Acknowledged events that are not applied yet',
        read: async () => (await laneLag(pool)).rows,
      },
    ],
  }
}
