import { type HistogramCounts, histogram } from '../kernel/histogram.ts'
import type { SliceReport } from './turn.ts'

/** What a worker has done since it began. Structured-clonable. */
export interface LaneStats {
  slices: number
  rows: number
  applied: number
  duplicates: number
  dropped: number
  dead: number
  refusedMerges: number
  /** Seconds from receipt to the commit of the effects, by the clocks of the hosts. */
  acceptedToProcessed: HistogramCounts
  sliceSeconds: HistogramCounts
}

export interface LaneStatsTaker {
  observe: (slice: SliceReport) => void
  read: () => LaneStats
}

const seconds = [0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600]

export function laneStats(now: () => number): LaneStatsTaker {
  const sums = { slices: 0, rows: 0, applied: 0, duplicates: 0, dropped: 0, dead: 0, refusedMerges: 0 }
  const acceptedToProcessed = histogram(seconds)
  const sliceSeconds = histogram(seconds)
  return {
    observe(slice) {
      const at = now()
      sums.slices++
      sums.rows += slice.read
      sums.applied += slice.applied
      sums.duplicates += slice.duplicates
      sums.dropped += slice.dropped
      sums.dead += slice.dead
      sums.refusedMerges += slice.refusedMerges
      sliceSeconds.add(slice.ms / 1000)
      // An import is as old as its backlog, which has a gauge of its own.
      if (slice.stream === 'live')
        for (const received of slice.receivedAt) acceptedToProcessed.add((at - received) / 1000)
    },
    read: () => ({ ...sums, acceptedToProcessed: acceptedToProcessed.read(), sliceSeconds: sliceSeconds.read() }),
  }
}
