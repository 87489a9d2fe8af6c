import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import {
  type Exposure,
  type KnownPhase,
  keyOf,
  selectAssigned,
  selectPhases,
  upsertExposures,
} from './exposure-store.ts'

/** Somebody was shown a variant, or held out. */
export interface SeenVariant {
  /** Id or key. */
  experiment: string
  customerId: string
  /** Null: what was assigned; with `isHoldout` only if that holds out. */
  variantId: string | null
  isHoldout: boolean
  /** Nothing was assigned: what was shown is the signed fallback. */
  fallback: boolean
  /** In Unix milliseconds, not in the future. */
  atMs: number
  /** Null: the server did it itself. */
  eventUuid: string | null
}

/**
 * Notes who has seen what. The first of a unit in a phase counts, if it is what the unit was assigned; what is shown without
 * an assignment, or against it, is noted beside it and never counts. What names nothing that ever ran is ignored.
 */
export async function recordExposures(tx: Tx, scope: Scope, seen: readonly SeenVariant[]): Promise<void> {
  if (seen.length === 0) return
  const phases = Map.groupBy(
    await selectPhases(tx, scope, [...new Set(seen.map(({ experiment }) => experiment))]),
    ({ name }) => name,
  )
  const placed = seen.flatMap((one) => {
    const phase = phaseAt(phases.get(one.experiment) ?? [], one.atMs)
    return phase ? [{ ...one, experimentId: phase.experimentId, phase: phase.phase }] : []
  })
  if (placed.length === 0) return
  const units = [...new Map(placed.map((one) => [keyOf(one), one])).values()]
  const assigned = new Map((await selectAssigned(tx, scope, units)).map((row) => [keyOf(row), row]))
  const exposures = new Map<string, Exposure>()
  for (const one of placed) {
    const { experimentId, phase, customerId } = one
    const key = keyOf(one)
    const known = exposures.get(key) ?? {
      ...{ experimentId, phase, customerId, counted: null, fallbackAtMs: null, mismatchAtMs: null },
    }
    exposures.set(key, joined(known, one, assigned.get(key)))
  }
  await upsertExposures(tx, scope, [...exposures.values()])
}

/** The phase that ran then. A clock that is behind saw the first one; after the last nothing is asked any more. */
function phaseAt(phases: readonly KnownPhase[], atMs: number): KnownPhase | undefined {
  const [first] = phases
  const own = phases.filter(({ experimentId }) => experimentId === first?.experimentId)
  const phase = own.findLast(({ startedAtMs }) => startedAtMs <= atMs) ?? first
  return phase && (phase.endedAtMs === null || atMs < phase.endedAtMs) ? phase : undefined
}

function joined(
  known: Exposure,
  { variantId, isHoldout, fallback, atMs, eventUuid }: SeenVariant,
  assigned: { variantId: string; isHoldout: boolean; assignedAtMs: number } | undefined,
): Exposure {
  if (fallback) return { ...known, fallbackAtMs: earlier(known.fallbackAtMs, atMs) }
  if (variantId === null) {
    return assigned && (assigned.isHoldout || !isHoldout) ? counting(known, assigned, { atMs, eventUuid }) : known
  }
  if (assigned?.variantId !== variantId || assigned.isHoldout !== isHoldout) {
    return { ...known, mismatchAtMs: earlier(known.mismatchAtMs, atMs) }
  }
  return counting(known, assigned, { atMs, eventUuid })
}

function counting(
  known: Exposure,
  { variantId, assignedAtMs }: { variantId: string; assignedAtMs: number },
  { atMs, eventUuid }: Pick<SeenVariant, 'atMs' | 'eventUuid'>,
): Exposure {
  // Nobody saw it before it was assigned: that clock is behind.
  const seenAtMs = Math.max(atMs, assignedAtMs)
  const { counted } = known
  const isFirst =
    counted === null ||
    seenAtMs < counted.atMs ||
    (seenAtMs === counted.atMs && (eventUuid ?? '~') < (counted.eventUuid ?? '~'))
  return isFirst ? { ...known, counted: { variantId, atMs: seenAtMs, eventUuid } } : known
}

function earlier(a: number | null, b: number): number {
  return a === null ? b : Math.min(a, b)
}
