import type { Pool } from '../../db/pool.ts'
import { systemClock } from '../../kernel/clock.ts'
import { segmentAuditCustomers } from '../../kernel/limits.ts'
import { auditSegments } from './audit.ts'
import { lanesToAudit } from './audit-store.ts'

/** Audits random customers of every lane with segments, now. */
export async function auditAllSegments(
  pool: Pool,
  {
    keptDays,
    onWrong,
    signal,
  }: { keptDays: number; onWrong: (scopeId: number, customerId: string) => void; signal: AbortSignal },
): Promise<{ checked: number; repaired: number }> {
  const counts = { checked: 0, repaired: 0 }
  for (const scope of await lanesToAudit(pool, 0)) {
    if (signal.aborted) break
    const result = await auditSegments(pool, scope, {
      now: systemClock.now(),
      customers: segmentAuditCustomers,
      keptDays,
    })
    if (!result) continue
    for (const customerId of result.wrong) onWrong(scope.scopeId, customerId)
    counts.checked += result.checked
    counts.repaired += result.wrong.length
  }
  return counts
}
