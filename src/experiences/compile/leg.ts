import type { WireNames } from '../../kernel/wire-names.ts'
import type { Platform } from '../../tenancy/index.ts'
import { outletsOf } from '../draft/actions.ts'
import type { Content } from '../draft/content.ts'
import type { Draft, DraftStep } from '../draft/draft.ts'
import { type FieldFlow, fieldFlow, isDeviceEnrolled } from '../draft/fields.ts'
import { type Graph, graphOf, isOn, type Section, type Target } from '../draft/graph.ts'
import { nodesOf } from '../ir/grammar.ts'
import { asJudged } from './as-judged.ts'
import { dataOf } from './data.ts'
import { gateOf, type Holdout } from './gate.ts'
import { legIdOf } from './leg-id.ts'
import { outcomesOf, type Plan, planOf } from './plan.ts'
import { offerRoutes, offersOf, screenOf, variantsOf } from './showing.ts'

export interface CompileOptions {
  /** A draft that validation found right. */
  draft: Draft
  experienceId: string
  names: WireNames
  /** Whether clients know the entry condition `always`; otherwise it is lowered to `app_foregrounded`. */
  deliverAlways: boolean
  compiler: { commit: string; version: string }
  /** Needed by what shows or sells something. */
  showing?: { platform: Platform; content: Content } | undefined
  holdout?: Holdout | null
}

/** What one section becomes: a descriptor without its identity. */
export interface CompiledLeg {
  legId: string
  sectionKey: string
  /** Those in which it is this one: all of them, unless something shows. */
  locales: string[]
  body: { leg: { id: string }; [key: string]: unknown }
}

/** Pure: equal drafts over equal content give equal legs, whatever the order of their keys. */
export function compile(options: CompileOptions): { legs: CompiledLeg[]; plan: Plan } {
  const { draft, experienceId } = options
  const graph = graphOf(draft)
  const flow = fieldFlow(draft, graph)
  const sections = [...graph.sections.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1))
  const legs = sections.flatMap((section) => compileSection(options, { graph, flow, section }))
  const judged = asJudged(draft, experienceId).draft
  return { legs, plan: planOf(judged, graphOf(judged), legs) }
}

function compileSection(options: CompileOptions, parts: Parts): CompiledLeg[] {
  const { draft, experienceId, names, showing, compiler } = options
  const { graph, section } = parts
  const { name, appDefaultTimezone, experienceType, description } = draft.metadata
  const legId = legIdOf(experienceId, section.key)
  const common = {
    schemaVersion: names.releaseSchema,
    metadata: {
      ...{ name, appDefaultTimezone },
      ...(experienceType === undefined ? {} : { experienceType }),
      ...(description === undefined ? {} : { description }),
    },
    presentation: presentationOf(draft.presentation),
    leg: legOf(options, parts),
    provenance: { compilerCommit: compiler.commit, compilerVersion: compiler.version },
  }
  const shown = showing && section.screens.length > 0 ? { ...showing, draft, graph, section } : null
  return variantsOf(draft, shown).map(({ locales, parts: rest }) => {
    return { legId, sectionKey: section.key, locales, body: { ...common, ...rest } }
  })
}

interface Parts {
  graph: Graph
  flow: FieldFlow
  section: Section
}

function legOf(options: CompileOptions, { graph, flow, section }: Parts) {
  const { draft, experienceId, names, deliverAlways, holdout = null } = options
  const entryCondition = entryOf(draft, section.key, deliverAlways)
  const gate = gateOf(draft, holdout, section.key)
  const steps = [...(gate?.steps ?? []), ...stepsOf(section)]
  const landingAt = (to: Target) => landing(to === null ? undefined : graph.steps.get(to))
  const authored = (draft.graph.routes ?? [])
    .filter(({ host }) => host.kind === 'journey' || section.screens.some((screen) => isOn(host, screen)))
    .map(({ host, eventName, to }) => ({ host, eventName, entryStepId: landingAt(to) }))
  return {
    schemaVersion: names.legSchema,
    id: legIdOf(experienceId, section.key),
    entryCondition,
    entryStepId: gate?.entryStepId ?? section.key,
    steps,
    routes: [...authored, ...offerRoutes(section, landingAt)],
    screens: section.screens.map(screenOf),
    offers: offersOf(section, landingAt),
    policy: policyOf(draft),
    facts: factsOf([entryCondition, steps]),
    ...dataOf(draft, flow, { section, outcomes: outcomesOf(section) }),
  }
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
