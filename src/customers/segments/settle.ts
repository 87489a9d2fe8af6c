import type { Tx } from '../../db/pool.ts'
import { segmentStepCustomers } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Transition } from './process.ts'
import { setOf } from './set-store.ts'
import { emptyState, parseState, stateText } from './state.ts'
import { insertChanges, selectStates, upsertStates } from './state-store.ts'
import type { Edge } from './step.ts'
import { endSettling, segmentsOfVersions, settleRows, type Unsettled, unsettledRows } from './steps-store.ts'

/**
 * Tells of what a new definition, or the end of one, made of up to 256 memberships. What events or timers have told of
 * meanwhile is not told twice: a change is told only where it differs from the last one.
 */
export async function takeSettlingStep(
  tx: Tx,
  scope: Scope,
  revision: string,
  { now, position, limit }: { now: number; position: () => Promise<bigint>; limit: number },
  about: (customerIds: string[]) => void,
): Promise<Transition[]> {
  const rows = await unsettledRows(tx, scope, limit)
  if (rows.length === 0) {
    await endSettling(tx, scope)
    return []
  }
  about([...new Set(rows.map((row) => row.customer_id))])
  const told = await tell(tx, scope, revision, rows)
  await settleRows(tx, scope, rows)
  if (told.length === 0) return []
  const pos = await position()
  await insertChanges(
    tx,
    scope,
    told.map((change) => ({ ...change, pos, at: now })),
  )
  return told.map(({ publicId, customerId, edge, cause }) => ({
    segmentId: publicId,
    customerId,
    edge,
    cause,
    pos,
    at: now,
  }))
}

/** Customers that cannot be told of now: what was not told is told when they are looked at again. */
export async function settleUntold(tx: Tx, scope: Scope, customerIds: readonly string[]): Promise<void> {
  const rows = await unsettledRows(tx, scope, segmentStepCustomers)
  const own = rows.filter((row) => customerIds.includes(row.customer_id))
  await settleRows(tx, scope, own)
}

interface Told {
  segmentId: number
  publicId: string
  customerId: string
  edge: Edge
  cause: 'backfill' | 'definition'
}

async function tell(tx: Tx, scope: Scope, revision: string, rows: readonly Unsettled[]): Promise<Told[]> {
  const set = await setOf(tx, scope, revision)
  const segments = await segmentsOfVersions(
    tx,
    scope,
    rows.map((row) => row.version_id),
  )
  const asked = new Map(rows.map((row) => [row.customer_id, false]))
  const stored = await selectStates(tx, scope, asked, { newWhole: false })
  const told: Told[] = []
  const texts: { customerId: string; text: string }[] = []
  for (const [customerId, own] of Map.groupBy(rows, (row) => row.customer_id)) {
    const text = stored.get(customerId)?.text ?? null
    const state = text === null ? emptyState() : parseState(text)
    for (const { version_id: versionId, replaced } of own) {
      const segment = segments.get(versionId)
      if (!segment) continue
      const { segmentId, publicId } = segment
      const serving = set.versions.find((version) => version.segmentId === segmentId && !version.pending)
      const is = serving !== undefined && state.members.has(serving.id)
      if (is === state.told.has(segmentId)) continue
      if (is) state.told.add(segmentId)
      else state.told.delete(segmentId)
      told.push({
        segmentId,
        publicId,
        customerId,
        edge: is ? 'entered' : 'left',
        cause: replaced ? 'definition' : 'backfill',
      })
    }
    const after = stateText(state)
    if (after !== text && stored.has(customerId)) texts.push({ customerId, text: after })
  }
  await upsertStates(tx, scope, texts)
  return told
}
