import type { Json, JsonObject } from '../events/index.ts'
import type { IrFacts } from '../experiences/index.ts'
import type { PinnedPlan } from './plan.ts'

/** Unix milliseconds. */
export type Ms = number

export type Trust = 'device' | 'server'
export type Origin = 'device' | 'api' | 'event' | 'segment' | 'server_event'
export type Status = 'armed' | 'on_device' | 'waiting' | 'ended'
export type EndReason = 'completed' | 'exited' | 'expired' | 'cancelled' | 'superseded' | 'failed' | 'refused'
export type TimerKind = 'step' | 'arm' | 'run' | 'life'

/** Declared data that crosses between device and server. */
export interface Context {
  event: JsonObject
  responses: JsonObject
}
export type Outputs = Context

/** On the wire of `continue` arms; `revision` grows with every change of the rest. */
export interface Conversion {
  startedAt: Ms
  revision: number
  basis?: Moment
  conversion?: Moment
}

export interface Moment {
  eventId: string
  occurredAt: Ms
}

/** What a waiting journey waits for. */
export type Wait =
  | { kind: 'delay' }
  /** Events received before `since` came before the wait, and `after` is the one that led to it. */
  | { kind: 'event'; since: Ms; after: string | null }
  | { kind: 'webhook'; key: string }
  /** It ran 64 steps at once: it goes on with `target` after a second. */
  | { kind: 'park'; target: string | null }

/** `rev` is of the transition that set it, `dueAt` when it is due: never before. */
export interface TimerState {
  rev: number
  dueAt: Ms
}

/** One customer's run of one version in one app. */
export interface Journey {
  id: string
  customerId: string
  appId: string
  /** The pin, see `PinnedPlan`. */
  experienceId: number
  versionNumber: number
  buildId: string
  origin: Origin
  occurrence: string
  status: Status
  endReason: EndReason | null
  endDetail: string | null
  /** Committed transitions, 1..n: the optimistic lock. */
  rev: number
  /** The highest that was offered. 0: a device began, or nothing was offered yet. */
  generation: number
  sectionKey: string | null
  stepId: string | null
  trust: Trust
  held: boolean
  context: Context
  conversion: Conversion
  wait: Wait | null
  timers: Partial<Record<TimerKind, TimerState>>
  startedAt: Ms
  expiresAt: Ms
  endedAt: Ms | null
  /** How long after its end the goal can still be met. */
  watchedUntil: Ms | null
}

/** An event of the customer, as the lane applied it. */
export interface StoredEvent {
  uuid: string
  name: string
  distinctId: string
  at: Ms
  receivedAt: Ms
  properties: JsonObject
}

export type Input =
  | {
      kind: 'enrol'
      by: Origin
      /** Whose, where, and under which id. */
      journeyId: string
      customerId: string
      appId: string
      occurrence: string
      /** Not after its receipt. */
      at: Ms
      context: Context
      /** Of a device: the start of its first leg as reported; `eventId` is null when only the end was. */
      leg?: { startedAt: Ms; eventId: string | null }
    }
  /** `legId` as reported. */
  | { kind: 'legStarted'; generation: number; legId: string; startedAt: Ms; eventId: string }
  | {
      kind: 'legCompleted'
      generation: number
      legId: string
      outcome: string
      outputs: Outputs
      startedAt: Ms
      completedAt: Ms
      eventId: string
    }
  /** `advanced`: somebody who tests said that its time is now. */
  | { kind: 'timer'; timer: TimerKind; rev: number; advanced?: true }
  | { kind: 'event'; event: StoredEvent; trust: Trust }
  | { kind: 'webhookResult'; key: string; ok: boolean; body?: Json }
  | { kind: 'shown' | 'goal'; eventId: string; occurredAt: Ms }
  | { kind: 'criterion' | 'cancel'; reason: string }
  /** Ended because another journey of the Experience goes on. */
  | { kind: 'supersede' }
  | { kind: 'hold' | 'resume' }
  /** A newer version of the same Experience, for an arm that nobody has started. */
  | { kind: 'move'; plan: PinnedPlan }

/** What became of an input; only `applied` makes a transition. */
export type Disposition =
  | 'applied'
  | 'duplicate'
  /** A start after its completion: only its time is noted. */
  | 'late_start'
  | 'late'
  | 'unknown_generation'
  | 'reference_mismatch'
  /** A timer of another rev. */
  | 'stale_timer'
  /** A timer of a journey that is on hold: it is parked. */
  | 'held'
  /** A timer looked at before it is due. */
  | 'early'
  /** An enrolment that the frequency refuses: no journey. */
  | 'frequency'
  /** A webhook's result for a step that was left. */
  | 'unknown_key'
  /** An event that nothing waits for, a goal that does not count, a hold of what is held. */
  | 'inert'
  /** The journey has ended. */
  | 'ended'

export type Effect =
  /** The leg becomes visible in profiles. */
  | { kind: 'arm'; generation: number; sectionKey: string; legId: string; versionNumber: number }
  | { kind: 'disarm'; generation: number }
  /** A device began with this leg. */
  | { kind: 'began'; sectionKey: string; legId: string; versionNumber: number; set: LegChange }
  /** A change of a leg run. */
  | { kind: 'leg'; generation: number; set: LegChange }
  /** `lookAt`: looked at once before it is due. */
  | { kind: 'setTimer'; timer: TimerKind; rev: number; dueAt: Ms; afterLane: boolean; lookAt?: Ms }
  | { kind: 'clearTimers'; timers: TimerKind[] }
  | { kind: 'parkTimers' }
  | { kind: 'subscribe'; eventName: string }
  | { kind: 'unsubscribe' }
  | {
      kind: 'grant'
      /** The ledger's `source.ref`: each grant happens once. */
      operationId: string
      featureId: string
      amount: number | null
      expiresAt: Ms | null
      entityId: string | null
    }
  | { kind: 'append'; what: 'event'; index: number; eventName: string; properties: JsonObject; trust: Trust }
  | {
      kind: 'append'
      what: 'properties'
      index: number
      set: JsonObject
      setOnce: JsonObject
      increment: Record<string, number>
      unset: string[]
    }
  | { kind: 'exposure'; experimentId: string; variantId: string; isHoldout: boolean; assigned: boolean }
  | { kind: 'conversion'; revision: number }
  | { kind: 'countEnrolment'; at: Ms }
  /** The customer's profile may look different. */
  | { kind: 'bump' }
  | {
      kind: 'webhook'
      index: number
      /** `journeyId:rev:index`. */
      key: string
      endpointId: string
      body: Json
      timeoutMs: Ms
      attempts: number
    }
  /** Somebody has to look at it. */
  | { kind: 'alert'; what: 'untrusted_grant' | 'step_limit' | 'failed'; detail: string }

export type LegStatus = 'armed' | 'on_device' | 'completed' | 'expired' | 'lost' | 'withdrawn'

/** What a report or a timer writes down about a leg run. */
export interface LegChange {
  status?: LegStatus
  startedAt?: Ms
  startedEvent?: string
  completedAt?: Ms
  completedEvent?: string
  outcome?: string
  outputs?: Outputs
  /** Added to what became of its reports, such as `late` or `outcome_unknown`. */
  note?: string
}

/** One offer of one leg, and what came back. */
export interface LegRun {
  generation: number
  sectionKey: string
  legId: string
  versionNumber: number
  status: LegStatus
  startedEvent: string | null
  completedEvent: string | null
}

/** What a decision looks at beside its input. What is left out was not loaded: `next` says that it needs it. */
export interface Facts {
  /** For enrolments: whether the frequency allows one more; judged under the lock of the enrolment row. */
  frequencyAllows?: boolean
  /** Of the generation that a report names; null: it was never offered. */
  leg?: LegRun | null
  /** Expressions look at it. */
  customer?: CustomerFacts
  /** By experiment. Null: not assigned, so the fallback runs. Made when first asked for. */
  assignments?: Record<string, { variantId: string; isHoldout: boolean } | null>
  /** By key: whether the Feature is there to be granted. */
  grantable?: Record<string, boolean>
}

export type CustomerFacts = Pick<IrFacts, 'properties' | 'memberships' | 'memberSince' | 'features'>

/** What `next` could not decide without. */
export interface Needs {
  frequency?: true
  leg?: number
  customer?: true
  assignments?: string[]
  grantable?: string[]
}

export type Outcome =
  | { needs: Needs }
  /** `journey` is null when there was none and none was made. */
  | { needs?: undefined; journey: Journey | null; effects: Effect[]; disposition: Disposition }
