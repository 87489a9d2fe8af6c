import { auditAllSegments } from '../customers/index.ts'
import { withDatabase } from './database.ts'
import { print } from './print.ts'

/**
 * `segments audit`: one line per customer that was put right, then one that sums up. Beside the service or without it; exit
 * code 1 when anything was wrong.
 */
export async function auditCommand(): Promise<void> {
  await withDatabase('segments audit', async ({ config, pool, signal }) => {
    const onWrong = (scopeId: number, customerId: string) => print(`repaired: lane=${scopeId} customer=${customerId}`)
    const { checked, repaired } = await auditAllSegments(pool, { keptDays: config.eventRetentionDays, onWrong, signal })
    print(`segments: ${repaired === 0 ? 'OK' : 'DIFFERENT'} checked=${checked} repaired=${repaired}`)
    if (repaired > 0) process.exitCode = 1
  })
}
