import { type Eraser, foreseeBirths, type MergeParticipant } from '../../customers/index.ts'
import type { Tx } from '../../db/pool.ts'
import type { Json } from '../../events/index.ts'
import type { Scope } from '../../tenancy/index.ts'
import {
  deleteExposureRows,
  deleteRowsOf,
  insertAssignmentRows,
  markCrossover,
  replaceExposureRows,
  type StoredRow,
  selectRows,
} from './participant-store.ts'

/** What a split needs: what the source had, and the exposures of the target that it met. */
type Moved = { assignments: StoredRow[]; exposures: StoredRow[]; met: StoredRow[] }

/**
 * On a merge the target's assignment stays, else it inherits; two that differ are a crossover. Of exposures the earliest
 * stays. On a split the source has again what it had; the target keeps what it was assigned, since it was shown it.
 */
export const experimentParticipant: MergeParticipant = {
  name: 'experiments',
  async merge(tx, scope, merges) {
    const moved: Json[] = []
    for (const { sourceCustomerId, targetCustomerId } of merges) {
      moved.push(await mergeOne(tx, scope, sourceCustomerId, targetCustomerId))
    }
    return moved
  },
  async split(tx, scope, { sourceCustomerId, targetCustomerId, how, moved, mergedAt }) {
    if (how === 'join' && moved !== null) await giveBack(tx, scope, { targetCustomerId, moved: moved as Moved }) // as merge gave it
    if (how !== 'rename') return
    const { assignments, exposures } = await selectRows(tx, scope, targetCustomerId)
    const own = (rows: StoredRow[], column: string) => rows.filter((row) => Number(row[column] ?? Infinity) <= mergedAt)
    const as = (rows: StoredRow[]) => rows.map((row) => ({ ...row, customer_id: sourceCustomerId }))
    await insertAssignmentRows(tx, scope, as(own(assignments, 'assigned_at_ms')))
    const seen = own(exposures, 'exposed_at_ms')
    await replaceExposureRows(tx, scope, as(seen))
    await deleteExposureRows(tx, scope, targetCustomerId, seen.map(phaseOf))
  },
}

async function mergeOne(tx: Tx, scope: Scope, sourceCustomerId: string, targetCustomerId: string): Promise<Json> {
  const source = await selectRows(tx, scope, sourceCustomerId)
  if (source.assignments.length + source.exposures.length === 0) return null
  const target = await selectRows(tx, scope, targetCustomerId)
  const assigned = new Map(target.assignments.map((row) => [keyOf(row), row]))
  const differing = source.assignments.filter((row) => {
    const there = assigned.get(keyOf(row))
    return there !== undefined && (there.variant_id !== row.variant_id || row.crossover === true)
  })
  const inherited = source.assignments.map((row) => ({ ...row, customer_id: targetCustomerId, reason: 'merged' }))
  await insertAssignmentRows(tx, scope, inherited)
  await markCrossover(tx, scope, targetCustomerId, differing.map(phaseOf))
  const seen = new Map(target.exposures.map((row) => [keyOf(row), row]))
  const met = source.exposures.map((row) => seen.get(keyOf(row))).filter((row) => row !== undefined)
  const joined = source.exposures.map((row) => ({
    ...earliest(row, seen.get(keyOf(row))),
    customer_id: targetCustomerId,
  }))
  await replaceExposureRows(tx, scope, joined)
  while (!(await deleteRowsOf(tx, scope, [sourceCustomerId])));
  return { ...source, met } satisfies Moved
}

/** Of two exposures of one phase. */
function earliest(a: StoredRow, b: StoredRow | undefined): StoredRow {
  if (!b) return a
  const first = Number(a.exposed_at_ms ?? Infinity) < Number(b.exposed_at_ms ?? Infinity) ? a : b
  const least = (column: string) => {
    const times = [a[column], b[column]].filter((time) => typeof time === 'number')
    return times.length === 0 ? null : Math.min(...times)
  }
  return { ...first, fallback_at_ms: least('fallback_at_ms'), mismatch_at_ms: least('mismatch_at_ms') }
}

async function giveBack(
  tx: Tx,
  scope: Scope,
  { targetCustomerId, moved }: { targetCustomerId: string; moved: Moved },
): Promise<void> {
  await insertAssignmentRows(tx, scope, moved.assignments)
  await replaceExposureRows(tx, scope, moved.exposures)
  const met = new Map(moved.met.map((row) => [keyOf(row), row]))
  const came = new Map(moved.exposures.map((row) => [keyOf(row), row]))
  const now = await selectRows(tx, scope, targetCustomerId)
  // What the target shows by the source's exposure alone goes back to what it had seen itself.
  const borrowed = now.exposures.filter((row) => row.exposed_at_ms === came.get(keyOf(row))?.exposed_at_ms)
  await deleteExposureRows(tx, scope, targetCustomerId, borrowed.map(phaseOf))
  await replaceExposureRows(
    tx,
    scope,
    borrowed.map((row) => met.get(keyOf(row))).filter((row) => row !== undefined),
  )
}

function keyOf({ experiment_id: experiment, phase }: StoredRow): string {
  return JSON.stringify([experiment, phase])
}

function phaseOf({ experiment_id: experiment, phase }: StoredRow): { experimentId: number; phase: number } {
  return { experimentId: Number(experiment), phase: Number(phase) }
}

/** Removes what deleted customers were assigned and have seen, and what their ids were dealt before they had a record. */
export const experimentEraser: Eraser = {
  name: 'experiments',
  async erase(tx, scope, { customerIds, distinctIds }) {
    const births = await foreseeBirths(tx.client, scope, distinctIds)
    const unborn = [...births.values()].map(({ customerId }) => customerId)
    return deleteRowsOf(tx, scope, [...customerIds, ...unborn])
  },
}
