import { isObject } from '../conformance/check.ts'
import type { Leg } from '../conformance/leg.ts'
import { holds, listOf, resolve, type Values } from './condition.ts'

/** What a leg does that others hear of. */
export type Emitted = { event: string; properties: Record<string, unknown>; stepId: string }

/** A leg on its way: at a step, or resting there until a time or an event. */
export interface Run {
  stepId: string
  restsUntil?: number
  transitions: number
}

export interface Progress {
  run: Run
  emitted: Emitted[]
  ended?: Outputs
}

interface Outputs {
  outcome: string
  outputs: { event: Record<string, unknown>; responses: Record<string, unknown> }
}

type Assignments = Record<string, { variantId: string; isHoldout: boolean } | null>

/** What a run reads as it goes. */
export interface Around {
  values: Values
  assignments: Assignments
  nowMs: number
  /** The event that wakes a leg which waits for it. */
  event?: string
}

const transitionsMax = 10_000

export function begin({ entryStepId }: Leg): Run {
  return { stepId: entryStepId, transitions: 0 }
}

/** Takes a leg without screens as far as it goes now. Whatever can't go on ends as `abandoned`. */
export function proceed(leg: Leg, from: Run, around: Around): Progress {
  const emitted: Emitted[] = []
  let run = from
  for (;;) {
    const step = leg.steps.find((each) => each.id === run.stepId)
    if (step?.kind === 'complete') return { run, emitted, ended: outputsOf(leg, String(step.outcome), around) }
    if (step === undefined || !isObject(step.action) || !isObject(step.outlets))
      return { run, emitted, ended: abandoned(around) }
    const taken = take(step.action, run, around)
    if ('rest' in taken) return { run: { ...run, restsUntil: taken.rest }, emitted }
    if ('exit' in taken) return { run, emitted, ended: outputsOf(leg, taken.exit, around) }
    if (taken.emits !== undefined) emitted.push({ ...taken.emits, stepId: run.stepId })
    const next = step.outlets[taken.outlet]
    if (typeof next !== 'string' || run.transitions >= transitionsMax) return { run, emitted, ended: abandoned(around) }
    run = { stepId: next, transitions: run.transitions + 1 }
  }
}

type Taken = { outlet: string; emits?: Omit<Emitted, 'stepId'> } | { rest: number } | { exit: string }

/** No step has an outlet of no name: what can't be done leads there. */
const nowhere: Taken = { outlet: '' }

function take(action: Record<string, unknown>, run: Run, around: Around): Taken {
  const { values, nowMs } = around
  const emit = (event: string, properties: unknown): Taken =>
    isObject(properties) ? { outlet: 'next', emits: { event, properties } } : nowhere
  switch (action.type) {
    case 'delay':
      return rested(run, around) ? { outlet: 'next' } : { rest: run.restsUntil ?? nowMs + Number(action.durationMs) }
    case 'condition': {
      const branch = listOf(action.branches)
        .filter(isObject)
        .find((each) => holds(each.condition, values) === true)
      return { outlet: branch === undefined ? 'default' : String(branch.id) }
    }
    case 'experiment':
      return { outlet: variantOf(action, around.assignments) }
    case 'wait_until':
      return wait(action, run, around)
    case 'send_event':
      return emit(String(action.eventName), resolveAll(action.payload, values))
    case 'app_action': {
      const payload = resolveAll(action.payload, values)
      return emit('$app_action_requested', payload && { name: action.name, payload })
    }
    case 'update_customer': {
      const $set = resolveAll(action.attributes, values)
      return emit('$identify', $set && { $set })
    }
    case 'submit_response':
      return { outlet: 'next' }
    case 'exit':
      return { exit: typeof action.reason === 'string' ? action.reason : 'completed' }
    default:
      return nowhere
  }
}

/** The assigned variant if the signed step lists it, else the authored one. */
export function variantOf(
  { experimentId, variants, fallbackVariantId }: Record<string, unknown>,
  assignments: Assignments,
): string {
  const assigned = assignments[String(experimentId)]?.variantId
  const listed = listOf(variants).some((each) => isObject(each) && each.id === assigned)
  return listed && assigned !== undefined ? assigned : String(fallbackVariantId)
}

function wait({ trigger, condition, maxTimeMs }: Record<string, unknown>, run: Run, around: Around): Taken {
  const waitsFor = isObject(trigger) ? trigger.eventName : undefined
  const woken = run.restsUntil !== undefined && around.event !== undefined && around.event === waitsFor
  if (woken && holds(condition, around.values) === true) return { outlet: 'satisfied' }
  return rested(run, around) ? { outlet: 'timeout' } : { rest: run.restsUntil ?? around.nowMs + Number(maxTimeMs) }
}

function rested({ restsUntil }: Run, { nowMs }: Around): boolean {
  return restsUntil !== undefined && nowMs >= restsUntil
}

function resolveAll(payload: unknown, values: Values): Record<string, unknown> | undefined {
  const resolved = Object.entries(isObject(payload) ? payload : {}).map(
    ([key, each]) => [key, resolve(each, values)] as const,
  )
  return resolved.some(([, value]) => value === undefined) ? undefined : Object.fromEntries(resolved)
}

/** The declared values of an outcome; none when it declares none. One that lacks a required value is abandoned. */
function outputsOf({ completionOutputs }: Leg, outcome: string, around: Around): Outputs {
  const declared = completionOutputs[outcome] ?? { eventFields: [], responseFields: [] }
  const { event, responses } = around.values
  const pick = (fields: Record<string, unknown>[], from: Record<string, unknown>) =>
    Object.fromEntries(
      fields.map(({ key }) => String(key)).flatMap((key) => (Object.hasOwn(from, key) ? [[key, from[key]]] : [])),
    )
  const outputs = { event: pick(declared.eventFields, event), responses: pick(declared.responseFields, responses) }
  const lacks = (fields: Record<string, unknown>[], from: object) =>
    fields.some(({ key, required }) => required === true && !Object.hasOwn(from, String(key)))
  const incomplete = lacks(declared.eventFields, outputs.event) || lacks(declared.responseFields, outputs.responses)
  return incomplete ? abandoned(around) : { outcome, outputs }
}

function abandoned({ values: { responses } }: Around): Outputs {
  return { outcome: 'abandoned', outputs: { event: {}, responses } }
}
