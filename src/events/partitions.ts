import type { Pool } from '../db/pool.ts'
import { eventMonthsAhead, logDaysAhead } from '../kernel/limits.ts'
import { createPartition, databaseTime, missingPartitions, type Partition } from './partitions-store.ts'

const dayMs = 86_400_000

/**
 * Makes the partitions that appends and the lane will need: of the log by day, from yesterday on, of events by month, from
 * last month on. Safe to call at any time from any number of processes.
 */
export async function ensurePartitions(pool: Pool): Promise<void> {
  const now = await databaseTime(pool)
  const days = Array.from({ length: logDaysAhead + 2 }, (_, n) => dayPartition(now + (n - 1) * dayMs))
  const months = Array.from({ length: eventMonthsAhead + 2 }, (_, n) => monthPartition(monthOf(now) + n - 1))
  await createMissing(pool, [...days, ...months])
}

/** Makes the partitions for events received in these months: clocks of other hosts may be anywhere, and no event may stop the lane. */
export async function ensureEventMonths(pool: Pool, months: Iterable<number>): Promise<void> {
  await createMissing(pool, [...months].map(monthPartition))
}

/** Months since January of year 0, of an instant in Unix milliseconds. */
export function monthOf(instant: number): number {
  const date = new Date(instant)
  return date.getUTCFullYear() * 12 + date.getUTCMonth()
}

async function createMissing(pool: Pool, partitions: Partition[]): Promise<void> {
  for (const partition of await missingPartitions(pool, partitions)) await createPartition(pool, partition)
}

function dayPartition(instant: number): Partition {
  const from = new Date(Math.floor(instant / dayMs) * dayMs)
  const name = `event_log_${from.toISOString().slice(0, 10).replaceAll('-', '')}`
  return { table: 'event_log', name, from, to: new Date(from.getTime() + dayMs) }
}

function monthPartition(month: number): Partition {
  const start = (n: number) => new Date(Date.UTC(Math.floor(n / 12), n % 12))
  const from = start(month)
  const name = `event_${from.toISOString().slice(0, 7).replaceAll('-', '')}`
  return { table: 'event', name, from, to: start(month + 1) }
}
