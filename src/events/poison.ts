import { isRetryable } from '../db/pool.ts'
import type { LogRow } from './lane-store.ts'
import { StaleSlice, type Stream } from './types.ts'

/** A slice that will fail again however often it is tried: nothing of it has happened. */
export class PoisonedSlice extends Error {
  readonly stream: Stream
  readonly rows: readonly LogRow[]

  constructor(stream: Stream, rows: readonly LogRow[], cause: unknown) {
    super('a slice cannot be applied', { cause })
    this.stream = stream
    this.rows = rows
  }
}

/** Neither somebody else's change nor a matter of time, connections or resources. */
export function isPoison(error: unknown): boolean {
  return !(error instanceof StaleSlice) && !isRetryable(error)
}
