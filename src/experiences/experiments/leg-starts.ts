import { LRUCache } from 'lru-cache'
import type { Tx } from '../../db/pool.ts'
import type { LaneEvent } from '../../events/index.ts'
import { versionsRememberedMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Draft } from '../draft/draft.ts'
import type { SeenVariant } from './expose.ts'
import { selectDrafts } from './leg-starts-store.ts'

/** What a version asks before it shows anything. Versions never change. */
interface Gates {
  holdout: string | null
  /** The experiment that its first step is. */
  first: string | null
}

const known = new LRUCache<string, Gates>({ max: versionsRememberedMax })

/**
 * Who began the first leg of an Experience has come to what stands before everything else: its holdout, and an experiment that
 * is its first step. Devices report an exposure when something is seen, so that nobody who is held out would be counted.
 */
export async function seenByStarting(tx: Tx, scope: Scope, slice: readonly LaneEvent[]): Promise<SeenVariant[]> {
  const starts = slice.flatMap((event) => {
    const { experience_version_id: versionId, leg_generation: generation } = event.payload.properties
    const isFirst = event.name === '$journey_leg_started' && event.live && generation === 0
    return isFirst && typeof versionId === 'string' ? [{ event, versionId }] : []
  })
  if (starts.length === 0) return []
  const keyOf = (versionId: string) => `${scope.scopeId} ${versionId}`
  const unread = [...new Set(starts.map(({ versionId }) => versionId))].filter((id) => !known.has(keyOf(id)))
  for (const { versionId, draft } of unread.length === 0 ? [] : await selectDrafts(tx, scope, unread)) {
    known.set(keyOf(versionId), gatesOf(JSON.parse(draft) as Draft)) // it was found right when it was frozen
  }
  return starts.flatMap(({ event: { customerId, at, receivedAt, uuid }, versionId }) => {
    const { holdout = null, first = null } = known.get(keyOf(versionId)) ?? {}
    const seen = {
      customerId,
      variantId: null,
      isHoldout: false,
      fallback: false,
      atMs: Math.min(at, receivedAt),
      eventUuid: uuid,
    }
    return [
      ...(holdout === null ? [] : [{ ...seen, experiment: holdout }]),
      // Of its other variants devices tell when they are seen.
      ...(first === null ? [] : [{ ...seen, experiment: first, isHoldout: true }]),
    ]
  })
}

function gatesOf({ policy, graph }: Draft): Gates {
  const action = graph.steps.find(({ id }) => id === graph.entry)?.action
  const first = action?.type === 'experiment' ? String(action.experimentId) : null
  return { holdout: policy.holdout ?? null, first }
}
