/** How often values fell under each bound. `counts` has one entry more than `bounds`: what is above the last. */
export interface HistogramCounts {
  bounds: readonly number[]
  counts: number[]
  sum: number
}

export interface Histogram {
  add: (value: number) => void
  /** A copy. */
  read: () => HistogramCounts
}

/** `bounds` rise; a value equal to one counts under it. */
export function histogram(bounds: readonly number[]): Histogram {
  const counts = new Array<number>(bounds.length + 1).fill(0)
  let sum = 0
  return {
    add(value) {
      let i = 0
      while (i < bounds.length && value > (bounds[i] ?? 0)) i++
      counts[i] = (counts[i] ?? 0) + 1
      sum += value
    },
    read: () => ({ bounds, counts: [...counts], sum }),
  }
}
