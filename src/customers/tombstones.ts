import type { Sql } from '../db/pool.ts'
import { tombstonesPerSlice } from '../kernel/limits.ts'
import { selectTombstones, type Tombstone } from './tombstones-store.ts'

/** Every deleted distinct id there is, in slices. */
export async function* listTombstones(sql: Sql): AsyncIterable<Tombstone[]> {
  for (let after: { scopeId: number; hash: string } | null = { scopeId: 0, hash: '' }; after !== null; ) {
    const { tombstones, next } = await selectTombstones(sql, after, tombstonesPerSlice)
    yield tombstones
    after = next
  }
}
