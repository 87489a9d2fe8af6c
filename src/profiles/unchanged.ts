import type { Pool } from '../db/pool.ts'
import { verb } from '../db/verb.ts'
import type { Clock } from '../kernel/clock.ts'
import { queue } from './read.ts'
import { type Remembered, selectUnchanged } from './unchanged-store.ts'

/** The cheap question before the dear one: is everything as it was when the profile was assembled? */
export function createUnchanged({
  pool,
  clock,
}: {
  pool: Pool
  clock: Clock
}): (known: Remembered) => Promise<boolean> {
  return verb<Remembered, boolean>({
    ...queue,
    now: () => clock.now(),
    run: (items) => pool.connected((client) => selectUnchanged(client, items)),
  })
}
