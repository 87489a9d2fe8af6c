import type { ActiveFeature } from '../entitlements/index.ts'
import { type Current, type Delivery, evaluate, type LegRelease, releaseFor } from '../experiences/index.ts'
import { dayMs, membershipChangeDays } from '../kernel/limits.ts'
import type { Edge, Ms, Person, ProfileInput } from './types.ts'

/** Why a new journey is not offered, in the order in which it is asked. */
export type NewReason =
  | 'customer_paused'
  | 'not_published'
  | 'experience_paused'
  | 'platform_not_built'
  | 'server_enrolled'
  | 'release_unverified'
  | 'segment_state'
  | 'eligibility'
  | 'frequency'
  | 'limit_arms'
  | 'limit_bytes'

export interface Check {
  check: NewReason
  passed: boolean
  /** What decided; null where there is nothing to say. */
  detail: string | null
}

/** Who asks. */
export interface Asking extends ProfileInput {
  /** Not the test clock's, which moves access only. */
  now: Ms
  features: readonly ActiveFeature[]
}

/** Of one Experience, what holds in this app; undefined: nothing ever did. */
type Holding = Current | undefined

/** What came of the checks of one Experience. */
export interface Judged {
  failed: Check | undefined
  /** How many passed before it. */
  passed: number
  /** What is to be sent, unless it does not fit. */
  release?: LegRelease
  /** Until when time alone changes none of this. */
  validUntil: Ms
}

const forEver = Number.POSITIVE_INFINITY

/** Judges an Experience by the first nine reasons, up to the first that holds. Pure. */
export function judgeNew(asking: Asking, experienceRowId: number, current: Holding): Judged {
  const judged: Judged = { failed: undefined, passed: 0, validUntil: forEver }
  for (const [check, fails] of checks) {
    const verdict = fails(asking, current, experienceRowId, judged)
    if (verdict.validUntil !== undefined) judged.validUntil = Math.min(judged.validUntil, verdict.validUntil)
    if (verdict.failed !== undefined) {
      judged.failed = { check, passed: false, detail: verdict.failed }
      return judged
    }
    judged.passed++
  }
  return judged
}

/** The first `count` reasons. */
export function reasonsBefore(count: number): NewReason[] {
  return checks.slice(0, count).map(([check]) => check)
}

interface Verdict {
  /** Absent: passed. */
  failed?: string | null
  validUntil?: Ms
}

const passes: Verdict = {}

type Fails = (asking: Asking, current: Holding, experienceRowId: number, judged: Judged) => Verdict

const checks: [NewReason, Fails][] = [
  [
    'customer_paused',
    ({ person: { pausedAt } }) =>
      pausedAt === null ? passes : { failed: `since ${new Date(pausedAt).toISOString()}` },
  ],
  ['not_published', isPublished],
  ['experience_paused', (_, current) => (current?.status === 'paused' ? { failed: `number ${current.seq}` } : passes)],
  ['platform_not_built', isBuilt],
  ['server_enrolled', (_, current) => (current?.isDeviceEnrolled ? passes : { failed: current?.trigger.type ?? null })],
  ['release_unverified', isVerified],
  ['segment_state', segmentState],
  ['eligibility', isEligible],
  ['frequency', frequency],
]

/** A version that is not for this platform is published elsewhere only. */
function isPublished({ delivery }: Asking, current: Holding, experienceRowId: number): Verdict {
  if (current && current.status !== 'unpublished') return passes
  if (!current && elsewhere(delivery, experienceRowId)) return passes
  return { failed: current ? `taken back, number ${current.seq}` : null }
}

function isBuilt({ delivery, app }: Asking, current: Holding, experienceRowId: number): Verdict {
  const built = current ?? elsewhere(delivery, experienceRowId)
  if (built?.platforms.includes(app.platform)) return current ? passes : { failed: `not published for ${app.appId}` }
  return { failed: `version ${built?.versionNumber} is for ${built?.platforms.join(', ')}` }
}

function elsewhere({ current }: Delivery, experienceRowId: number): Current | undefined {
  const others = [...current.values()].flat().filter((one) => one.experienceRowId === experienceRowId)
  return others.find(({ status }) => status !== 'unpublished')
}

function isVerified({ delivery, app, locale }: Asking, current: Holding, _: number, judged: Judged): Verdict {
  const found = current && releaseFor(current, current.entryLegId, locale)
  // What was not read yet is judged again once it was.
  if (!found || delivery.release(app.appId, found.sha256) === null) return { failed: found?.sha256 ?? null }
  judged.release = found
  return passes
}

/** An edge lets in once, and only what happened to the customer is one. */
function segmentState({ delivery, person, now }: Asking, current: Holding): Verdict {
  if (current?.trigger.type !== 'segment_enter' && current?.trigger.type !== 'segment_leave') return passes
  const { segmentId, type } = current.trigger
  const segment = delivery.segments.get(segmentId)
  const since = segment && person.members.get(segment.versionId)
  const last = segment && person.edges.get(segment.segmentId)
  const enters = type === 'segment_enter'
  if (enters !== (since !== undefined)) return { failed: enters ? 'not a member' : 'a member' }
  const at = enters ? enteredAt(since, last) : leftAt(last)
  if (at === null) return { failed: enters ? 'no member by an edge' : 'never was a member' }
  const times = person.enrolments.get(current.experienceRowId)?.times ?? []
  if (times.some((time) => time >= at)) return { failed: `enrolled since the edge of ${iso(at)}` }
  const over = at + membershipChangeDays * dayMs
  return now < over ? { validUntil: over } : { failed: `the edge of ${iso(at)} is too old` }
}

function enteredAt(since: Ms | undefined, last: Edge | undefined): Ms | null {
  if (last?.edge === 'entered') return last.isEvent ? last.at : null
  return since ?? null
}

function leftAt(last: Edge | undefined): Ms | null {
  return last?.edge === 'left' && last.isEvent ? last.at : null
}

function isEligible({ delivery, person, now, features }: Asking, current: Holding): Verdict {
  if (!current?.eligibility) return passes
  const truth = evaluate(current.eligibility.expr, {
    nowMs: now,
    properties: person.properties,
    ...membershipsOf(delivery, person),
    features: Object.fromEntries(features.map(({ id, unlimited, balance }) => [id, { unlimited, balance }])),
  })
  const until = current.readsClock ? { validUntil: now } : {}
  return truth === true ? until : { failed: truth === 'unknown' ? 'unknown' : 'not true', ...until }
}

/** As every enrolment is judged, whatever lets somebody in. */
function frequency({ person, now }: Asking, current: Holding): Verdict {
  if (!current || current.frequency.type === 'every_match') return passes
  const { count = 0, times = [] } = person.enrolments.get(current.experienceRowId) ?? {}
  if (current.frequency.type === 'one_time') {
    return count === 0 ? passes : { failed: `enrolled${times[0] === undefined ? '' : ` ${iso(Math.max(...times))}`}` }
  }
  const windowMs = windowMsOf(current.frequency.window)
  const inside = times.filter((time) => Math.abs(now - time) < windowMs)
  if (inside.length === 0) {
    const next = times.filter((time) => time > now).map((time) => time - windowMs + 1)
    return next.length > 0 ? { validUntil: Math.min(...next) } : passes
  }
  const last = Math.max(...inside)
  return {
    failed: `last enrolment ${iso(last)}, window ends ${iso(last + windowMs)}`,
    validUntil: last + windowMs,
  }
}

/** Segments that nothing serves yet are left out: whether somebody is a member is not known. */
function membershipsOf({ segments }: Delivery, { members, segments: asked }: Person) {
  const memberships: Record<string, boolean> = {}
  const memberSince: Record<string, Ms> = {}
  for (const id of asked) {
    const segment = segments.get(id)
    if (!segment) continue
    const since = members.get(segment.versionId)
    memberships[id] = since !== undefined
    if (since !== undefined) memberSince[id] = since
  }
  return { memberships, memberSince }
}

const unitMs = { minute: 60_000, hour: 3600_000, day: dayMs, week: 7 * dayMs }

function windowMsOf({ amount, unit }: { amount: number; unit: keyof typeof unitMs }): number {
  return amount * unitMs[unit]
}

function iso(at: Ms): string {
  return new Date(at).toISOString()
}
