import type { WireNames } from '../../kernel/wire-names.ts'
import { outletsOf } from '../draft/actions.ts'
import type { Draft, DraftStep } from '../draft/draft.ts'
import { type FieldFlow, fieldFlow, isDeviceEnrolled } from '../draft/fields.ts'
import { type Graph, graphOf, type Section, type Target } from '../draft/graph.ts'
import { nodesOf } from '../ir/grammar.ts'
import { legIdOf } from './leg-id.ts'
import { outcomesOf, type Plan, planOf } from './plan.ts'

export interface CompileOptions {
  /** A draft that validation found right. */
  draft: Draft
  experienceId: string
  names: WireNames
  /** Whether clients know the entry condition `always`; otherwise it is lowered to `app_foregrounded`. */
  deliverAlways: boolean
  compiler: { commit: string; version: string }
}

/** What one section becomes: a descriptor without its identity. The same for every app and locale, as long as nothing shows. */
export interface CompiledLeg {
  legId: string
  sectionKey: string
  body: { leg: { id: string }; [key: string]: unknown }
}

/** Pure: equal drafts give equal legs, whatever the order of their keys. */
export function compile(options: CompileOptions): { legs: CompiledLeg[]; plan: Plan } {
  const { draft } = options
  const graph = graphOf(draft)
  const flow = fieldFlow(draft, graph)
  const sections = [...graph.sections.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1))
  const legs = sections.map((section) => compileLeg(options, { graph, flow, section }))
  return { legs, plan: planOf(draft, graph, legs) }
}

function compileLeg(
  { draft, experienceId, names, deliverAlways, compiler }: CompileOptions,
  { graph, flow, section }: { graph: Graph; flow: FieldFlow; section: Section },
): CompiledLeg {
  const { name, appDefaultTimezone, experienceType, description } = draft.metadata
  const entryCondition = entryOf(draft, section.key, deliverAlways)
  const steps = stepsOf(section)
  const legId = legIdOf(experienceId, section.key)
  const leg = {
    schemaVersion: names.legSchema,
    id: legId,
    entryCondition,
    entryStepId: section.key,
    steps,
    routes: (draft.graph.routes ?? []).map(({ host, eventName, to }) => ({
      ...{ host, eventName },
      entryStepId: landing(graph.steps.get(to)),
    })),
    screens: [],
    offers: [],
    outputs: [],
    policy: policyOf(draft),
    facts: factsOf([entryCondition, steps]),
    ...dataOf(draft, flow, section),
  }
  const body = {
    schemaVersion: names.releaseSchema,
    metadata: {
      ...{ name, appDefaultTimezone },
      ...(experienceType === undefined ? {} : { experienceType }),
      ...(description === undefined ? {} : { description }),
    },
    presentation: presentationOf(draft.presentation),
    leg,
    ...{ products: [], placements: [], viewModelValues: [], screenBehaviors: [], render: null, requirements: null },
    provenance: { compilerCommit: compiler.commit, compilerVersion: compiler.version },
    ...{ state: {}, responses: {}, ruleGroups: [] },
  }
  return { legId, sectionKey: section.key, body }
}

/** The device's own steps, and one that completes the leg for each way out of it. */
function stepsOf({ steps, exits }: Section) {
  const landingOf = (target: Target) => (target === null || exits.has(target) ? completing(target) : target)
  const actions = steps.map((step) => ({
    ...{ id: step.id, kind: 'action', action: step.action },
    outlets: Object.fromEntries(outletsOf(step).map((outlet) => [outlet, landingOf(step.outlets[outlet] ?? null)])),
  }))
  const completes = [...exits]
    .map((target) => ({ id: completing(target), kind: 'complete', outcome: target ?? 'completed' }))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
  return [...actions, ...completes]
}

/** Authored ids never begin with @. */
function completing(target: Target): string {
  return `@${target ?? 'completed'}`
}

function landing(step: DraftStep | undefined): string {
  if (step?.plane === 'device') return step.id
  return completing(step?.id ?? null)
}

function entryOf({ policy, graph, ...draft }: Draft, key: string, deliverAlways: boolean): object {
  const { trigger } = policy.entry
  if (key === graph.entry && isDeviceEnrolled({ policy, graph, ...draft })) {
    if (trigger.type === 'event') return trigger
    if (trigger.type === 'segment_enter' || trigger.type === 'segment_leave') {
      return { type: 'segment', segmentId: trigger.segmentId, member: trigger.type === 'segment_enter' }
    }
  }
  const entry = graph.sections?.[key]?.entry ?? { type: 'app_foregrounded' as const }
  return entry.type === 'always' && !deliverAlways ? { ...entry, type: 'app_foregrounded' } : entry
}

/** What clients read of the policy: how journeys are enrolled, held out and limited is the server's alone. */
function policyOf({ policy: { entry, goal, exitWhenAny } }: Draft): object {
  const { trigger, frequency, eligibility } = entry
  return {
    entry: { trigger, frequency, ...(eligibility === undefined ? {} : { eligibility }) },
    ...(goal === undefined ? {} : { goal }),
    exitWhenAny,
  }
}

function presentationOf({ style, orientation, backgroundColor, ...frame }: Draft['presentation']): object {
  return { style, orientation, backgroundColor, ...(style === 'full_screen' ? {} : { [style]: frame }) }
}

/** Exactly what a walk over entry condition and steps finds. */
function factsOf(parts: unknown) {
  const [propertyKeys, segmentIds, experimentIds] = [new Set<string>(), new Set<string>(), new Set<string>()]
  const note = (set: Set<string>, value: unknown) => typeof value === 'string' && set.add(value)
  for (const { type, key, id, segmentId, experimentId } of nodesOf(parts)) {
    if (type === 'User' || type === 'Customer.Field') note(propertyKeys, key)
    if (type === 'Segment') note(segmentIds, id)
    if (type === 'segment') note(segmentIds, segmentId)
    if (type === 'experiment') note(experimentIds, experimentId)
  }
  const sorted = (set: Set<string>) => [...set].toSorted()
  return { propertyKeys: sorted(propertyKeys), segmentIds: sorted(segmentIds), experimentIds: sorted(experimentIds) }
}

/** What the leg reads, and what it tells at each of its ends: the trigger's fields, where the device alone has seen them. */
function dataOf(draft: Draft, flow: FieldFlow, section: Section) {
  const seesTrigger = section.key === draft.graph.entry && isDeviceEnrolled(draft)
  const reads = flow.inputs.get(section.key) ?? new Set()
  const told = new Set<string>()
  const ends = Object.entries(outcomesOf(section)).filter(([outcome]) => !isBuiltIn(section, outcome))
  const completionOutputs = Object.fromEntries(
    ends.map(([outcome, target]) => {
      const live = seesTrigger ? [...flow.live(target)].filter((field) => field.startsWith('event.')) : []
      for (const field of live) told.add(field)
      return [outcome, fieldsOf(draft, live)]
    }),
  )
  return { inputs: fieldsOf(draft, [...reads, ...told]), completionOutputs }
}

/** Reported by the device itself, without a step that leads there. */
function isBuiltIn({ exits, reasons }: Section, outcome: string): boolean {
  return !reasons.has(outcome) && !exits.has(outcome) && !(outcome === 'completed' && exits.has(null))
}

function fieldsOf({ fields = {} }: Draft, wanted: string[]) {
  const of = (kind: 'event' | 'responses') =>
    Object.entries(fields[kind] ?? {})
      .filter(([key]) => wanted.includes(`${kind}.${key}`))
      .map(([key, field]) => ({ key, ...field }))
      .toSorted((a, b) => (a.key < b.key ? -1 : 1))
  return { eventFields: of('event'), responseFields: of('responses') }
}
