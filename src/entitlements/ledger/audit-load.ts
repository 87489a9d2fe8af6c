import type pg from 'pg'
import type { RawRow } from '../../db/raw.ts'
import { ownerKey } from '../engine/audit-index.ts'
import type { AuditedEntry, AuditedOperation, AuditedRefill, Standings } from '../engine/audit-rows.ts'
import type { FeatureType } from '../types.ts'
import {
  type Owner,
  selectAuditedAccounts,
  selectAuditedCosts,
  selectAuditedFeatures,
  selectAuditedGrants,
  selectCounters,
  selectRecords,
} from './audit-store.ts'
import { savedReversal } from './saved-reversal.ts'
import { featureTypes } from './slot.ts'

/** All that these customers have, and the records whose operations are theirs. */
export async function loadStandings(
  client: pg.ClientBase,
  owners: Owner[],
): Promise<{ standings: Standings; records: Owner[] }> {
  const recordRows = await selectRecords(client, owners)
  const records = recordRows.map(([scopeId, id]) => ({ scopeId: Number(scopeId), customerId: id ?? '' }))
  const scopeIds = [...new Set(owners.map(({ scopeId }) => scopeId))]
  const accounts = (await selectAuditedAccounts(client, records)).map(accountOf)
  const accountIds = accounts.map(({ id }) => id)
  const standings: Standings = {
    customers: new Map(records.map((record, i) => [ownerKey(record), recordRows[i]?.[2] ?? null])),
    features: (await selectAuditedFeatures(client, scopeIds)).map(featureOf),
    costs: (await selectAuditedCosts(client, scopeIds)).map(costOf),
    accounts,
    entities: (await selectCounters(client, accountIds)).map(counterOf),
    grants: (await selectAuditedGrants(client, accountIds)).map(grantOf),
  }
  return { standings, records }
}

export function auditedEntry(row: RawRow): AuditedEntry {
  return {
    at: Number(row[0]),
    scopeId: Number(row[1]),
    accountId: big(row[2]),
    version: big(row[3]),
    line: Number(row[4]),
    grantId: big(row[5]),
    period: big(row[6]),
    kind: row[7] ?? '',
    delta: big(row[8]),
    remaining: big(row[9]),
    operationId: row[10] ?? null,
  }
}

export function auditedOperation(row: RawRow): AuditedOperation {
  const isReversal = row[2] === '1'
  return {
    at: Number(row[0]),
    scopeId: Number(row[1]),
    ...(isReversal ? { returned: typeof row[16] === 'string' ? savedReversal(row[16]).returned : [] } : {}),
    operationId: row[3] ?? '',
    customerId: row[4] ?? '',
    featureKey: row[5] ?? '',
    featureType: featureTypes[Number(row[6])],
    entityId: row[7] ?? null,
    mode: row[8] === '1' ? 'set_usage' : 'consume',
    quantity: big(row[9]),
    accepted: row[10] === 't',
    code: row[11] ?? '',
    balance: typeof row[12] === 'string' ? BigInt(row[12]) : null,
    unlimited: row[13] === 't',
    active: row[14] === 't',
    version: big(row[15]),
  }
}

export function auditedRefill([at, grantId, periodNo, lapsed, rolled]: RawRow): AuditedRefill {
  return { at: Number(at), grantId: big(grantId), periodNo: big(periodNo), lapsed: big(lapsed), rolled: big(rolled) }
}

function accountOf([id, scopeId, customerId, featureId, used, lastAt, version, mergedInto, splitFrom]: RawRow) {
  return {
    id: big(id),
    scopeId: Number(scopeId),
    customerId: customerId ?? '',
    featureId: Number(featureId),
    used: big(used),
    lastAt: Number(lastAt),
    version: big(version),
    mergedInto: typeof mergedInto === 'string' ? BigInt(mergedInto) : null,
    splitFrom: typeof splitFrom === 'string' ? BigInt(splitFrom) : null,
  }
}

function featureOf([id, scopeId, key, type, scale]: RawRow) {
  return {
    id: Number(id),
    scopeId: Number(scopeId),
    key: key ?? '',
    type: type as FeatureType, // by the table's check
    scale: Number(scale),
  }
}

function costOf([system, member, credits, per, since]: RawRow) {
  return { system: Number(system), member: Number(member), credits: big(credits), per: big(per), since: Number(since) }
}

function counterOf([accountId, entityId, used]: RawRow) {
  return { accountId: big(accountId), entityId: entityId ?? '', used: big(used) }
}

function grantOf(row: RawRow) {
  return {
    id: big(row[0]),
    scopeId: Number(row[1]),
    accountId: big(row[2]),
    featureId: Number(row[3]),
    entityId: row[4] ?? null,
    rolledFrom: typeof row[5] === 'string' ? BigInt(row[5]) : null,
    unlimited: row[6] === 't',
    amount: big(row[7]),
    remaining: big(row[8]),
    effectiveAt: Number(row[9]),
    periodNo: big(row[10]),
    revokedAt: typeof row[11] === 'string' ? Number(row[11]) : null,
    hidden: row[12] === 't',
  }
}

function big(text: string | null | undefined): bigint {
  return BigInt(text ?? 0)
}
