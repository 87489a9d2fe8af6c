import type { Pool } from '../db/pool.ts'
import { deadEventDays, logPassedDays, seenDaysMin, warningDays } from '../kernel/limits.ts'
import { databaseTime } from './partitions-store.ts'
import {
  alone,
  dropPartition,
  forgetDeadEvents,
  forgetSeen,
  forgetWarnings,
  hasWaitingRows,
  noteLeftBehind,
  type OldPartition,
  oldPartitions,
  passedSince,
} from './retention-store.ts'

const dayMs = 86_400_000
/** Events stay until their whole month is over; what tells their repeats must not go before them. */
const monthDaysMax = 31

export interface RetentionOptions {
  /** Of events, by the time of receipt. */
  eventDays: number
  /** For tests: Unix milliseconds instead of the database's clock. */
  now?: number
}

/** Names of the partitions that were dropped, and rows deleted elsewhere. */
export interface Forgotten {
  partitions: string[]
  seen: number
  deadEvents: number
  warnings: number
}

/**
 * Forgets what has had its time: days of the log that all lanes left behind a week ago, months of events, seen keys, dead
 * events and warnings. Never what is younger. Null: another process is at it.
 */
export async function forgetOldEvents(pool: Pool, { eventDays, now }: RetentionOptions): Promise<Forgotten | null> {
  const at = now ?? (await databaseTime(pool))
  const before = (days: number) => new Date(at - days * dayMs)
  return alone(pool, async (client) => {
    const partitions: string[] = []
    for (const day of await oldPartitions(client, 'event_log', new Date(at))) {
      if (!(await isForgettable(client, day, { now: new Date(at), passedBefore: before(logPassedDays) }))) continue
      await dropPartition(client, day)
      partitions.push(day.name)
    }
    for (const month of await oldPartitions(client, 'event', before(eventDays))) {
      await dropPartition(client, month)
      partitions.push(month.name)
    }
    return {
      partitions,
      seen: await forgetSeen(client, before(Math.max(eventDays, seenDaysMin) + monthDaysMax)),
      deadEvents: await forgetDeadEvents(client, before(deadEventDays)),
      warnings: await forgetWarnings(client, before(warningDays)),
    }
  })
}

/** Whether all lanes left the day behind so long ago. Notes when it was first seen that they had. */
async function isForgettable(
  client: Parameters<typeof hasWaitingRows>[0],
  day: OldPartition,
  { now, passedBefore }: { now: Date; passedBefore: Date },
): Promise<boolean> {
  if (day.state !== 'attached') return true
  if (await hasWaitingRows(client, day.name)) return false
  await noteLeftBehind(client, day.name, now)
  return (await passedSince(client, day.name)) < passedBefore
}
