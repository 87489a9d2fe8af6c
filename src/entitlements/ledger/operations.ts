import type pg from 'pg'
import type { RawRow } from '../../db/raw.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import { storedUnitsMax } from '../engine/units.ts'
import type { FeatureType, Ms, Units, UsageDecision, UsageMode } from '../types.ts'
import { selectLedgerAccounts } from './entries-store.ts'
import { type OperationPosition, selectNewestOperations, selectOperation, selectPayments } from './operations-store.ts'
import { type SavedReversal, savedReversal } from './saved-reversal.ts'
import { featureTypes, modeNumber } from './slot.ts'
import { selectSurvivor } from './usage-store.ts'

/** One grant's part of a spend, in its own stored units. */
export interface PaidPart {
  grantId: bigint
  feature: { key: string; scale: number }
  entityId: string | null
  period: bigint
  units: Units
  /** Its place among the operation's movements. */
  line: number
}

/** A saved decision, as it was given and is replayed, and who paid. */
export interface OperationRecord extends UsageDecision {
  scopeId: number
  operationId: string
  /** The record that the customer is today. */
  customerId: string
  featureKey: string
  entityId: string | null
  mode: UsageMode
  quantity: Units
  type: FeatureType
  occurredAt: Ms
  /** In draw order; empty when nothing was spent, or an unlimited grant was live. */
  paid: PaidPart[]
  reversal: SavedReversal | null
  /** Where it stands in lists. */
  position: string
}

/**
 * In whichever of the scopes it lies. Throws `not_found`, or `invalid_request` when several have one of this id.
 */
export async function getOperation(
  client: pg.ClientBase,
  scopes: Scope[],
  operationId: string,
): Promise<OperationRecord> {
  const [row, second] = await selectOperation(client, scopes, operationId)
  const scope = row && scopes.find(({ scopeId }) => scopeId === Number(row[0]))
  if (!row || !scope) throw refuse('not_found')
  if (second) {
    const message = 'project_id is required: several projects of the workspace have an operation of this id'
    throw refuse('invalid_request', { param: 'project_id', message })
  }
  const customerId = await selectSurvivor(client, scope.scopeId, row[2] ?? '')
  const records = await withPayments(client, scope, customerId ?? row[2] ?? '', [row])
  return must(records[0], 'one for one')
}

const positionPattern = /^(\d{1,16})_([0-9a-f]{64})$/
const latest: OperationPosition = { at: storedUnitsMax, tie: 'g' } // after every hexadecimal digit

/** A customer's, denials included, newest first; those of merged records too. `after` is an operation's position. */
export async function listOperations(
  client: pg.ClientBase,
  scope: Scope,
  customerId: string,
  { limit, after }: Page,
): Promise<OperationRecord[]> {
  const match = after === null ? null : positionPattern.exec(after)
  if (after !== null && !match) return []
  const before = match ? { at: BigInt(match[1] ?? 0), tie: match[2] ?? '' } : latest
  const rows = await selectNewestOperations(client, scope, customerId, { before, limit })
  return withPayments(client, scope, customerId, rows)
}

async function withPayments(
  client: pg.ClientBase,
  scope: Scope,
  customerId: string,
  rows: RawRow[],
): Promise<OperationRecord[]> {
  const records = rows.map((row) => recordOf(row, customerId))
  const spent = records.filter((record) => record.accepted)
  if (spent.length === 0) return records
  const accountIds = await selectLedgerAccounts(client, scope, { customerId, feature: null })
  const times = spent.map((record) => record.occurredAt)
  const found = await selectPayments(client, accountIds, {
    from: Math.min(...times),
    to: Math.max(...times),
    operationIds: spent.map((record) => record.operationId),
  })
  const byId = new Map(records.map((record) => [record.operationId, record]))
  for (const row of found) must(byId.get(row[0] ?? ''), 'one of those asked for').paid.push(partOf(row))
  return records
}

function recordOf(row: RawRow, customerId: string): OperationRecord {
  return {
    scopeId: Number(row[0]),
    operationId: row[1] ?? '',
    customerId,
    featureKey: row[3] ?? '',
    entityId: row[4] ?? null,
    mode: row[5] === String(modeNumber.set_usage) ? 'set_usage' : 'consume',
    quantity: BigInt(row[6] ?? 0),
    accepted: row[7] === 't',
    code: row[8] as UsageDecision['code'], // written from one
    type: must(featureTypes[Number(row[9])], 'a stored type'),
    balance: typeof row[10] === 'string' ? Number(row[10]) : null,
    unlimited: row[11] === 't',
    active: row[12] === 't',
    occurredAt: Number(row[13]),
    paid: [],
    reversal: typeof row[15] === 'string' ? savedReversal(row[15]) : null,
    position: `${row[13]}_${row[14]}`,
  }
}

function partOf([, grantId, period, delta, line, key, scale, entityId]: RawRow): PaidPart {
  return {
    grantId: BigInt(grantId ?? 0),
    feature: { key: key ?? '', scale: Number(scale) },
    entityId: entityId ?? null,
    period: BigInt(period ?? 0),
    units: -BigInt(delta ?? 0),
    line: Number(line),
  }
}
