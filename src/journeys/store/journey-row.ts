import type { Journey } from '../types.ts'

/** In the order of `journeyColumns`, as text. */
export const journeyColumns = `id, customer_id, app_id, experience_id, version_number, build_id, origin, occurrence, status,
  end_reason, end_detail, rev, generation, section_key, step_id, trust, held, context, conversion, pending, started_at_ms,
  expires_at_ms, ended_at_ms, watched_until_ms`

/** A row as PostgreSQL sends it. Only this module writes them, so what they hold has its types. */
export function journeyOf(row: (string | null)[], from = 0): Journey {
  const text = (i: number) => row[from + i] ?? ''
  const optional = (i: number) => row[from + i] ?? null
  const number = (i: number) => Number(row[from + i])
  const instant = (i: number) => (row[from + i] == null ? null : Number(row[from + i]))
  return {
    ...{ id: text(0), customerId: text(1), appId: text(2), experienceId: number(3), versionNumber: number(4) },
    ...{ buildId: text(5), origin: text(6) as Journey['origin'], occurrence: text(7) },
    ...{
      status: text(8) as Journey['status'],
      endReason: optional(9) as Journey['endReason'],
      endDetail: optional(10),
    },
    ...{ rev: number(11), generation: number(12), sectionKey: optional(13), stepId: optional(14) },
    ...{ trust: text(15) as Journey['trust'], held: text(16) === 't' },
    ...{
      context: JSON.parse(text(17)) as Journey['context'],
      conversion: JSON.parse(text(18)) as Journey['conversion'],
    },
    ...(JSON.parse(text(19)) as Pick<Journey, 'wait' | 'timers'>),
    ...{ startedAt: number(20), expiresAt: number(21), endedAt: instant(22), watchedUntil: instant(23) },
  }
}

export function pendingText({ wait, timers }: Journey): string {
  return JSON.stringify({ wait, timers })
}
