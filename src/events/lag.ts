import type { Pool } from '../db/pool.ts'
import { type Backlog, selectBacklog } from './lag-store.ts'

export interface LaneLag extends Backlog {
  /** Imports are waited for apart. */
  historical: Backlog
}

/** How far processing is behind what was acknowledged, over all lanes: the oldest row's age and the rows (each lane counts up to 100,000). */
export async function laneLag(pool: Pool): Promise<LaneLag> {
  const [live, historical] = await Promise.all([selectBacklog(pool, 'live'), selectBacklog(pool, 'historical')])
  return { ...live, historical }
}
