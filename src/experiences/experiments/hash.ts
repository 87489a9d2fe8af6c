/** FNV-1a of 32 bits over UTF-16 code units, not bytes. */
export function fnv1a32(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/** Where a value falls in [0, 1): version 2 for variants, version 1 for namespaces; null for versions nobody knows. */
export function bucketOf(seed: string, value: string, version: number): number | null {
  if (version === 2) return (fnv1a32(`${fnv1a32(seed + value)}`) % 10_000) / 10_000
  return version === 1 ? (fnv1a32(value + seed) % 1000) / 1000 : null
}

/** From here, up to but not including there. */
export type Range = readonly [from: number, to: number]

/**
 * The range of each weight. Starts stay where they are whatever the coverage is, so that raising it moves nobody. Weights that
 * do not fit count as equal.
 */
export function rangesOf(count: number, weights: readonly number[] | null, coverage: number): Range[] {
  const sum = weights?.reduce((total, weight) => total + weight, 0) ?? 0
  const fit = weights?.length === count && sum >= 0.99 && sum <= 1.01
  const share = Math.min(Math.max(coverage, 0), 1)
  let start = 0
  return Array.from({ length: count }, (_, i) => {
    const weight = fit ? (weights[i] ?? 0) : 1 / count
    const range = [start, start + share * weight] as const
    start += weight
    return range
  })
}

/** The first range that a bucket is in; -1: none. */
export function rangeAt(bucket: number, ranges: readonly Range[]): number {
  return ranges.findIndex(([from, to]) => from <= bucket && bucket < to)
}

export interface Namespace {
  id: string
  start: number
  end: number
}

export function isInNamespace(value: string, { id, start, end }: Namespace): boolean {
  const bucket = bucketOf(`__${id}`, value, 1)
  return bucket !== null && start <= bucket && bucket < end
}
