import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Experience } from '../authoring/experience-store.ts'
import { insertAnnouncements, selectHearers, selectNow } from './announcement-store.ts'

/** What endpoints may ask to hear of. */
export const announced = [
  'experience.published',
  'experience.paused',
  'experience.resumed',
  'experience.unpublished',
  'experience.archived',
] as const
export type Announced = (typeof announced)[number]

/** Where an Experience has changed; with what is live there now. */
export interface ChangedIn {
  appId: string
  version?: { id: string; number: number; seq: number }
}

/** Tells the endpoints that asked for it, after the commit: rows of the transaction that changes the Experience. */
export async function announce(
  tx: Tx,
  scope: Scope,
  type: Announced,
  { experience, changed }: { experience: Pick<Experience, 'publicId' | 'key' | 'name'>; changed: readonly ChangedIn[] },
): Promise<void> {
  const hearers = await selectHearers(tx, scope, type)
  if (hearers.length === 0) return
  const now = await selectNow(tx)
  const data = {
    ...{ project_id: scope.projectId, environment: scope.environment },
    ...{ experience_id: experience.publicId, key: experience.key, name: experience.name },
    apps: changed.map(({ appId, version }) => ({
      app_id: appId,
      ...(version && { version_id: version.id, version_number: version.number, published_at_seq: version.seq }),
    })),
  }
  const body = JSON.stringify({ type, timestamp: new Date(now).toISOString(), data })
  await insertAnnouncements(
    tx,
    scope,
    hearers.map((endpointId) => ({ endpointId, body })),
    now,
  )
}
