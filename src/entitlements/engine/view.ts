import type { Platform } from '../../tenancy/index.ts'
import type { Feature, FeatureType, Grant, Ms, State } from '../types.ts'
import { available } from './draw.ts'
import { endOf, nextReset, visible } from './grant.ts'
import { settled } from './settle.ts'
import { accountsOf, type Pools, type Standing, stateOf } from './state.ts'
import { jsonUnits } from './units.ts'

/** One entry of the profile's `features`. */
export interface ActiveFeature {
  /** The published key. */
  id: string
  type: FeatureType
  /** The same number an access decision gives. */
  balance: number | null
  unlimited: boolean
  nextResetAt: null
  interval: null
}

export interface ActiveFeatures {
  /** By id in the order of UTF-16 code units. */
  features: ActiveFeature[]
  /** Before this instant time alone changes nothing in `features`; null is for ever. At it something starts, ends or resets. */
  validUntil: Ms | null
}

/** The Features with live access on `platform`, also at balance 0: of a boolean one, being listed is the access. */
export function activeFeatures(
  catalogue: Pools & { published: ReadonlyMap<string, Feature> },
  platform: Platform,
  standing: Standing,
): ActiveFeatures {
  const features: ActiveFeature[] = []
  let validUntil = Number.POSITIVE_INFINITY
  const caller = { now: standing.now, accounts: standing.accounts, platform, entity: null }
  for (const feature of catalogue.published.values()) {
    const state = settled(stateOf(catalogue, feature, caller))
    if (!state.applies) continue
    const entry = activeFeature(state)
    if (entry !== null) features.push(entry)
    validUntil = Math.min(validUntil, nextTurn(state))
  }
  features.sort((a, b) => (a.id < b.id ? -1 : 1))
  return { features, validUntil: validUntil === Number.POSITIVE_INFINITY ? null : validUntil }
}

function activeFeature(state: State): ActiveFeature | null {
  const { key, type } = state.feature
  const { live, unlimited, units } = available(state)
  if (!live) return null
  const counted = type !== 'boolean' && !unlimited
  return {
    id: key,
    type,
    balance: counted ? jsonUnits(units) : null,
    unlimited: unlimited && type !== 'boolean',
    nextResetAt: null,
    interval: null,
  }
}

/** When time alone next moves a grant that the state looks at. */
function nextTurn(state: State): Ms {
  const seen = accountsOf(state).flatMap((account) => account.grants.filter((grant) => visible(grant, state.entity)))
  return seen.reduce((turn, grant) => Math.min(turn, turnOf(grant, state.now)), Number.POSITIVE_INFINITY)
}

function turnOf(grant: Grant, now: Ms): Ms {
  const end = endOf(grant) ?? Number.POSITIVE_INFINITY
  if (end <= now) return Number.POSITIVE_INFINITY
  if (now < grant.effectiveAt) return grant.effectiveAt
  // A full grant that rolls nothing over is full again after its reset.
  const resets = grant.remaining < grant.amount || grant.rollover !== null
  return Math.min(end, (resets ? nextReset(grant, now) : null) ?? end)
}
