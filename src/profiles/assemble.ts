import { activeFeatures } from '../entitlements/index.ts'
import type { Current, Pin } from '../experiences/index.ts'
import { type Admitted, admit, type LeftOut } from './admit.ts'
import { type Arm, compareArms } from './arm.ts'
import { type Body, headOf, restOf } from './body.ts'
import { commonRest } from './common.ts'
import { type ContinueReason, judgeContinue } from './continue-arm.ts'
import { asksForBirth, type Declared } from './facts.ts'
import { type Check, judgeNew, type NewReason, reasonsBefore } from './new-arm.ts'
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

export type Assembly = { kind: 'profile'; body: Body; validUntil: Ms | null } | { kind: 'missing'; missing: Missing }

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
  const asked = { ...input, now, features }
  for (const { rowId, id, current } of experiencesOf(input, trace)) {
    const judged = judgeNew(asked, rowId, current)
    until = Math.min(until, judged.validUntil)
    const { failed, passed, release } = judged
    if (trace) {
      const checks = reasonsBefore(passed).map((check): Check => ({ check, passed: true, detail: null }))
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
  const admitted = admit(input, arms.toSorted(compareArms), headOf(input.wire, features))
  for (const [arm, reason] of admitted.left) note(trace, arm, reason)
  missing.releases = admitted.missing
  missing.segments = !areLookedUp(input, admitted.declared)
  // Whoever asks why is told what would be given, and nothing is.
  if (!trace) {
    missing.assignments = [...admitted.fresh]
    missing.birth = asksForBirth(input, admitted.declared)
  }
  const { releases, pins, assignments, segments, birth } = missing
  if (releases.length + pins.length + assignments.length > 0 || segments || birth) return { kind: 'missing', missing }
  const body = { text: admitted.text, rest: restFor(admitted, trace) }
  return { kind: 'profile', body, validUntil: Number.isFinite(until) ? until : null }
}

/** Kept only for devices: they are many. */
function restFor(admitted: Admitted, trace: Trace | undefined): Buffer {
  return admitted.isCommon && !trace ? commonRest(admitted.common, () => restOf(admitted)) : restOf(admitted)
}

/** Null: it is archived. */
function publicIdOf({ delivery }: ProfileInput, { experienceRowId }: OpenJourney): string | null {
  return delivery.experiences.find(({ rowId }) => rowId === experienceRowId)?.id ?? null
}

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

function areLookedUp({ person, delivery }: ProfileInput, { memberships }: Declared): boolean {
  return memberships.every(({ key }) => person.segments.has(key) || !delivery.segments.has(key))
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
