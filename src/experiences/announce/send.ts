import type { Pool } from '../../db/pool.ts'
import type { Log } from '../../events/index.ts'
import {
  announcementMs,
  announcementTriesMax,
  webhookLeaseMs,
  webhookRetryAfterMsMax,
  webhookRetryMsMin,
  webhooksAtOnce,
} from '../../kernel/limits.ts'
import { openTarget } from '../endpoints/endpoints.ts'
import { post } from '../endpoints/post.ts'
import {
  type Announcement,
  claimAnnouncements,
  deleteAnnouncement,
  postponeAnnouncement,
  selectNow,
} from './announcement-store.ts'

export interface AnnounceOptions {
  pool: Pool
  log: Log
  sealingKey: Buffer
  allowPrivate: boolean
}

/** Sends what is due; gives how many rows were taken. One whose sender dies is sent again, so that it may arrive twice. */
export async function sendAnnouncements(options: AnnounceOptions): Promise<number> {
  const { pool } = options
  const { rows, now } = await pool.transaction(async (tx) => {
    const at = await selectNow(tx)
    const lease = { now: at, limit: webhooksAtOnce, leaseMs: announcementMs + webhookLeaseMs }
    return { now: at, rows: await claimAnnouncements(tx, lease) }
  })
  await Promise.all(rows.map((row) => sendOne(options, row, now)))
  return rows.length
}

async function sendOne(options: AnnounceOptions, row: Announcement, at: number): Promise<void> {
  try {
    await tell(options, row, at)
  } catch (error) {
    // Its lease ends by itself: then it is sent again, under the same key.
    const { scopeId, endpointId } = row
    options.log.warn({ err: error, scopeId, endpointId }, 'an endpoint is told of an Experience later')
  }
}

async function tell(
  { pool, log, sealingKey, allowPrivate }: AnnounceOptions,
  row: Announcement,
  at: number,
): Promise<void> {
  const { scopeId, endpointId, key, body, attempts } = row
  const target = await openTarget(pool, row, sealingKey)
  // Nobody hears any more.
  if (!target) return deleteAnnouncement(pool, row)
  const result = await post({ ...target, key, body, timeoutMs: announcementMs, at, allowPrivate })
  if (!result.ok && result.again && attempts < announcementTriesMax) {
    const pause = Math.max(pauseMs(attempts), result.waitMs ?? 0)
    return postponeAnnouncement(pool, row, Math.ceil((await selectNow(pool)) + pause))
  }
  if (!result.ok) log.warn({ scopeId, endpointId, why: result.why }, 'an endpoint could not be told of an Experience')
  return deleteAnnouncement(pool, row)
}

/** Longer after each try, never together with others that failed at once. */
function pauseMs(attempts: number): number {
  return Math.min(webhookRetryMsMin * 2 ** (attempts - 1), webhookRetryAfterMsMax) * (0.75 + Math.random() / 4)
}
