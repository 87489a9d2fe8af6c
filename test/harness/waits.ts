import { setTimeout as sleep } from 'node:timers/promises'
import type { Sql } from '../../src/db/pool.ts'

/** Until somebody waits for a lock in the database of `sql`, or `count` do; for ever when nobody does. */
export async function somebodyWaits(sql: Sql, count = 1): Promise<void> {
  for (;;) {
    const waiting = await sql.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    if (waiting.length >= count) return
    await sleep(5)
  }
}
