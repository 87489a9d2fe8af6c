import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { namesJourney, type OriginClaim, originOf, sends } from '../measure/origin.ts'
import type { PinnedPlan } from '../plan.ts'
import type { InboxEvent, InboxRow } from './inbox.ts'
import { type KnownJourney, selectAuthored, selectJourneys, selectOffers } from './journeys-store.ts'
import type { Listener, Told } from './listen.ts'
import { isJourneyId } from './report.ts'

/**
 * For events that name a journey, or claim to come of one: the journey that they may convert, null when that is not so. Events
 * that name none are left out.
 */
export async function creditable(
  tx: Tx,
  scope: Scope,
  rows: readonly InboxRow[],
  plans: ReadonlyMap<string, PinnedPlan>,
): Promise<Map<InboxRow, string | null>> {
  const found = new Map<InboxRow, string | null>()
  const claims = new Map<InboxRow, OriginClaim>()
  for (const row of rows) {
    if (row.body.kind !== 'event') continue
    const { origin, uuid, properties, fact } = row.body
    // What the service itself states of a journey needs no device's word.
    if (fact || (origin === null && !namesJourney(properties))) continue
    found.set(row, null)
    const claim = originOf(origin, uuid)
    if (claim && isJourneyId(claim.journeyId)) claims.set(row, claim)
  }
  if (claims.size === 0) return found
  const asked = [...claims.values()]
  const journeys = await selectJourneys(
    tx,
    scope,
    asked.map(({ journeyId }) => journeyId),
  )
  const offerOf = await selectOffers(tx, scope, asked.filter(isGeneration))
  for (const [row, claim] of claims) {
    const journey = journeys.get(claim.journeyId)
    const plan = journey && plans.get(journey.buildId)
    const offer = isGeneration(claim) ? offerOf(claim) : undefined
    if (!journey || !plan || !offer || row.body.kind !== 'event') continue
    const agrees =
      journey.customerId === row.customerId &&
      journey.appId === row.body.appId &&
      plan.experiencePublicId === claim.experienceId &&
      plan.versionPublicId === claim.versionId &&
      offer.versionNumber === plan.versionNumber &&
      offer.legId === claim.legId
    if (!agrees) continue
    const leg = await selectAuthored(tx, scope, { buildId: plan.buildId, legId: claim.legId })
    if (leg && sends(leg, claim.source, row.body.name)) found.set(row, journey.id)
  }
  return found
}

function isGeneration({ generation }: OriginClaim): boolean {
  return Number.isInteger(generation) && generation >= 0 && generation < 2 ** 31
}

/** A screen of the Experience was seen: told to the journey that the event names, if all its ids agree. */
export function shownIn({ body }: InboxRow, listeners: readonly Listener[]): Told[] {
  if (body.kind !== 'event' || body.name !== '$experience_shown') return []
  const { properties, at, receivedAt, uuid } = body
  const text = (key: string) => (Object.hasOwn(properties, key) ? properties[key] : undefined)
  const named = text('journey_id')
  const version = text('experience_version_id') ?? text('experience_version')
  const shown = listeners.filter(({ journey, plan }) => {
    const isNamed = typeof named === 'string' && named.toLowerCase() === journey.id
    return (
      isNamed && text('experience_id') === plan.experiencePublicId && isVersion(version, plan) && isAt(body, journey)
    )
  })
  const occurredAt = Math.min(at, receivedAt)
  return shown.map(({ journey: { id } }) => ({
    journeyId: id,
    input: { kind: 'shown', eventId: uuid, occurredAt },
  }))
}

/** Some builds tell the number, some the id. */
function isVersion(version: unknown, { versionPublicId, versionNumber }: PinnedPlan): boolean {
  return version === versionPublicId || version === versionNumber || version === String(versionNumber)
}

function isAt({ appId, at }: InboxEvent, journey: KnownJourney): boolean {
  return appId === journey.appId && at >= journey.startedAt
}
