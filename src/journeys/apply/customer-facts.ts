import { membershipsOf } from '../../customers/index.ts'
import type { Tx } from '../../db/pool.ts'
import type { JsonObject } from '../../events/index.ts'
import { nodesOf } from '../../experiences/index.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { PinnedPlan } from '../plan.ts'
import { selectProperties, selectServing } from '../store/facts-store.ts'
import type { CustomerFacts, Ms } from '../types.ts'
import type { ApplyServices } from './services.ts'

/** What expressions of plans look at. */
interface Reads {
  properties: Set<string>
  segments: Set<string>
  /** Those of an app: what a customer has may differ by platform. Null: none are read. */
  featuresIn: string | null
}

/**
 * What the plans read of their customers, by customer: what none of them reads is left out, so that what a transition notes
 * of its facts stays small. What can't be told, such as a segment that is still being counted, is not served: what asks for
 * it is unknown.
 */
export async function loadCustomerFacts(
  tx: Tx,
  scope: Scope,
  whose: readonly { plan: PinnedPlan; customerId: string; appId: string }[],
  _now: Ms,
  services: ApplyServices,
): Promise<Map<string, CustomerFacts>> {
  const reads = new Map<string, Reads>()
  for (const { plan, customerId, appId } of whose) {
    const { properties, segments, featuresIn } = reads.get(customerId) ?? noReads()
    const more = readsOf(plan)
    reads.set(customerId, {
      properties: new Set([...properties, ...more.properties]),
      segments: new Set([...segments, ...more.segments]),
      featuresIn: featuresIn ?? (more.readsFeatures ? appId : null),
    })
  }
  const askingFor = (asks: (one: Reads) => boolean) => [...reads].flatMap(([id, one]) => (asks(one) ? [id] : []))
  const properties = await selectProperties(
    tx,
    scope,
    askingFor((one) => one.properties.size > 0),
  )
  const memberships = await loadMemberships(tx, scope, reads)
  const asking = [...reads].flatMap(([customerId, { featuresIn: appId }]) =>
    appId === null ? [] : [{ customerId, appId }],
  )
  const features = asking.length > 0 ? await services.features?.(scope, asking) : undefined
  return new Map(
    [...reads].map(([customerId, own]) => {
      const had = features?.get(customerId)
      const facts: CustomerFacts = {
        properties: only(properties.get(customerId) ?? {}, own.properties),
        ...memberships(customerId, own.segments),
        ...(had === undefined ? {} : { features: had }),
      }
      return [customerId, facts]
    }),
  )
}

async function loadMemberships(tx: Tx, scope: Scope, reads: ReadonlyMap<string, Reads>) {
  const asking = [...reads].filter(([, { segments }]) => segments.size > 0)
  if (asking.length === 0) return () => ({})
  const named = new Set(asking.flatMap(([, { segments }]) => [...segments]))
  const serving = await selectServing(tx, scope, [...named])
  const found = await membershipsOf(
    tx,
    scope,
    asking.map(([customerId]) => customerId),
  )
  return (customerId: string, segments: ReadonlySet<string>) => {
    const since = new Map((found.get(customerId) ?? []).map((one) => [one.segmentId, one.since]))
    const served = [...segments].filter((id) => serving.has(id))
    return {
      memberships: Object.fromEntries(served.map((id) => [id, since.has(id)])),
      memberSince: Object.fromEntries(served.flatMap((id) => (since.has(id) ? [[id, since.get(id) ?? 0]] : []))),
    }
  }
}

function only(all: JsonObject, keys: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(all).filter(([key]) => keys.has(key)))
}

function noReads(): Reads {
  return { properties: new Set(), segments: new Set(), featuresIn: null }
}

interface PlanReads {
  properties: Set<string>
  segments: Set<string>
  readsFeatures: boolean
}

const known = new WeakMap<PinnedPlan, PlanReads>()

function readsOf(plan: PinnedPlan): PlanReads {
  const found = known.get(plan)
  if (found) return found
  const reads: PlanReads = { properties: new Set(), segments: new Set(), readsFeatures: false }
  const actions = Object.values(plan.steps).map(({ action }) => action)
  for (const { type, key, id } of nodesOf([actions, plan.policy])) {
    if ((type === 'User' || type === 'Customer.Field') && typeof key === 'string') reads.properties.add(key)
    if (type === 'Segment' && typeof id === 'string') reads.segments.add(id)
    if (type === 'Feature') reads.readsFeatures = true
  }
  for (const { until } of actions) {
    const property = typeof until === 'object' && until !== null && 'property' in until ? until.property : undefined
    if (typeof property === 'string') reads.properties.add(property)
  }
  known.set(plan, reads)
  return reads
}
