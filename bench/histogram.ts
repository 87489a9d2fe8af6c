/** Buckets per doubling: neighbouring buckets are 1.1 % apart, finer than rounds repeat. */
const bucketsPerDoubling = 64
/** Up to 2^26 microseconds, about a minute; slower answers count as that. */
const doublings = 26

/** Latencies in logarithmic buckets: constant memory, a few nanoseconds each. */
export class Histogram {
  readonly #counts = new Uint32Array(bucketsPerDoubling * doublings + 1)
  #total = 0

  add(ms: number): void {
    const bucket = Math.round(Math.log2(Math.max(1, ms * 1000)) * bucketsPerDoubling)
    const kept = Math.min(bucket, this.#counts.length - 1)
    this.#counts[kept] = (this.#counts[kept] ?? 0) + 1
    this.#total++
  }

  /** Milliseconds below which the given share (0 to 1) of the latencies lies; 0 when there are none. */
  quantile(share: number): number {
    let left = share * this.#total
    for (const [bucket, count] of this.#counts.entries()) {
      left -= count
      if (count > 0 && left <= 0) return 2 ** (bucket / bucketsPerDoubling) / 1000
    }
    return 0
  }
}
