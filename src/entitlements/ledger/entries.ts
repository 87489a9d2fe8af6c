import type { Pool } from '../../db/pool.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import { storedUnitsMax } from '../engine/units.ts'
import type { Ms, Units } from '../types.ts'
import { type EntryPosition, selectEntries, selectLedgerAccounts } from './entries-store.ts'
import { detailOf, type EntryDetail } from './entry-detail.ts'

/** One immutable movement of one grant, in stored units. */
export interface LedgerEntry extends EntryDetail {
  /** Where it stands in the list: `at_account_version_line`. */
  position: string
  operationId: string | null
  grantId: bigint
  feature: { key: string; scale: number }
  entityId: string | null
  delta: Units
  remainingAfter: Units
  /** What moved it: grant, draw, refill, lapse … */
  kind: string
  at: Ms
}

export interface LedgerQuery {
  customerId: string
  /** Only of the Feature with this key. */
  feature: string | null
  operationId: string | null
  grantId: bigint | null
}

const positionPattern = /^(\d{1,16})_(\d{1,18})_(\d{1,18})_(\d{1,5})$/
const newest: EntryPosition = { at: storedUnitsMax, accountId: storedUnitsMax, version: storedUnitsMax, line: 32_767 }

/** Newest first. `after` is an entry's position; null of the page when it is none. */
export async function listEntries(
  pool: Pool,
  scope: Scope,
  { customerId, feature, operationId, grantId }: LedgerQuery,
  { limit, after }: Page,
): Promise<LedgerEntry[]> {
  const before = after === null ? newest : entryPosition(after)
  if (before === null) return []
  const rows = await pool.connected(async (client) => {
    const accountIds = await selectLedgerAccounts(client, scope, { customerId, feature })
    return selectEntries(client, accountIds, before, { operationId, grantId, limit })
  })
  return rows.map((row) => ({
    position: row.slice(0, 4).join('_'),
    at: Number(row[0]),
    operationId: row[4] ?? null,
    grantId: BigInt(row[5] ?? 0),
    feature: { key: row[6] ?? '', scale: Number(row[7]) },
    entityId: row[8] ?? null,
    delta: BigInt(row[9] ?? 0),
    remainingAfter: BigInt(row[10] ?? 0),
    kind: row[11] ?? '',
    ...detailOf(row[12]),
  }))
}

/** Reads `at_account_version_line`; null when the text is none. */
function entryPosition(text: string): EntryPosition | null {
  const match = positionPattern.exec(text)
  if (!match) return null
  const [, at, accountId, version, line] = match
  return { at: BigInt(at ?? 0), accountId: BigInt(accountId ?? 0), version: BigInt(version ?? 0), line: Number(line) }
}
