import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import { descriptorBytesMax, jsonDepthMax, legStepsMax } from '../../kernel/limits.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import { type envelopeOf, type Identity, signedMessage } from '../compile/release.ts'
import { deviceActions, isPresenting } from '../draft/actions.ts'
import { Findings } from '../draft/findings.ts'
import { depthOf } from '../draft/safe-values.ts'
import { anything, boolean, bytes, list, map, object, pattern, type Shape, tagged, text, word } from '../draft/shape.ts'
import { jid } from '../draft/values.ts'
import { checkIr, nodesOf } from '../ir/grammar.ts'
import { isSignedBy } from '../keys/ed25519.ts'
import { checkShowing, type ShowingParts, showingShapes } from './check-showing.ts'

type Envelope = ReturnType<typeof envelopeOf>

/**
 * What a client would refuse of a release, in words; undefined for a sound one. Looks at the bytes as they would arrive, and
 * asks nothing of what made them.
 */
export function checkRelease(
  names: WireNames,
  { legId, ...identity }: Locator,
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
  if (depthOf(descriptor) > jsonDepthMax) return `the descriptor is nested deeper than ${jsonDepthMax}`
  return checkDescriptor(names, descriptor, { identity, legId })
}

type Locator = Identity & { legId: string }

/** `checkRelease` that looks at equal releases once. */
export type ReleaseCheck = (locator: Locator, envelope: Envelope) => string | undefined

export function createReleaseCheck(names: WireNames, key: { keyId: string; publicKey: Buffer }): ReleaseCheck {
  const known = new Map<string, string | undefined>()
  return (locator, envelope) => {
    const text = canonicalJson([locator, envelope])
    if (!known.has(text)) known.set(text, checkRelease(names, locator, envelope, key))
    return known.get(text)
  }
}

const digest = pattern('a digest', /^[a-f0-9]{64}$/)
const id = text()
const rid = text({ max: 128 })
const expression: Shape<unknown> = (value, path, findings) => checkIr(value, path, findings, 'device')
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

const host = tagged('kind', { journey: object({}), screen: object({ screenId: id }) })
const screen = object(
  { id, responseCaptures: list(bytes(128), { max: 256 }) },
  { defaultViewModelName: id, defaultInstanceId: id },
)
const offer = object({
  screenId: id,
  placementIds: list(id, { min: 1, max: 256 }),
  alreadyEntitledStepId: id,
  unknownStepId: id,
})

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
      routes: list(object({ host, eventName: id, entryStepId: id }), { max: legStepsMax }),
      ...{ screens: list(screen, { max: 256 }), offers: list(offer, { max: 256 }), outputs: list(field, { max: 256 }) },
      policy: object({ entry: anything, exitWhenAny: anything }, { goal: anything }),
      facts: object({ propertyKeys: keys, segmentIds: keys, experimentIds: keys }),
      inputs: data,
      completionOutputs: map(data, { key: id, max: 600 }),
    }),
    ...showingShapes(names),
    provenance: object({ compilerCommit: rid, compilerVersion: text({ max: 64 }) }),
  })
}

interface Route {
  host: { kind: 'journey' } | { kind: 'screen'; screenId: string }
  eventName: string
  entryStepId: string
}

interface Descriptor extends Omit<ShowingParts, 'leg'> {
  identity: unknown
  leg: {
    id: string
    entryCondition: unknown
    entryStepId: string
    steps: ({ id: string } & (
      | { kind: 'complete' }
      | { kind: 'action'; action: { type: string; [key: string]: unknown }; outlets: Record<string, string> }
    ))[]
    routes: Route[]
    screens: { id: string; responseCaptures: string[] }[]
    offers: { screenId: string; placementIds: string[]; alreadyEntitledStepId: string; unknownStepId: string }[]
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
  const descriptor = value as Descriptor // its shape was found right
  const { leg } = descriptor
  if (!isDeepStrictEqual(descriptor.identity, identity)) return 'the identity is not that of the locator'
  if (leg.id !== legId) return 'the leg is not that of the locator'
  return checkSteps(leg) ?? checkRoutes(leg) ?? checkShowing(names, descriptor, findings) ?? checkFacts(leg)
}

function checkSteps({ steps, entryStepId, screens }: Descriptor['leg']): string | undefined {
  const ids = new Set(steps.map((one) => one.id))
  if (ids.size !== steps.length) return 'a step id is used twice'
  const targets = steps.flatMap((one) => (one.kind === 'action' ? Object.values(one.outlets) : []))
  const lost = [entryStepId, ...targets].find((to) => !ids.has(to))
  if (lost !== undefined) return `step ${lost} does not exist`
  const actions = steps.flatMap((one) => (one.kind === 'action' ? [one.action] : []))
  if (screens.length === 0 && actions.some(({ type }) => isPresenting(type))) return 'a step presents, without a screen'
  const shown = actions.flatMap(({ type, screenId }) => (type === 'navigate' ? [String(screenId)] : []))
  const unknown = shown.find((to) => !screens.some((one) => one.id === to))
  return unknown === undefined ? undefined : `screen ${unknown} does not exist`
}

function checkRoutes({ routes, steps, screens, offers }: Descriptor['leg']): string | undefined {
  const keys = routes.map((route) => JSON.stringify([screenOf(route), route.eventName]))
  if (new Set(keys).size !== routes.length) return 'two routes are the same'
  for (const route of routes) {
    const { eventName, entryStepId } = route
    const target = steps.find((one) => one.id === entryStepId)
    if (!target) return `step ${entryStepId} does not exist`
    const on = screenOf(route)
    if (on !== null && !screens.some((one) => one.id === on)) return `screen ${on} does not exist`
    const presents = target.kind === 'action' && isPresenting(target.action.type)
    if (eventName === 'host_dismissed' && presents) return `step ${entryStepId} presents once the host is gone`
  }
  if (new Set(screens.map((one) => one.id)).size !== screens.length) return 'a screen id is used twice'
  if (!screens.every(({ responseCaptures: all }) => all.every((key, i) => i === 0 || (all[i - 1] ?? key) < key)))
    return 'the captures do not ascend'
  if (new Set(offers.map(({ screenId }) => screenId)).size !== offers.length) return 'a screen has two offers'
  for (const { screenId, placementIds, alreadyEntitledStepId, unknownStepId } of offers) {
    if (new Set(placementIds).size !== placementIds.length) return `the offer of ${screenId} has a placement twice`
    const enters = (eventName: string, to: string) =>
      routes.some((one) => screenOf(one) === screenId && one.eventName === eventName && one.entryStepId === to)
    if (!enters('$offer_already_entitled', alreadyEntitledStepId) || !enters('$offer_access_unknown', unknownStepId))
      return `no route enters what the offer of ${screenId} leads to`
  }
  return undefined
}

function screenOf({ host: on }: Route): string | null {
  return on.kind === 'screen' ? on.screenId : null
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
