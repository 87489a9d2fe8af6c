import { randomBytes } from 'node:crypto'
import type { Mode, Problem } from '../conformance/check.ts'
import { isObject } from '../conformance/check.ts'
import { checkTyped } from '../conformance/context.ts'
import { type Highest, raised } from '../conformance/newest.ts'
import { durationMs } from '../conformance/policy.ts'
import { type Arm, type Profile, readProfile, releaseOf } from '../conformance/profile.ts'
import type { Verified } from '../conformance/release.ts'
import type { Runtime } from '../conformance/requirements.ts'
import type { Values } from './condition.ts'
import { type Occasion, starts } from './entry.ts'
import { type Command, type Settled, settle } from './journal.ts'
import { begin, proceed, type Run } from './leg-run.ts'
import { flush, type Item, type Transport } from './outbox.ts'

export interface DeviceOptions {
  apiKey: string
  distinctId: string
  namespace: string
  mode: Mode
  /** Compiled in: a device fetches no keys. */
  keys: ReadonlyMap<string, Uint8Array>
  runtime?: Runtime
  transport: Transport
  now: () => number
}

export type Synced = { kind: 'taken' | 'unchanged' } | { kind: 'refused'; problems: Problem[] }

/** A device as clients are in the field, without screens. All that it keeps is here; it may be away for as long as it likes. */
export interface Device {
  profile: () => Profile | undefined
  outbox: () => readonly Item[]
  running: () => readonly Running[]
  /** Fetches the profile; one that is wrong in anything leaves the last one in place. */
  sync: () => Promise<Synced>
  foreground: () => void
  capture: (event: string, properties?: Record<string, unknown>) => void
  /** Lets legs that rest see the time. */
  tick: () => void
  /** One call to `/batch`. */
  flush: () => Promise<void>
  consume: (featureId: string, quantity: number) => string
  /** Sends every command of the journal once. */
  settle: () => Promise<Settled[]>
  journal: () => readonly Command[]
}

export interface Running {
  journeyId: string
  generation: number
  startedAt: number
  release: Verified
  values: Values
  run: Run
}

interface Stored {
  profile: Profile
  tag: string
  authority: { appId: string; environment: string }
}

export function openDevice(options: DeviceOptions): Device {
  const { apiKey, distinctId, transport, now } = options
  let stored: Stored | undefined
  let highest: Highest = new Map()
  let outbox: Item[] = []
  let journal: Command[] = []
  let running: Running[] = []
  const enrolled = new Map<string, number>()
  const finished = new Set<string>()
  const seenSegments = new Set<string>()

  async function sync(): Promise<Synced> {
    const body = JSON.stringify({ apiKey, distinct_id: distinctId, version: 1 })
    const reply = await transport('/profile', body, {
      'content-type': 'application/json',
      ...(stored && { 'if-none-match': stored.tag }),
    })
    const tag = reply.headers.get('etag') ?? ''
    const authority = {
      appId: reply.headers.get(`${options.namespace}-app-id`) ?? '',
      environment: reply.headers.get(`${options.namespace}-app-environment`) ?? '',
    }
    const bound = stored === undefined || JSON.stringify(stored.authority) === JSON.stringify(authority)
    if (!bound) return wrong('is of the app and environment that the device is bound to')
    if (reply.status === 304)
      return stored?.tag === tag ? { kind: 'unchanged' } : wrong('repeats the tag that was sent')
    if (reply.status !== 200 || tag === '') return wrong(`answers 200 with an ETag or 304, not ${reply.status}`)
    const outcome = readProfile(reply.bytes, { ...options, authority, highest })
    if ('problems' in outcome) return { kind: 'refused', problems: outcome.problems }
    stored = { profile: outcome.profile, tag, authority }
    highest = raised(highest, outcome.profile)
    forgetSegments(outcome.profile)
    occur({ kind: 'profile' })
    return { kind: 'taken' }
  }

  function occur(occasion: Occasion): void {
    if (stored === undefined) return
    const { profile } = stored
    for (const arm of profile.armedLegs) {
      if (!starts(arm, profile, occasion, now())) continue
      const key = keyOf(arm)
      if (arm.entryCondition.type === 'segment' && seenSegments.has(key)) continue
      const release = releaseOf(profile, arm)
      if (release !== undefined && start(arm, release, occasion)) seenSegments.add(key)
    }
  }

  /** False when it does not start: it runs, ran before, may not yet again, or its context is not as declared. */
  function start(arm: Arm, release: Verified, occasion: Occasion): boolean {
    const { experienceId } = release.locator
    const { inputs, policy } = release.descriptor.leg
    if (running.some((each) => each.release.locator.experienceId === experienceId)) return false
    const triggering = occasion.kind === 'event' ? occasion.properties : {}
    const declared = new Set(inputs.eventFields.map(({ key }) => String(key)))
    const picked = Object.entries(triggering).filter(([key]) => declared.has(key))
    const context = { event: { ...arm.context.event, ...Object.fromEntries(picked) }, responses: arm.context.responses }
    if (!isTyped(context, release)) return false
    const isNew = arm.binding.type === 'new'
    if (isNew && !mayEnrol(policy.entry.frequency, enrolled.get(experienceId), now())) return false
    const journeyId = isNew ? newUuid(now()) : String(arm.binding.journeyId)
    const generation = isNew ? 0 : Number(arm.binding.generation)
    if (finished.has(`${journeyId} ${generation}`)) return false
    if (isNew) enrolled.set(experienceId, now())
    const leg: Running = {
      ...{ journeyId, generation, startedAt: now(), release, run: begin(release.descriptor.leg) },
      values: { ...context, properties: {} },
    }
    running.push(leg)
    report('$journey_leg_started', leg, {})
    goOn(leg)
    return true
  }

  function goOn(leg: Running, event?: { name: string; properties: Record<string, unknown> }): void {
    const facts = stored?.profile.facts
    const properties = Object.fromEntries(
      Object.entries(facts?.properties ?? {}).flatMap(([key, each]) =>
        isObject(each) && each.present ? [[key, each.value]] : [],
      ),
    )
    const values = { ...leg.values, event: { ...leg.values.event, ...event?.properties }, properties }
    const around = { values, assignments: facts?.assignments ?? {}, nowMs: now(), ...(event && { event: event.name }) }
    const { run, emitted, ended } = proceed(leg.release.descriptor.leg, leg.run, around)
    leg.run = run
    for (const each of emitted) emit(leg, each)
    if (ended === undefined) return
    running = running.filter((each) => each !== leg)
    finished.add(`${leg.journeyId} ${leg.generation}`)
    report('$journey_leg_completed', leg, { completed_at: new Date(now()).toISOString(), ...ended })
  }

  function emit(
    leg: Running,
    { event, properties, stepId }: { event: string; properties: object; stepId: string },
  ): void {
    const { legId, experienceId, experienceVersionId: versionId } = leg.release.locator
    const item = record(event, { ...properties, ...attributesOf(leg) })
    const { journeyId, generation } = leg
    const origin = { journeyId, experienceId, versionId, legId, generation, source: 'device_action', stepId }
    if (!event.startsWith('$')) item.journeyOrigin = { ...origin, occurrenceId: item.idempotency_key }
  }

  function report(event: string, leg: Running, more: object): void {
    record(event, { ...attributesOf(leg), started_at: new Date(leg.startedAt).toISOString(), ...more })
  }

  function record(event: string, properties: Record<string, unknown>): Item {
    const timestamp = new Date(now()).toISOString()
    const item = { event, distinct_id: distinctId, timestamp, idempotency_key: newUuid(now()), properties }
    outbox.push(item)
    return item
  }

  function forgetSegments({ armedLegs }: Profile): void {
    const armed = new Set(armedLegs.map(keyOf))
    for (const key of seenSegments) if (!armed.has(key)) seenSegments.delete(key)
  }

  return {
    profile: () => stored?.profile,
    outbox: () => outbox,
    running: () => running,
    journal: () => journal,
    sync,
    foreground: () => occur({ kind: 'foreground' }),
    capture(event, properties = {}) {
      record(event, properties)
      for (const leg of [...running]) goOn(leg, { name: event, properties })
      occur({ kind: 'event', name: event, properties })
    },
    tick() {
      for (const leg of [...running]) goOn(leg)
    },
    async flush() {
      const sent = [...outbox]
      const left = await flush(sent, apiKey, transport)
      // What was recorded while the call was away stands behind what it left.
      outbox = [...left, ...outbox.slice(sent.length)]
    },
    consume(featureId, quantity) {
      const operationId = newUuid(now())
      journal.push({ operationId, customerId: distinctId, featureId, quantity })
      return operationId
    },
    async settle() {
      const settled: Settled[] = []
      for (const command of [...journal]) {
        const outcome = await settle(command, apiKey, transport)
        if (outcome.kind !== 'kept') journal = journal.filter((each) => each !== command)
        settled.push(outcome)
      }
      return settled
    },
  }
}

function wrong(rule: string): Synced {
  return { kind: 'refused', problems: [{ path: '$', rule }] }
}

function attributesOf({ journeyId, generation, release: { locator } }: Running): Record<string, unknown> {
  return {
    journey_id: journeyId,
    experience_id: locator.experienceId,
    experience_version_id: locator.experienceVersionId,
    leg_id: locator.legId,
    leg_generation: generation,
  }
}

function keyOf({ reference, binding }: Arm): string {
  return JSON.stringify([reference, binding])
}

function isTyped(
  context: { event: Record<string, unknown>; responses: Record<string, unknown> },
  release: Verified,
): boolean {
  const { eventFields, responseFields } = release.descriptor.leg.inputs
  const at = { path: '$', found: [], namespace: '', mode: 'spec' as const }
  checkTyped(context.event, eventFields, { at, missing: 'refused' })
  checkTyped(context.responses, responseFields, { at, missing: 'refused' })
  return at.found.length === 0
}

/** From the last enrolment that this device remembers; a clock that went back refuses. */
function mayEnrol(
  frequency: { type: string } & Record<string, unknown>,
  last: number | undefined,
  nowMs: number,
): boolean {
  if (last === undefined || frequency.type === 'every_match') return true
  if (frequency.type === 'one_time') return false
  return nowMs - last >= durationMs(frequency.window as Parameters<typeof durationMs>[0]) // its shape was verified
}

/** Version 7: the time in front. */
function newUuid(nowMs: number): string {
  const hex = nowMs.toString(16).padStart(12, '0') + randomBytes(10).toString('hex')
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16)
  const digits = `${hex.slice(0, 12)}7${hex.slice(13, 16)}${variant}${hex.slice(17)}`
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
