import { deadTriesMax } from '../kernel/limits.ts'

/** The way to the one row that a slice fails on. */
export interface Search {
  /** Among so many rows behind the cursor is one that fails. */
  suspects: number
  /** The row that failed alone, by its seq, and how often. */
  alone: { seq: string; tries: number } | null
}

/** How many rows the next slice may take; all, when nothing is looked for. */
export function sliceRows(search: Search | null): number {
  return search === null ? Number.POSITIVE_INFINITY : Math.max(search.suspects >> 1, 1)
}

/** The slice of these rows was refused for good. */
export function afterFailure(search: Search | null, seqs: readonly [string, ...string[]]): Search {
  const [seq] = seqs
  if (seqs.length > 1) return { suspects: seqs.length, alone: null }
  const before = search?.alone?.seq === seq ? search.alone.tries : 0
  return { suspects: 1, alone: { seq, tries: before + 1 } }
}

/** A slice of so many rows went through: it was one of the others. */
export function afterSuccess(search: Search | null, rows: number): Search | null {
  return search !== null && search.suspects > rows ? { suspects: search.suspects - rows, alone: null } : null
}

/** The row has had its tries. */
export function isFound({ alone }: Search): boolean {
  return alone !== null && alone.tries >= deadTriesMax
}
