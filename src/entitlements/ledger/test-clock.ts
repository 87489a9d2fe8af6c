import type { Tx } from '../../db/pool.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import { ensureMonths } from './partitions.ts'
import { upsertTestClock } from './test-clock-store.ts'

/**
 * Lets the time of a test environment run ahead, in the caller's transaction: of access, of what stores sign, of their polls. The caller announces it with
 * `touchCatalogue`. Throws `test_only`, and `conflict` for a clock that would go back: what was decided later stays so.
 */
export async function setTestClock(tx: Tx, scope: Scope, offsetMs: number): Promise<void> {
  if (scope.environment !== 'test') throw refuse('test_only', { message: 'Only a test environment has such a clock.' })
  if ((await upsertTestClock(tx, scope, offsetMs)).length === 0) {
    throw refuse('conflict', { param: 'offset_ms', message: 'A test clock never goes back.' })
  }
  await ensureMonths(tx, offsetMs)
}
