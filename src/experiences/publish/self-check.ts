import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import { descriptorBytesMax, legStepsMax } from '../../kernel/limits.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import { type envelopeOf, type Identity, signedMessage } from '../compile/release.ts'
import { deviceActions, isPresenting } from '../draft/actions.ts'
import { Findings } from '../draft/findings.ts'
import { anything, boolean, list, map, object, pattern, type Shape, tagged, text, word } from '../draft/shape.ts'
import { jid } from '../draft/values.ts'
import { checkIr, nodesOf } from '../ir/grammar.ts'
import { isSignedBy } from '../keys/ed25519.ts'

type Envelope = ReturnType<typeof envelopeOf>

/**
 * What a client would refuse of a release, in words; undefined for a sound one. Looks at the bytes as they would arrive, and
 * asks nothing of what made them.
 */
export function checkRelease(
  names: WireNames,
  { legId, ...identity }: Identity & { legId: string },
  envelope: Envelope,
  key: { keyId: string; publicKey: Buffer },
): string | undefined {
  const { descriptorBytesBase64: encoded, signature } = envelope
  const bytes = Buffer.from(encoded, 'base64')
  const signed = Buffer.from(signature.signatureBase64, 'base64')
  if (envelope.mediaType !== names.journeyMediaType || envelope.encoding !== 'base64') return 'the envelope is another'
  if (bytes.toString('base64') !== encoded) return 'the descriptor is not canonical base64'
  if (bytes.length < 1 || bytes.length > descriptorBytesMax) return `the descriptor has ${bytes.length} bytes`
  if (bytes.length !== envelope.descriptorSizeBytes) return 'the size is another'
  if (hash('sha256', bytes) !== envelope.descriptorSha256) return 'the hash is another'
  if (signed.toString('base64') !== signature.signatureBase64 || signed.length !== 64) return 'the signature is none'
  if (signature.keyId !== key.keyId) return 'the key is unknown'
  if (!isSignedBy(key.publicKey, signedMessage(names, bytes), signed)) return 'the signature does not verify'
  const descriptor: unknown = JSON.parse(bytes.toString())
  if (!bytes.equals(Buffer.from(canonicalJson(descriptor)))) return 'the descriptor is not canonical'
  return checkDescriptor(names, descriptor, { identity, legId })
}

const digest = pattern('a digest', /^[a-f0-9]{64}$/)
const id = text()
const rid = text({ max: 128 })
const expression: Shape<unknown> = (value, path, findings) => checkIr(value, path, findings, 'device')
const empty = list(anything, { max: 0 })
const action = tagged('type', deviceActions)
const step = tagged('kind', {
  action: object({ id, action, outlets: map(id, { key: id, max: 65 }) }),
  complete: object({ id, outcome: id }),
})
const entryCondition = tagged('type', {
  app_foregrounded: object({}, { condition: expression }),
  always: object({}, { condition: expression }),
  event: object({ eventName: id }, { condition: expression }),
  segment: object({ segmentId: id, member: boolean }, { condition: expression }),
})
const field = object(
  { key: jid, type: text(), required: boolean },
  { enum: list(id, { min: 1, max: 256 }), options: list(id, { min: 1, max: 256 }), min: anything, max: anything },
)
const data = object({ eventFields: list(field, { max: 256 }), responseFields: list(field, { max: 256 }) })
const keys = list(id, { max: 10_000 })

function descriptorShape(names: WireNames) {
  return object({
    schemaVersion: word(names.releaseSchema),
    identity: anything,
    metadata: object(
      { name: id, appDefaultTimezone: rid },
      { experienceType: text({ max: 64 }), description: anything },
    ),
    presentation: object(
      { style: word('full_screen', 'sheet', 'drawer'), orientation: anything, backgroundColor: anything },
      { sheet: anything, drawer: anything },
    ),
    leg: object({
      schemaVersion: word(names.legSchema),
      id: digest,
      entryCondition,
      entryStepId: id,
      steps: list(step, { min: 1, max: legStepsMax }),
      routes: list(object({ host: tagged('kind', { journey: object({}) }), eventName: id, entryStepId: id }), {
        max: legStepsMax,
      }),
      ...{ screens: empty, offers: empty, outputs: empty },
      policy: object({ entry: anything, exitWhenAny: anything }, { goal: anything }),
      facts: object({ propertyKeys: keys, segmentIds: keys, experimentIds: keys }),
      inputs: data,
      completionOutputs: map(data, { key: id, max: 600 }),
    }),
    ...{ products: empty, placements: empty, viewModelValues: empty, screenBehaviors: empty, ruleGroups: empty },
    ...{ render: word(null), requirements: word(null), state: object({}), responses: object({}) },
    provenance: object({ compilerCommit: rid, compilerVersion: text({ max: 64 }) }),
  })
}

interface Descriptor {
  identity: unknown
  leg: {
    id: string
    entryCondition: unknown
    entryStepId: string
    steps: ({ id: string } & (
      | { kind: 'complete' }
      | { kind: 'action'; action: { type: string }; outlets: Record<string, string> }
    ))[]
    routes: { eventName: string; entryStepId: string }[]
    facts: { propertyKeys: string[]; segmentIds: string[]; experimentIds: string[] }
  }
}

function checkDescriptor(
  names: WireNames,
  value: unknown,
  { identity, legId }: { identity: Identity; legId: string },
): string | undefined {
  const findings = new Findings()
  descriptorShape(names)(value, '', findings)
  const [first] = findings.issues
  if (first) return `${first.path}: ${first.message}`
  const { leg, ...rest } = value as Descriptor // its shape was found right
  if (!isDeepStrictEqual(rest.identity, identity)) return 'the identity is not that of the locator'
  if (leg.id !== legId) return 'the leg is not that of the locator'
  const ids = new Set(leg.steps.map((one) => one.id))
  if (ids.size !== leg.steps.length) return 'a step id is used twice'
  const targets = leg.steps.flatMap((one) => (one.kind === 'action' ? Object.values(one.outlets) : []))
  const lost = [leg.entryStepId, ...leg.routes.map((route) => route.entryStepId), ...targets].find((to) => !ids.has(to))
  if (lost !== undefined) return `step ${lost} does not exist`
  if (new Set(leg.routes.map(({ eventName }) => eventName)).size !== leg.routes.length) return 'two routes are the same'
  if (leg.steps.some((one) => one.kind === 'action' && isPresenting(one.action.type)))
    return 'a step presents, without a screen'
  return checkFacts(leg)
}

/** The same walk as every client makes: what is declared is what is asked for. */
function checkFacts({ entryCondition: entry, steps, facts }: Descriptor['leg']): string | undefined {
  const asked = { propertyKeys: new Set<string>(), segmentIds: new Set<string>(), experimentIds: new Set<string>() }
  const note = (set: Set<string>, key: unknown) => typeof key === 'string' && set.add(key)
  for (const node of nodesOf([entry, steps])) {
    if (node.type === 'User' || node.type === 'Customer.Field') note(asked.propertyKeys, node.key)
    else if (node.type === 'Segment') note(asked.segmentIds, node.id)
    else if (node.type === 'segment') note(asked.segmentIds, node.segmentId)
    else if (node.type === 'experiment') note(asked.experimentIds, node.experimentId)
  }
  for (const kind of ['propertyKeys', 'segmentIds', 'experimentIds'] as const) {
    if (!isDeepStrictEqual(facts[kind], [...asked[kind]].toSorted()))
      return `the ${kind} are not those that the leg asks for`
  }
  return undefined
}
