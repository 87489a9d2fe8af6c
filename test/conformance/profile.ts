import { isDeepStrictEqual } from 'node:util'
import {
  type At,
  also,
  anything,
  areDistinct,
  ascending,
  type Check,
  digest,
  exact,
  fields,
  flag,
  hold,
  id,
  integer,
  into,
  is,
  isObject,
  list,
  matching,
  nullOr,
  type Of,
  type Problem,
  parse,
  record,
  sameSet,
  tagged,
  text,
  textWhich,
  word,
} from './check.ts'
import { checkTyped, context, conversion } from './context.ts'
import { entryCondition } from './leg.ts'
import { checkNewest, type Highest } from './newest.ts'
import { durationMs } from './policy.ts'
import { type Reader, type Verified, verifyRelease } from './release.ts'

export const profileBytesMax = 24 * 1024 * 1024
const armsMax = 1024
const releasesMax = 1024

const baseUrl = textWhich((value) => {
  const parsed = URL.parse(value)
  const bare = !/[?#@\s]/.test(value) && parsed !== null && parsed.protocol === 'https:' && parsed.hostname !== ''
  return bare && value.startsWith('https://') && value.endsWith('/')
}, 'is a bare https address ending in /')

const feature = also(
  exact({
    id: id(Number.MAX_SAFE_INTEGER),
    type: is('boolean', 'metered', 'creditSystem'),
    balance: nullOr(integer(Number.MIN_SAFE_INTEGER)),
    unlimited: flag,
    nextResetAt: is(null),
    interval: is(null),
  }),
  ({ type, balance, unlimited }, at) => {
    const none = type === 'boolean' || unlimited
    hold(into(at, 'balance'), (balance === null) === none, 'is null exactly when boolean or unlimited')
  },
)

const present = exact({ present: is(true), value: anything })
const absent = exact({ present: is(false) })
const property: Check<unknown> = (value, at): value is unknown =>
  (isObject(value) && value.present === false ? absent : present)(value, at)

const facts = exact({
  properties: record(text, property),
  memberships: record(text, flag),
  assignments: record(text, nullOr(exact({ variantId: id(), isHoldout: flag }))),
})

const reference = exact({ experienceId: id(), versionId: id(), legId: digest, descriptorSha256: digest })
const uuid7 = matching(/^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$/)
const binding = tagged('type', { new: fields(), continue: fields({ journeyId: uuid7, generation: integer() }) })
const arm = also(
  exact({ reference, binding, entryCondition, context }, { conversion }),
  ({ binding: { type }, conversion: told }, at) =>
    hold(into(at, 'conversion'), type === 'continue' || told === undefined, 'is for a journey that goes on'),
)
export type Arm = Of<typeof arm>

const body = exact({
  schemaVersion: word((namespace) => `${namespace}.journey-plane-profile.v2`),
  status: is('ok'),
  delivery: exact({ renderBaseUrl: baseUrl, assetBaseUrl: baseUrl }),
  features: ascending(list(feature), (each) => each.id, 'id'),
  facts,
  armedLegs: list(arm, { max: armsMax }),
  releases: list(anything, { max: releasesMax }),
})
export type Profile = Omit<Of<typeof body>, 'releases'> & { releases: Verified[] }

export interface ProfileReader extends Reader {
  /** As the two authority headers say. */
  authority: { appId: string; environment: string }
  highest: Highest
}

export type Judged = { profile: Profile } | { problems: Problem[] }

/** The profile if nothing at all is wrong with it: a client keeps its old one otherwise. */
export function readProfile(bytes: Uint8Array, reader: ProfileReader): Judged {
  const at: At = { path: '$', found: [], namespace: reader.namespace, mode: reader.mode }
  const problems = () => ({ problems: at.found })
  if (!hold(at, bytes.length <= profileBytesMax, 'has at most 24 MiB')) return problems()
  const parsed = parse(bytes, at)
  if (parsed === undefined || !body(parsed.value, at)) return problems()
  const releases = parsed.value.releases.flatMap((each, index) => {
    const outcome = verifyRelease(each, reader, `$.releases[${index}]`)
    if ('verified' in outcome) return [outcome.verified]
    at.found.push(...outcome.refused.problems)
    return []
  })
  if (at.found.length > 0) return problems()
  const profile: Profile = { ...parsed.value, releases }
  checkReleases(profile, reader, at)
  checkArms(profile, at)
  checkFacts(profile, at)
  checkNewest(profile, reader.highest, at)
  return at.found.length > 0 ? problems() : { profile }
}

function checkReleases({ releases, armedLegs }: Profile, { authority }: ProfileReader, at: At): void {
  const here = into(at, 'releases')
  hold(here, areDistinct(releases.map((each) => each.descriptorSha256)), 'has each descriptor once')
  const sorted = releases.toSorted((a, b) => compare(releaseOrder(a), releaseOrder(b)))
  hold(
    here,
    isDeepStrictEqual(releases, sorted),
    'are in order of experienceId, publishedAtSeq, legId, descriptorSha256',
  )
  const armed = new Set(armedLegs.map((each) => each.reference.descriptorSha256))
  releases.forEach(({ locator, descriptorSha256 }, index) => {
    const there = into(here, index)
    hold(there, armed.has(descriptorSha256), 'is named by an arm')
    const ours = locator.appId === authority.appId && locator.environment === authority.environment
    hold(into(there, 'locator'), ours, 'is of the app and environment that the headers name')
  })
}

function checkArms(profile: Profile, at: At): void {
  const { armedLegs } = profile
  const here = into(at, 'armedLegs')
  hold(
    here,
    areDistinct(armedLegs.map((each) => JSON.stringify([each.reference, each.binding]))),
    'has each leg and binding once',
  )
  armedLegs.forEach((each, index) => {
    const there = into(here, index)
    const release = releaseOf(profile, each)
    hold(there, release !== undefined, 'names a release of the profile in all its ids')
    if (release !== undefined) checkArm(each, release, there)
    const before = armedLegs[index - 1]
    if (before !== undefined) hold(there, inOrder(before, each), 'stands in order: legId, generation, journeyId')
  })
}

function checkArm(each: Arm, release: Verified, at: At): void {
  const same = isDeepStrictEqual(each.entryCondition, release.descriptor.leg.entryCondition)
  hold(into(at, 'entryCondition'), same, 'is the signed one')
  checkContext(each, release, into(at, 'context'))
  checkConversion(each, release, into(at, 'conversion'))
}

/** The release that an arm is to run, all ids of its reference agreeing. */
export function releaseOf({ releases }: Profile, { reference: named }: Arm): Verified | undefined {
  return releases.find(
    ({ locator, descriptorSha256 }) =>
      descriptorSha256 === named.descriptorSha256 &&
      locator.legId === named.legId &&
      locator.experienceId === named.experienceId &&
      locator.experienceVersionId === named.versionId,
  )
}

function checkContext({ binding: { type }, context: sent }: Arm, { descriptor: { leg } }: Verified, at: At): void {
  const sides = [
    ['event', leg.inputs.eventFields],
    ['responses', leg.inputs.responseFields],
  ] as const
  for (const [side, declared] of sides) {
    const missing = type === 'continue' ? 'refused' : 'allowed'
    checkTyped(sent[side], declared, { at: into(at, side), missing })
    hold(into(at, side), type === 'continue' || Object.keys(sent[side]).length === 0, 'is empty for a new journey')
  }
}

function checkConversion({ binding: bound, conversion: told }: Arm, { descriptor: { leg } }: Verified, at: At): void {
  const { goal } = leg.policy
  if (bound.type === 'new') return
  hold(at, (told !== undefined) === (goal !== undefined), 'is there exactly when the policy has a goal')
  if (told === undefined || goal === undefined) return
  const byEntry = { eventId: String(bound.journeyId), occurredAt: told.startedAt }
  const based =
    goal.attribution.basis !== 'entry' || told.basis === undefined || isDeepStrictEqual({ ...told.basis }, byEntry)
  hold(into(at, 'basis'), based, 'is the journey itself where entry is the basis')
  const until = (told.basis?.occurredAt ?? told.startedAt) + durationMs(goal.attribution.window)
  const inTime = told.conversion === undefined || told.conversion.occurredAt <= until
  hold(into(at, 'conversion'), inTime, 'lies inside the window')
}

function checkFacts({ facts: told, releases }: Profile, at: At): void {
  const here = into(at, 'facts')
  const declared = releases.map(({ descriptor: { leg } }) => leg.facts)
  const exactly = (object: object, keys: string[]) => sameSet(Object.keys(object), keys)
  const properties = exactly(
    told.properties,
    declared.flatMap((each) => each.propertyKeys),
  )
  hold(into(here, 'properties'), properties, 'are those that the releases declare')
  const memberships = exactly(
    told.memberships,
    declared.flatMap((each) => each.segmentIds),
  )
  hold(into(here, 'memberships'), memberships, 'are those that the releases declare')
  const assignments = exactly(
    told.assignments,
    declared.flatMap((each) => each.experimentIds),
  )
  hold(into(here, 'assignments'), assignments, 'are those that the releases declare')
  for (const [experimentId, assigned] of Object.entries(told.assignments)) {
    const listed = assigned === null || releases.some((each) => listsVariant(each, experimentId, assigned.variantId))
    hold(into(into(here, 'assignments'), experimentId), listed, 'is a variant of a signed step')
  }
}

function listsVariant({ descriptor: { leg } }: Verified, experimentId: string, variantId: string): boolean {
  return leg.steps.some(({ action }) => {
    if (!isObject(action) || action.type !== 'experiment' || action.experimentId !== experimentId) return false
    return Array.isArray(action.variants) && action.variants.some((each) => each.id === variantId)
  })
}

/** Arms of one version have one priority, so that the rest of the order shows. */
function inOrder(one: Arm, other: Arm): boolean {
  const { reference: a } = one
  const { reference: b } = other
  if (a.experienceId !== b.experienceId || a.versionId !== b.versionId) return true
  return compare(armOrder(one), armOrder(other)) <= 0
}

function armOrder({ reference: { legId }, binding: bound }: Arm): (string | number)[] {
  if (bound.type === 'new') return [legId, -1, '']
  return [legId, Number(bound.generation), String(bound.journeyId)]
}

function releaseOrder({ locator, descriptorSha256 }: Verified): (string | number)[] {
  return [locator.experienceId, locator.publishedAtSeq, locator.legId, descriptorSha256]
}

function compare(one: (string | number)[], other: (string | number)[]): number {
  for (const [index, a] of one.entries()) {
    const b = other[index] ?? a
    if (a !== b) return a < b ? -1 : 1
  }
  return 0
}
