import type { Clock } from '../kernel/clock.ts'
import { type HistogramCounts, histogram } from '../kernel/histogram.ts'

/** What this process has appended. */
export interface LogStats {
  /** Seconds from the call to the COMMIT, refused calls left out. */
  ack: HistogramCounts
  /** Events for each transaction of singles. */
  groupEvents: HistogramCounts
  accepted: number
  refused: number
  /** Now in the queue or at work. */
  waitingEvents: number
}

const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const groups = [1, 2, 4, 8, 16, 32, 64, 128, 256]

export function logCounts(clock: Clock) {
  const ack = histogram(seconds)
  const groupEvents = histogram(groups)
  const sums = { accepted: 0, refused: 0, waitingEvents: 0 }
  return {
    group: (events: number) => groupEvents.add(events),
    /** Counts `events` in until `appending` is done. */
    async timed<T>(events: number, appending: Promise<T>): Promise<T> {
      const startedAt = clock.now()
      sums.waitingEvents += events
      try {
        const result = await appending
        ack.add((clock.now() - startedAt) / 1000)
        sums.accepted += events
        return result
      } catch (error) {
        sums.refused += events
        throw error
      } finally {
        sums.waitingEvents -= events
      }
    },
    read: (): LogStats => ({ ...sums, ack: ack.read(), groupEvents: groupEvents.read() }),
  }
}
