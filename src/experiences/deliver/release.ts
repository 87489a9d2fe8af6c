import { hash } from 'node:crypto'
import type { WireNames } from '../../kernel/wire-names.ts'
import type { DeclaredField } from '../compile/plan.ts'
import { envelopeOf, type Identity, signedMessage } from '../compile/release.ts'
import { isSignedBy } from '../keys/ed25519.ts'
import type { ReleaseRow } from './delivery-store.ts'

/** What profiles need of a descriptor. */
interface Descriptor {
  identity: Identity
  leg: {
    id: string
    entryCondition: unknown
    steps: { action?: { type: string; experimentId?: string; variants?: { id: string }[] } }[]
    facts: { propertyKeys: string[]; segmentIds: string[]; experimentIds: string[] }
    inputs: { eventFields: DeclaredField[]; responseFields: DeclaredField[] }
    policy: { goal?: object }
  }
}

/** A release as it goes into a profile. */
export interface DeliveredRelease {
  sha256: string
  legId: string
  experienceId: string
  seq: number
  /** JSON of the locator and the envelope, made once. */
  json: Buffer
  /** JSON of the signed entry condition. */
  entryCondition: string
  facts: Descriptor['leg']['facts']
  inputs: Descriptor['leg']['inputs']
  /** Its journeys are measured. */
  hasGoal: boolean
  /** By experiment: the variants that its steps list. */
  variants: Map<string, Set<string>>
}

/** With the first of the signatures that verifies; undefined when none does, or the bytes are not those of the hash and app. */
export function deliver(names: WireNames, appId: string, rows: ReleaseRow[]): DeliveredRelease | undefined {
  const sound = rows.find(({ sha256, descriptor, public_key: key, signature }) => {
    return hash('sha256', descriptor) === sha256 && isSignedBy(key, signedMessage(names, descriptor), signature)
  })
  if (!sound) return undefined
  const { sha256, descriptor: bytes, key_id: keyId, signature } = sound
  const { identity, leg } = JSON.parse(bytes.toString()) as Descriptor // it was checked before it was signed
  if (identity.appId !== appId) return undefined
  const { environment, experienceId, experienceVersionId, versionNumber, buildId } = identity
  const { publishedAt, publishedAtSeq } = identity
  const locator = {
    ...{ appId, environment, experienceId, experienceVersionId, versionNumber, buildId, publishedAt, publishedAtSeq },
    legId: leg.id,
  }
  const envelope = envelopeOf(names, { sha256, bytes }, { keyId, signature })
  return {
    ...{ sha256, legId: leg.id, experienceId, seq: publishedAtSeq },
    json: Buffer.from(JSON.stringify({ locator, envelope })),
    entryCondition: JSON.stringify(leg.entryCondition),
    ...{ facts: leg.facts, inputs: leg.inputs, hasGoal: leg.policy.goal !== undefined },
    variants: variantsOf(leg),
  }
}

function variantsOf({ steps }: Descriptor['leg']): Map<string, Set<string>> {
  const variants = new Map<string, Set<string>>()
  for (const { action } of steps) {
    if (action?.type !== 'experiment' || action.experimentId === undefined) continue
    const listed = variants.get(action.experimentId) ?? new Set()
    for (const { id } of action.variants ?? []) listed.add(id)
    variants.set(action.experimentId, listed)
  }
  return variants
}
