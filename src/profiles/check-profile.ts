import { isDeepStrictEqual } from 'node:util'
import type { DeclaredField, ReleaseCheck } from '../experiences/index.ts'
import { clientArmsMax, clientProfileBytesMax, clientReleasesMax, dayMs } from '../kernel/limits.ts'
import type { Wire } from './types.ts'

/** How a profile reaches its device. */
export interface Reception {
  wire: Wire
  app: { appId: string }
  environment: 'test' | 'live'
  check: ReleaseCheck
}

type Fields = Record<string, unknown>

interface Arm {
  reference: { experienceId: string; versionId: string; legId: string; descriptorSha256: string }
  binding: { type: string; journeyId?: string; generation?: number }
  entryCondition: unknown
  context: { event: Fields; responses: Fields }
  conversion?: { startedAt: number; revision: number; basis?: Moment; conversion?: Moment }
}

interface Moment {
  eventId: string
  occurredAt: number
}

interface Release {
  locator: {
    experienceId: string
    experienceVersionId: string
    legId: string
    publishedAtSeq: number
    [key: string]: unknown
  }
  envelope: Parameters<ReleaseCheck>[1]
}

interface Profile {
  features: unknown[]
  facts: { properties: Fields; memberships: Fields; assignments: Fields }
  armedLegs: Arm[]
  releases: Release[]
}

interface Goal {
  attribution: { basis: string; window: { amount: number; unit: keyof typeof unitMs } }
}

const unitMs = { minute: 60_000, hour: 3600_000, day: dayMs, week: 7 * dayMs }

interface Leg {
  entryCondition: unknown
  facts: { propertyKeys: string[]; segmentIds: string[]; experimentIds: string[] }
  inputs: { eventFields: DeclaredField[]; responseFields: DeclaredField[] }
  policy: { goal?: Goal }
}

/**
 * What a client would refuse of a profile, in words; undefined for a sound one. Looks at the bytes as they would arrive, and asks
 * nothing of what made them. Of Features only that they are a list: they are another module's.
 */
export function checkProfile(bytes: Buffer, reception: Reception): string | undefined {
  if (bytes.length > clientProfileBytesMax) return `it has ${bytes.length} bytes`
  const profile = JSON.parse(bytes.toString()) as Profile // what it holds is looked at below
  return checkHead(profile, reception) ?? checkReleases(profile, reception) ?? checkArms(profile) ?? checkFacts(profile)
}

function checkHead(profile: Profile, { wire: { names } }: Reception): string | undefined {
  const root = profile as unknown as Fields
  if (!hasKeys(root, ['schemaVersion', 'status', 'delivery', 'features', 'facts', 'armedLegs', 'releases']))
    return 'its keys'
  if (root.schemaVersion !== names.profileSchema || root.status !== 'ok') return 'its schema or status'
  const delivery = root.delivery as Fields
  const urls = ['renderBaseUrl', 'assetBaseUrl']
  if (!hasKeys(delivery, urls) || !urls.every((key) => isFolder(delivery[key]))) return 'its delivery'
  return Array.isArray(profile.features) ? undefined : 'its features'
}

function isFolder(url: unknown): boolean {
  return typeof url === 'string' && /^https:\/\/[^/?#@\s]+\/([^?#\s]*\/)?$/.test(url)
}

function checkReleases({ releases, armedLegs }: Profile, { app, environment, check }: Reception): string | undefined {
  if (releases.length > clientReleasesMax) return `it has ${releases.length} releases`
  const armed = new Set(armedLegs.map(({ reference }) => reference.descriptorSha256))
  const told = releases.map(({ envelope }) => envelope.descriptorSha256)
  if (new Set(told).size !== told.length) return 'a release is there twice'
  if (told.some((sha256) => !armed.has(sha256))) return 'a release belongs to no arm'
  for (const { locator, envelope } of releases) {
    if (locator.appId !== app.appId || locator.environment !== environment) return 'a release is of another app'
    const wrong = check(locator as unknown as Parameters<ReleaseCheck>[0], envelope)
    if (wrong !== undefined) return `a release: ${wrong}`
  }
  const order = releases.map(({ locator: { experienceId, publishedAtSeq, legId }, envelope }) => {
    return [experienceId, publishedAtSeq, legId, envelope.descriptorSha256]
  })
  return ascends(order) ? undefined : 'the order of its releases'
}

function checkArms({ armedLegs, releases }: Profile): string | undefined {
  if (armedLegs.length > clientArmsMax) return `it has ${armedLegs.length} arms`
  const byHash = new Map(releases.map((release) => [release.envelope.descriptorSha256, release]))
  const names = armedLegs.map(({ reference, binding }) => JSON.stringify([reference, binding]))
  if (new Set(names).size !== names.length) return 'an arm is there twice'
  for (const arm of armedLegs) {
    const release = byHash.get(arm.reference.descriptorSha256)
    const wrong = release ? checkArm(arm, release) : 'it has no release'
    if (wrong !== undefined) return `the arm of ${arm.reference.legId}: ${wrong}`
  }
  const news = armedLegs.flatMap(({ binding, reference }) =>
    binding.type === 'new' ? (byHash.get(reference.descriptorSha256) ?? []) : [],
  )
  const byExperience = Map.groupBy(armedLegs, ({ reference }) => reference.experienceId)
  if (![...byExperience.values()].every((own) => ascends(own.map(placeOf)))) return 'the order of its arms'
  const identities = Map.groupBy(news, ({ locator }) => locator.experienceId)
  for (const own of identities.values()) {
    if (!own.every(({ locator }) => isDeepStrictEqual(identityOf(locator), identityOf(own[0]?.locator))))
      return 'new arms of one Experience have two identities'
  }
  return undefined
}

/** Among those of its Experience, which have one priority. */
function placeOf({ reference: { legId }, binding: { generation = -1, journeyId = '' } }: Arm): (string | number)[] {
  return [legId, generation, journeyId]
}

function identityOf(locator: object | undefined) {
  return { ...locator, legId: undefined }
}

function checkArm(arm: Arm, { locator, envelope }: Release): string | undefined {
  const { reference, binding, context, conversion } = arm
  const leg = legOf(envelope)
  const keys = [
    'reference',
    'binding',
    'entryCondition',
    'context',
    ...(conversion === undefined ? [] : ['conversion']),
  ]
  if (!hasKeys(arm as unknown as Fields, keys)) return 'its keys'
  const named = { experienceId: locator.experienceId, versionId: locator.experienceVersionId, legId: locator.legId }
  if (!isDeepStrictEqual(reference, { ...named, descriptorSha256: envelope.descriptorSha256 })) return 'its reference'
  if (!isBinding(binding)) return 'its binding'
  if (!isDeepStrictEqual(arm.entryCondition, leg.entryCondition)) return 'its entry condition is not the signed one'
  if (!hasKeys(context as unknown as Fields, ['event', 'responses'])) return 'its context'
  const goesOn = binding.type === 'continue'
  if (!goesOn && Object.keys({ ...context.event, ...context.responses }).length > 0) return 'a new arm has a context'
  const typed = [
    [context.event, leg.inputs.eventFields],
    [context.responses, leg.inputs.responseFields],
  ] as const
  if (goesOn && !typed.every(([values, fields]) => isTyped(values, fields)))
    return 'its context does not fit its inputs'
  const { goal } = leg.policy
  if ((conversion !== undefined) !== (goesOn && goal !== undefined)) return 'its conversion'
  if (conversion === undefined || goal === undefined) return undefined
  return isConversion(conversion, goal, binding.journeyId) ? undefined : 'its conversion'
}

function isBinding(binding: Arm['binding']): boolean {
  if (binding.type === 'new') return hasKeys(binding as unknown as Fields, ['type'])
  const { journeyId = '', generation = -1 } = binding
  if (!hasKeys(binding as unknown as Fields, ['type', 'journeyId', 'generation']) || binding.type !== 'continue')
    return false
  const isUuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(journeyId)
  return isUuid7 && Number.isSafeInteger(generation) && generation >= 0
}

/** Declared keys only, those that are required, each of its type. */
function isTyped(values: Fields, fields: readonly DeclaredField[]): boolean {
  const declared = new Map(fields.map((field) => [field.key, field]))
  const fits = Object.entries(values).every(([key, value]) => {
    const field = declared.get(key)
    return field !== undefined && isOfType(field, value)
  })
  return fits && fields.every(({ key, required }) => !required || Object.hasOwn(values, key))
}

function isOfType({ type, min, max, enum: words, options }: DeclaredField, value: unknown): boolean {
  switch (type) {
    case 'number':
      return Number.isFinite(value) && Number(value) >= (min ?? -Infinity) && Number(value) <= (max ?? Infinity)
    case 'boolean':
      return typeof value === 'boolean'
    case 'null':
      return value === null
    case 'json':
      return true
    case 'multi_enum':
      return (
        Array.isArray(value) && new Set(value).size === value.length && value.every((one) => options?.includes(one))
      )
    case 'enum':
      return options?.some((option) => option === value) ?? false
    default:
      return typeof value === 'string' && (words?.includes(value) ?? true)
  }
}

function isConversion(
  { startedAt, revision, basis, conversion, ...rest }: NonNullable<Arm['conversion']>,
  { attribution }: Goal,
  journeyId: string | undefined,
): boolean {
  if (Object.keys(rest).length > 0 || ![startedAt, revision].every(isCount)) return false
  const { amount, unit } = attribution.window
  if (attribution.basis === 'entry' && !isDeepStrictEqual(basis, { eventId: journeyId, occurredAt: startedAt }))
    return false
  if (basis === undefined) return conversion === undefined
  if (!isMoment(basis) || basis.occurredAt < startedAt) return false
  const after = (conversion?.occurredAt ?? basis.occurredAt) - basis.occurredAt
  return conversion === undefined || (isMoment(conversion) && after >= 0 && after <= amount * unitMs[unit])
}

function isMoment(moment: Moment): boolean {
  const { eventId, occurredAt } = moment
  return hasKeys({ ...moment }, ['eventId', 'occurredAt']) && typeof eventId === 'string' && isCount(occurredAt)
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

/** Exactly what the releases declare, in the shapes that clients read. */
function checkFacts({ facts, releases }: Profile): string | undefined {
  const legs = releases.map(({ envelope }) => legOf(envelope))
  const declared = {
    properties: legs.flatMap((leg) => leg.facts.propertyKeys),
    memberships: legs.flatMap((leg) => leg.facts.segmentIds),
    assignments: legs.flatMap((leg) => leg.facts.experimentIds),
  }
  if (!hasKeys(facts as unknown as Fields, Object.keys(declared))) return 'its facts'
  for (const kind of ['properties', 'memberships', 'assignments'] as const) {
    if (!hasKeys(facts[kind], [...new Set(declared[kind])])) return `its ${kind} are not those that the legs declare`
    if (!Object.values(facts[kind]).every(shapes[kind])) return `the shape of its ${kind}`
  }
  return undefined
}

const shapes = {
  properties: (value: unknown) => {
    const fact = value as Fields // any JSON: what is no object has none of these keys
    return fact?.present === true ? hasKeys(fact, ['present', 'value']) : isDeepStrictEqual(fact, { present: false })
  },
  memberships: (value: unknown) => typeof value === 'boolean',
  assignments: (value: unknown) => {
    if (value === null) return true
    const { variantId, isHoldout } = value as Fields // as above
    const isShaped = typeof variantId === 'string' && variantId !== '' && typeof isHoldout === 'boolean'
    return isShaped && hasKeys(value as Fields, ['variantId', 'isHoldout'])
  },
}

function legOf({ descriptorBytesBase64 }: Release['envelope']): Leg {
  return (JSON.parse(Buffer.from(descriptorBytesBase64, 'base64').toString()) as { leg: Leg }).leg // it was checked
}

/** Exactly these. */
function hasKeys(of: Fields, keys: readonly string[]): boolean {
  return isDeepStrictEqual(Object.keys(of).toSorted(), keys.toSorted())
}

/** Strictly, part by part. */
function ascends(rows: readonly (string | number)[][]): boolean {
  return rows.every((row, i) => {
    const before = rows[i - 1]
    if (!before) return true
    const n = row.findIndex((part, at) => part !== before[at])
    return n >= 0 && (before[n] ?? 0) < (row[n] ?? 0)
  })
}
