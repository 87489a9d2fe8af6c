import { activeFeatures } from '../entitlements/index.ts'
import type { Current, DeliveredRelease, Pin } from '../experiences/index.ts'
import { profileArmsMax, profileBytesMax } from '../kernel/limits.ts'
import { type Arm, armJson, compare, compareArms } from './arm.ts'
import { type ContinueReason, judgeContinue } from './continue-arm.ts'
import { addFacts, asksForBirth, type Facts, factsJson, factsOf, noFacts } from './facts.ts'
import { type Check, judgeNew, type NewReason } from './new-arm.ts'
import type { Ms, OpenJourney, ProfileInput } from './types.ts'

/** What has to be read before the profile can be said. */
export interface Missing {
  releases: { appId: string; sha256: string }[]
  pins: Pin[]
  /** Experiments whose variant is to be stored before it is told. */
  assignments: string[]
  /** Memberships of segments that were not looked up. */
  segments: boolean
  /** The record that an id without one will have: experiments deal to it. */
  birth: boolean
}

export type Assembly = { kind: 'profile'; bytes: Buffer; validUntil: Ms | null } | { kind: 'missing'; missing: Missing }

/** How each Experience came out, for whoever asks why. Filled while the profile is assembled. */
export interface Trace {
  experiences: Map<string, { reason: NewReason | null; detail: string | null; checks: Check[] }>
  journeys: Map<string, { experienceId: string | null; status: string; reason: ContinueReason | null }>
}

/**
 * The profile of one customer in one app, or what is missing to say it. Pure: equal input gives equal bytes. Keys stand in a
 * fixed order; no clock and no request is in it.
 */
export function assemble(input: ProfileInput, trace?: Trace): Assembly {
  const { catalogue, app, person } = input
  const { features, validUntil } = activeFeatures(catalogue, app.platform, person)
  const { clockOffsetMs } = catalogue
  const now = person.now - clockOffsetMs
  // From here on an instant of the database's clock.
  let until = (validUntil ?? Number.POSITIVE_INFINITY) - clockOffsetMs
  const arms: Arm[] = []
  for (const { rowId, id, current } of experiencesOf(input, trace)) {
    const judged = judgeNew({ ...input, now, features, experienceRowId: rowId, current })
    until = Math.min(until, judged.validUntil)
    const { failed, passed, release } = judged
    if (trace) {
      const checks = passed.map((check): Check => ({ check, passed: true, detail: null }))
      if (failed) checks.push(failed)
      trace.experiences.set(id, { reason: failed?.check ?? null, detail: failed?.detail ?? null, checks })
    }
    if (!failed && release && current) {
      arms.push({ stamp: current, legId: current.entryLegId, release, binding: { type: 'new' } })
    }
  }
  const missing: Missing = { releases: [], pins: [], assignments: [], segments: false, birth: false }
  for (const journey of person.journeys) {
    const onward = judgeContinue(input, journey)
    if (onward.kind === 'arm') arms.push(onward.arm)
    if (onward.kind === 'missing') missing.pins.push(onward.pin)
    const reason = onward.kind === 'none' ? onward.reason : null
    if (trace)
      trace.journeys.set(journey.id, { experienceId: publicIdOf(input, journey), status: journey.status, reason })
  }
  const head = headOf(input, features)
  const admitted = admit(input, arms.toSorted(compareArms), Buffer.byteLength(head) + emptyBytes)
  for (const [arm, reason] of admitted.left) note(trace, arm, reason)
  missing.releases = admitted.missing
  missing.segments = !areLookedUp(input, admitted.facts)
  // Whoever asks why is told what would be given, and nothing is.
  if (!trace) {
    missing.assignments = [...admitted.facts.fresh]
    missing.birth = asksForBirth(input, admitted.facts)
  }
  const { releases, pins, assignments, segments, birth } = missing
  if (releases.length + pins.length + assignments.length > 0 || segments || birth) return { kind: 'missing', missing }
  return { kind: 'profile', bytes: bodyOf(head, admitted), validUntil: Number.isFinite(until) ? until : null }
}

/** Null: it is archived. */
function publicIdOf({ delivery }: ProfileInput, { experienceRowId }: OpenJourney): string | null {
  return delivery.experiences.find(({ rowId }) => rowId === experienceRowId)?.id ?? null
}

/** Of a body with empty facts and lists, behind its head. */
const emptyBytes = '{"properties":{},"memberships":{},"assignments":{}},"armedLegs":[],"releases":[]}'.length

interface Experience {
  rowId: number
  id: string
  current: Current | undefined
}

/** Whoever asks why asks about all of them; a device gets what is published in its app. */
function experiencesOf({ delivery, app }: ProfileInput, trace?: Trace): Experience[] {
  const here = delivery.current.get(app.appId) ?? []
  if (!trace) return here.map((current) => ({ rowId: current.experienceRowId, id: current.experienceId, current }))
  const byRow = new Map(here.map((current) => [current.experienceRowId, current]))
  return delivery.experiences.map(({ rowId, id }) => ({ rowId, id, current: byRow.get(rowId) }))
}

type LeftOut = Extract<ContinueReason, NewReason> | 'input_missing'

interface Admitted {
  taken: { arm: Arm; json: string }[]
  /** By hash. */
  releases: Map<string, DeliveredRelease>
  facts: Facts
  left: Map<Arm, LeftOut>
  missing: { appId: string; sha256: string }[]
}

/**
 * Whole arms are left out from the end, new journeys before those that go on. An arm whose release was not read yet counts by
 * its size, so that nothing is read that cannot fit.
 */
function admit(input: ProfileInput, sorted: readonly Arm[], baseBytes: number): Admitted {
  const admitted: Admitted = { taken: [], releases: new Map(), facts: noFacts(), left: new Map(), missing: [] }
  const { taken, releases, facts, left, missing } = admitted
  const ofType = (type: Arm['binding']['type']) => sorted.filter(({ binding }) => binding.type === type)
  let bytes = baseBytes
  let full: 'limit_arms' | 'limit_bytes' | undefined
  for (const arm of [...ofType('continue'), ...ofType('new')]) {
    if (taken.length + missing.length >= profileArmsMax) full ??= 'limit_arms'
    if (full) {
      left.set(arm, full)
      continue
    }
    const { sha256, size } = arm.release
    const delivered = input.delivery.release(input.app.appId, sha256)
    if (delivered === undefined) {
      missing.push({ appId: input.app.appId, sha256 })
      bytes += size
      if (bytes > profileBytesMax) full = 'limit_bytes'
      continue
    }
    const json = delivered && armJson(arm, delivered)
    if (!delivered || json === null) {
      left.set(arm, delivered ? 'input_missing' : 'release_unverified')
      continue
    }
    const { added, bytes: factBytes } = factsOf(input, facts, delivered)
    const releaseBytes = releases.has(sha256) ? 0 : delivered.json.length + Math.min(releases.size, 1)
    const cost = Buffer.byteLength(json) + Math.min(taken.length, 1) + releaseBytes + factBytes
    if (bytes + cost > profileBytesMax) {
      full = 'limit_bytes'
      left.set(arm, full)
      continue
    }
    bytes += cost
    taken.push({ arm, json })
    releases.set(sha256, delivered)
    addFacts(facts, added)
  }
  return admitted
}

function headOf({ wire }: ProfileInput, features: object[]): string {
  const { names, renderBaseUrl, assetBaseUrl } = wire
  const delivery = { renderBaseUrl, assetBaseUrl }
  const head = JSON.stringify({ schemaVersion: names.profileSchema, status: 'ok', delivery, features })
  return `${head.slice(0, -1)},"facts":`
}

function bodyOf(head: string, { taken, releases, facts }: Admitted): Buffer {
  const arms = taken.toSorted((a, b) => compareArms(a.arm, b.arm)).map(({ json }) => json)
  const pieces: Buffer[] = [Buffer.from(`${head}${factsJson(facts)},"armedLegs":[${arms.join(',')}],"releases":[`)]
  for (const { json } of [...releases.values()].toSorted(compareReleases)) {
    if (pieces.length > 1) pieces.push(comma)
    pieces.push(json)
  }
  return Buffer.concat([...pieces, end])
}

const comma = Buffer.from(',')
const end = Buffer.from(']}')

function compareReleases(a: DeliveredRelease, b: DeliveredRelease): number {
  return (
    compare(a.experienceId, b.experienceId) ||
    compare(a.seq, b.seq) ||
    compare(a.legId, b.legId) ||
    compare(a.sha256, b.sha256)
  )
}

function areLookedUp({ person, delivery }: ProfileInput, { entries }: Facts): boolean {
  return [...entries.memberships.keys()].every((id) => person.segments.has(id) || !delivery.segments.has(id))
}

function note(trace: Trace | undefined, { binding, stamp }: Arm, reason: LeftOut): void {
  if (binding.type === 'continue') {
    const told = trace?.journeys.get(binding.journeyId)
    if (told) told.reason = reason
    return
  }
  const told = trace?.experiences.get(stamp.experienceId)
  if (!told || reason === 'input_missing') return
  told.reason = reason
  told.checks.push({ check: reason, passed: false, detail: null })
}
