import type { Sql } from '../db/pool.ts'
import type { Plan } from '../experiences/index.ts'
import { isUuid } from '../kernel/ids.ts'
import { dayMs, offerKeptDays } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { type CurrentLeg, type DeliveredLeg, selectCurrentLeg, selectDeliveredLeg } from './offers-store.ts'

/** What a device says it is showing. */
export interface OfferQuestion {
  scope: Scope
  appId: string
  customerId: string
  journeyId: string
  versionId: string
  legId: string
  descriptorSha256: string
  placementId: string
}

/** What the signed descriptor says of the placement. */
export interface IntroOffer {
  storeProductId: string
  allow: boolean
}

/** The parts of a descriptor that sell something. */
interface Selling {
  placements: { id: string; productId: string; appStore?: { introEligibility?: string } }[]
  products: { id: string; type: string; store: { platform: string; productId: string } }[]
}

/**
 * The introductory offer of a placement whose eligibility its author has decided, where this customer may be looking at it;
 * null for every miss alike. Everything it tells comes from the bytes that were signed. A device enrols by itself and reports
 * later, so a journey that nobody has heard of may be one, in the first leg of what is, or lately was, published.
 */
export async function findIntroOffer(sql: Sql, question: OfferQuestion, now: number): Promise<IntroOffer | null> {
  const { scope, journeyId } = question
  const leg = await selectDeliveredLeg(sql, scope, question)
  if (!leg || !isUuidV7(journeyId)) return null
  const journey = await selectCurrentLeg(sql, scope, journeyId)
  const isTheirs = journey ? isIn(journey, leg, question) : isFirstLeg(leg, question.legId, now)
  return isTheirs ? offerIn(leg, question.placementId) : null
}

function isIn(journey: CurrentLeg, leg: DeliveredLeg, { customerId, appId, legId }: OfferQuestion): boolean {
  return (
    journey.customerId === customerId &&
    journey.appId === appId &&
    journey.experienceId === leg.experienceId &&
    journey.versionNumber === leg.versionNumber &&
    journey.legId === legId
  )
}

function isFirstLeg({ plan, replacedAt }: DeliveredLeg, legId: string, now: number): boolean {
  if (replacedAt !== null && now - replacedAt >= offerKeptDays * dayMs) return false
  const { isDeviceEnrolled, entry, sections } = JSON.parse(plan) as Plan // written from one
  return isDeviceEnrolled && sections[entry]?.legId === legId
}

function offerIn({ descriptor }: DeliveredLeg, placementId: string): IntroOffer | null {
  const { placements, products } = JSON.parse(descriptor) as Selling // our own compiler's
  const placement = placements.find(({ id }) => id === placementId)
  const product = products.find(({ id }) => id === placement?.productId)
  const word = placement?.appStore?.introEligibility
  const isDecided = word === 'alwaysEligible' || word === 'alwaysIneligible'
  if (!isDecided || product?.type !== 'subscription' || product.store.platform !== 'apple_app_store') return null
  return { storeProductId: product.store.productId, allow: word === 'alwaysEligible' }
}

function isUuidV7(text: string): boolean {
  return isUuid(text) && text[14] === '7' && /[89ab]/i.test(text[19] ?? '')
}
