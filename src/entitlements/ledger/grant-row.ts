import type { RawRow } from '../../db/raw.ts'
import { must } from '../../kernel/assert.ts'
import type { CycleUnit, Grant, GrantOrigin, Rollover } from '../types.ts'

/** The columns of a grant in the order `grantOf` reads them; `g` is the table's alias. */
export const grantColumns = `g.id, g.account_id, g.entity_id, g.origin, g.rank, g.unlimited, g.amount, g.remaining,
  g.effective_at_ms, g.expires_at_ms, g.paid_until_ms, g.cycle_unit, g.cycle_count, g.anchor_ms, g.period_no, g.rollover,
  g.revoked_at_ms, g.created_at_ms, g.rolled_from`

/** Reads a grant from the raw row, beginning at column `at`. Hot: converts text by hand. */
export function grantOf(row: RawRow, at: number): Grant {
  const unit = row[at + 11]
  return {
    id: BigInt(text(row, at)),
    accountId: BigInt(text(row, at + 1)),
    entityId: row[at + 2] ?? null,
    origin: text(row, at + 3) as GrantOrigin, // by the table's check
    rank: Number(row[at + 4]),
    unlimited: row[at + 5] === 't',
    amount: BigInt(text(row, at + 6)),
    remaining: BigInt(text(row, at + 7)),
    effectiveAt: Number(row[at + 8]),
    expiresAt: milliseconds(row[at + 9]),
    paidUntil: milliseconds(row[at + 10]),
    cycle: unit ? { unit: unit as CycleUnit, count: Number(row[at + 12]), anchor: Number(row[at + 13]) } : null, // by the table's check
    periodNo: BigInt(text(row, at + 14)),
    rollover: rolloverOf(row[at + 15]),
    revokedAt: milliseconds(row[at + 16]),
    createdAt: Number(row[at + 17]),
    rolledFrom: row[at + 18] ? BigInt(text(row, at + 18)) : null,
  }
}

function text(row: RawRow, at: number): string {
  return must(row[at], 'a not-null column')
}

function milliseconds(text: string | null | undefined): number | null {
  return text === null || text === undefined ? null : Number(text)
}

function rolloverOf(json: string | null | undefined): Rollover | null {
  if (json === null || json === undefined) return null
  const { max, periods } = JSON.parse(json) as { max: string | null; periods: number | null } // written by rolloverJson
  return { max: max === null ? null : BigInt(max), periods }
}

/** Units as decimal text: they may exceed what a JSON number holds exactly. */
export function rolloverJson(rollover: Rollover | null): string | null {
  return rollover && JSON.stringify({ max: rollover.max?.toString() ?? null, periods: rollover.periods })
}
