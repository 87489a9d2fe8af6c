import { patchMany } from '../../customers/index.ts'
import type { Tx } from '../../db/pool.ts'
import { grantUnits, publishedFeatures } from '../../entitlements/index.ts'
import { appendEmitted } from '../../events/index.ts'
import { recordExposures } from '../../experiences/index.ts'
import { must } from '../../kernel/assert.ts'
import { uuidV5 } from '../../kernel/ids.ts'
import type { Scope } from '../../tenancy/index.ts'
import { tellEdits } from '../intake/touch.ts'
import { selectDistinctIds } from '../store/facts-store.ts'
import type { Ms } from '../types.ts'
import { effectsOf } from './effects-of.ts'
import type { ApplyServices } from './services.ts'
import type { Taken } from './work.ts'

/** Effects on what other modules keep, in the same transaction. Those that change properties come last: they hold the lane. */
export async function outside(
  tx: Tx,
  scope: Scope,
  taken: readonly Taken[],
  now: Ms,
  services: ApplyServices,
): Promise<void> {
  await grant(tx, scope, taken)
  await exposeAll(tx, scope, taken, now)
  await emit(tx, scope, taken, now, services)
  await edit(tx, scope, taken, now)
  for (const { effect, journey } of effectsOf(taken, 'alert')) {
    const { what, detail } = effect
    const journeyId = journey.id
    services.log.error({ scopeId: scope.scopeId, journeyId, what, detail }, 'a journey failed')
  }
}

async function grant(tx: Tx, scope: Scope, taken: readonly Taken[]): Promise<void> {
  const grants = effectsOf(taken, 'grant')
  if (grants.length === 0) return
  const keys = [...new Set(grants.map(({ effect }) => effect.featureId))]
  const found = await publishedFeatures(tx, scope, keys, () => 'featureId')
  const features = new Map(found.map((feature) => [feature.key, feature]))
  await grantUnits(
    tx,
    scope,
    grants.map(({ effect: { featureId, amount, expiresAt, entityId, operationId }, journey }) => {
      const feature = must(features.get(featureId), 'it was found')
      // Of a Feature that one has or has not there are no units.
      const units = feature.type === 'boolean' ? { allowance: null, unlimited: false } : unitsOf(amount)
      return {
        ...{ customerId: journey.customerId, feature, entityId, ...units, interval: null, rollover: null },
        ...{ startsAt: null, expiresAt, note: null },
        source: { origin: 'journey', ref: operationId, rank: 0, productId: null },
      }
    }),
  )
}

function unitsOf(amount: number | null) {
  return { allowance: amount === null ? null : BigInt(amount), unlimited: amount === null }
}

async function exposeAll(tx: Tx, scope: Scope, taken: readonly Taken[], now: Ms): Promise<void> {
  const exposures = effectsOf(taken, 'exposure')
  if (exposures.length === 0) return
  await recordExposures(
    tx,
    scope,
    exposures.map(({ effect: { experimentId, variantId, isHoldout, assigned }, journey: { customerId } }) => ({
      ...{
        experiment: experimentId,
        customerId,
        variantId,
        isHoldout,
        fallback: !assigned,
        atMs: now,
        eventUuid: null,
      },
    })),
  )
}

/** Any constant will do; another one would double what was emitted before. */
const emitNamespace = '5f0f2f0a-6a4e-4c55-9f0c-2f1d1c7f8a31'

async function emit(
  tx: Tx,
  scope: Scope,
  taken: readonly Taken[],
  now: Ms,
  { tombstoneKey, log }: ApplyServices,
): Promise<void> {
  const emitted = effectsOf(taken, 'append').flatMap(({ effect, journey }) =>
    effect.what === 'event' ? [{ effect, journey }] : [],
  )
  if (emitted.length === 0) return
  const customers = [...new Set(emitted.map(({ journey }) => journey.customerId))]
  const names = await selectDistinctIds(tx, scope, customers)
  const events = emitted.flatMap(({ effect: { index, eventName, properties, trust }, journey }) => {
    const distinctId = names.get(journey.customerId)
    // A customer whom no id names has no events.
    if (distinctId === undefined) return []
    const uuid = uuidV5(emitNamespace, `${scope.scopeId} ${journey.id}:${journey.rev}:${index}`)
    return [{ appId: journey.appId, distinctId, uuid, event: eventName, properties, trust, at: now }]
  })
  const refused = await appendEmitted(tx, scope, tombstoneKey, events)
  for (const { uuid, code } of refused) {
    log.error({ scopeId: scope.scopeId, uuid, code }, 'an event of a journey cannot be stored')
  }
}

/** At once, each at a position of the lane, as every edit. */
async function edit(tx: Tx, scope: Scope, taken: readonly Taken[], now: Ms): Promise<void> {
  const edits = effectsOf(taken, 'append').flatMap(({ effect, journey: { customerId } }) => {
    if (effect.what !== 'properties') return []
    const { set, setOnce, increment, unset } = effect
    return [{ customerId, edit: { set, set_once: setOnce, increment, unset } }]
  })
  if (edits.length > 0) await tellEdits(tx, scope, await patchMany(tx, scope, edits, now), now)
}
