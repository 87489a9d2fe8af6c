import { entityIdBytesMax } from '../../kernel/limits.ts'
import { bump, type Change, fail, NeedsMore } from './change.ts'
import { fieldValue } from './fields.ts'

export interface Grant {
  featureId: string
  amount?: number
  unlimited?: true
  expiresAfterMs?: number
  entityField?: string
}

/** False: the journey has failed instead. Nothing that a client could have made up leads to units. */
export function grantFeature(change: Change, { featureId, amount, expiresAfterMs, entityField }: Grant): boolean {
  const { journey, facts, effects, now } = change
  if (journey.trust !== 'server') {
    fail(change, 'untrusted_grant', 'untrusted_grant')
    return false
  }
  const known = facts.grantable ?? {}
  if (!Object.hasOwn(known, featureId)) throw new NeedsMore({ grantable: [featureId] })
  if (!known[featureId]) {
    fail(change, 'failed', `feature_missing: ${featureId}`)
    return false
  }
  const entity = entityField === undefined ? null : fieldValue(journey.context, entityField)
  if (entity !== null && !isEntity(entity)) {
    fail(change, 'failed', `entity_missing: ${entityField}`)
    return false
  }
  const nth = effects.filter(({ kind }) => kind === 'grant').length
  effects.push({
    ...{ kind: 'grant', featureId, amount: amount ?? null, entityId: entity },
    // One grant of a transition has its bare name; the ledger takes each name once for a Feature.
    operationId: nth === 0 ? `jrn:${journey.id}:${journey.rev}` : `jrn:${journey.id}:${journey.rev}:${nth}`,
    expiresAt: expiresAfterMs === undefined ? null : now + expiresAfterMs,
  })
  bump(change)
  return true
}

function isEntity(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && Buffer.byteLength(value) <= entityIdBytesMax
}
