import { isDeepStrictEqual } from 'node:util'
import type { Pool, Tx } from '../../db/pool.ts'
import { applyCommand } from '../../events/index.ts'
import type { Scope } from '../../tenancy/index.ts'
import { auditedCustomers, saveAudit } from './audit-store.ts'
import type { CompiledSet } from './compile.ts'
import { prune } from './leaf.ts'
import { countAgain, processVisits } from './process.ts'
import { laneBudget } from './scratch-store.ts'
import { setOf } from './set-store.ts'
import { type CustomerState, emptyState, parseState } from './state.ts'
import { type StoredCustomer, selectHeader, selectStates } from './state-store.ts'
import { lockLane } from './steps-store.ts'
import { close, open, type Visit } from './visit.ts'

export interface AuditResult {
  checked: number
  /** Customers whose counts or memberships were not what their events and properties say. */
  wrong: string[]
}

/**
 * Counts up to `customers` random customers of a lane again and compares with what was kept; what is wrong is put right in
 * the same transaction. `keptDays`: how long events are kept. Null where no segment is.
 */
export function auditSegments(
  pool: Pool,
  scope: Scope,
  { now, customers, keptDays }: { now: number; customers: number; keptDays: number },
): Promise<AuditResult | null> {
  return pool.transaction(async (tx) => {
    await lockLane(tx, scope)
    const header = await selectHeader(tx, scope, { dueBy: null, limit: 0 })
    if (!header) return null
    const set = await setOf(tx, scope, header.revision)
    const customerIds = await auditedCustomers(tx, scope, {
      customers,
      since: reachesBack(set) ? now - keptDays * 86_400_000 : null,
    })
    const { checked, wrong } = await findWrong(tx, scope, set, customerIds, now)
    if (wrong.length > 0) {
      const position = () => applyCommand(tx, scope, 'repair_segments', { customers: wrong.length })
      await processVisits(tx, scope, set, wrong.map(recountOf), { now, walkedTo: header.walkedTo, position })
    }
    await saveAudit(tx, scope, { checked, repaired: wrong.length })
    return { checked, wrong }
  })
}

/** Whether a definition counts without a window: then customers older than the kept events cannot be counted again. */
function reachesBack(set: CompiledSet): boolean {
  return set.versions.some(({ leaves }) =>
    leaves.some(({ leaf }) => 'event' in leaf && !('windowMs' in leaf && leaf.windowMs !== null)),
  )
}

/** Whoever has more events than one transaction may count is left out. */
async function findWrong(
  tx: Tx,
  scope: Scope,
  set: CompiledSet,
  customerIds: string[],
  now: number,
): Promise<{ checked: number; wrong: string[] }> {
  const stored = await selectStates(tx, scope, new Map(customerIds.map((id) => [id, true])), { newWhole: true })
  const opened = [...stored].map(([id, customer]) => {
    const at = { now: Math.max(now, stateOf(customer)?.now ?? 0), walkedTo: null }
    return open(set, recountOf(id), { text: null, properties: customer.properties }, at)
  })
  await countAgain(tx, scope, set, opened, { budget: laneBudget })
  const counted = opened.filter(({ again }) => again?.isWhole)
  const wrong = counted.flatMap((one) => {
    const { customerId } = one.visit
    const customer = stored.get(customerId)
    const kept = customer && stateOf(customer)
    const { state } = close(set, one).opened
    const isRight = kept && isDeepStrictEqual(keptOf(set, kept, state.now), keptOf(set, state, state.now))
    return isRight ? [] : [customerId]
  })
  return { checked: counted.length, wrong }
}

/** Null: it cannot be read. */
function stateOf({ text }: StoredCustomer): CustomerState | null {
  try {
    return text === null ? emptyState() : parseState(text)
  } catch {
    return null
  }
}

/** What serves, without what time has made meaningless. */
function keptOf(set: CompiledSet, { leaves, members, access }: CustomerState, now: number) {
  const serving = set.versions.filter(({ pending }) => !pending)
  const placed = serving.flatMap((version) => version.leaves)
  return {
    leaves: placed.map(({ id, leaf }) => prune(leaf, leaves.get(id), now)),
    members: serving.map(({ id }) => members.has(id)),
    access: [...set.features.keys()].map((feature) => access.get(feature)),
  }
}

function recountOf(customerId: string): Visit {
  return { customerId, events: [], keys: new Set(), whole: true, recount: true, cause: 'backfill', pos: null }
}
