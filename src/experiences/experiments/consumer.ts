import type { Consumer, LaneEvent } from '../../events/index.ts'
import { recordExposures, type SeenVariant } from './expose.ts'
import { seenByStarting } from './leg-starts.ts'

/** Counts what devices report they have shown, and who came to a holdout. Imports tell of no experiment that runs here. */
export const countExposures: Consumer = async (tx, scope, slice) => {
  await recordExposures(tx, scope, [...slice.flatMap(seenIn), ...(await seenByStarting(tx, scope, slice))])
}

function seenIn({ name, live, customerId, at, receivedAt, uuid, payload }: LaneEvent): SeenVariant[] {
  if (name !== '$experiment_exposure' || !live) return []
  const { experiment_key: experiment, variant_key: variantId, assignment_source: source } = payload.properties
  const { is_holdout: isHoldout } = payload.properties
  if (typeof experiment !== 'string' || typeof variantId !== 'string') return []
  if (source !== 'profile' && source !== 'fallback') return []
  const atMs = Math.min(at, receivedAt)
  const fallback = source === 'fallback'
  return [{ experiment, customerId, variantId, isHoldout: isHoldout === true, fallback, atMs, eventUuid: uuid }]
}
