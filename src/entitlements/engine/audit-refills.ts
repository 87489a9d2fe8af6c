import type { Units } from '../types.ts'
import { entryIds } from './audit-grants.ts'
import type { AuditedEntry, AuditedGrant, AuditedRefill, Report } from './audit-rows.ts'

/** Every lapse has its row, which guards the refill, and what a settlement rolled over is in rollover grants. */
export function auditRefills(
  steps: readonly AuditedEntry[][],
  rows: readonly AuditedRefill[],
  grants: ReadonlyMap<bigint, AuditedGrant>,
  report: Report,
): void {
  const left = new Map(rows.map((row) => [`${row.grantId} ${row.periodNo}`, row]))
  for (const step of steps) auditStep(step, left, grants, report)
  for (const { grantId, periodNo } of left.values()) {
    report({ rule: 'refill', ids: { grant: grantId, period: periodNo }, expected: 'a lapse entry', found: 'none' })
  }
}

function auditStep(
  step: AuditedEntry[],
  left: Map<string, AuditedRefill>,
  grants: ReadonlyMap<bigint, AuditedGrant>,
  report: Report,
): void {
  const rolled = new Map<bigint, Units>()
  const roll = (parent: bigint | null | undefined, units: Units) => {
    if (parent !== null && parent !== undefined) rolled.set(parent, (rolled.get(parent) ?? 0n) + units)
  }
  for (const [i, entry] of step.entries()) {
    const { kind, grantId } = entry
    if (kind === 'rollover') roll(grants.get(grantId)?.rolledFrom, -entry.delta)
    if (kind === 'refill' && !step.slice(0, i).some((other) => other.kind === 'lapse' && other.grantId === grantId)) {
      report({ rule: 'refill', ids: entryIds(entry), expected: 'a lapse before it', found: 'none' })
    }
    if (kind !== 'lapse') continue
    const refill = step.slice(i).find((other) => other.kind === 'refill' && other.grantId === grantId)
    const key = `${grantId} ${(refill ?? entry).period}`
    const row = left.get(key)
    left.delete(key)
    if (row?.lapsed !== -entry.delta) {
      report({
        rule: 'refill',
        ids: entryIds(entry),
        expected: `a row of ${-entry.delta} lapsed`,
        found: row ? String(row.lapsed) : 'none',
      })
    }
    // A rollover grant that a newer one takes over gives its units to it.
    roll(refill ? grantId : grants.get(grantId)?.rolledFrom, row?.rolled ?? 0n)
  }
  for (const [grant, units] of rolled) {
    const first = step[0]
    if (units === 0n || !first) continue
    const ids = { ...entryIds(first), grant }
    report({ rule: 'refill', ids, expected: 'what was rolled, in rollover grants', found: `${units} apart` })
  }
}
