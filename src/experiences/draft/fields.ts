import { nodesOf } from '../ir/grammar.ts'
import type { Draft, DraftStep } from './draft.ts'
import type { Graph, Section, Target } from './graph.ts'
import { isObject } from './shape.ts'

/** `event.<key>` or `responses.<key>`. */
export type Field = string

/** Declared data that the steps of a draft hand on to one another. */
export interface FieldFlow {
  /** Every read: which step, which field. */
  reads: { step: DraftStep; field: Field }[]
  /** What a section reads, or lets through to what reads it later. */
  inputs: Map<string, Set<Field>>
  /** Fields read at a target or anywhere behind it. */
  live: (target: Target | undefined) => Set<Field>
  /** Fields that every path to a section has produced. */
  sure: Map<string, Set<Field>>
}

/** Whether the first section is entered on a device, without the server. */
export function isDeviceEnrolled({ policy, graph }: Draft): boolean {
  const { enrolment = 'auto', trigger } = policy.entry
  const entry = graph.steps.find(({ id }) => id === graph.entry)
  const local = ['event', 'segment_enter', 'segment_leave'].includes(trigger.type)
  return enrolment === 'device' || (enrolment === 'auto' && local && entry?.plane === 'device')
}

export function fieldFlow(draft: Draft, graph: Graph): FieldFlow {
  const reads = draft.graph.steps.flatMap((step) => readsOf(step).map((field) => ({ step, field })))
  const byStep = Map.groupBy(reads, ({ step }) => step.id)
  const own = new Map<string, Set<Field>>()
  for (const id of graph.serverSteps.keys()) own.set(id, new Set(byStep.get(id)?.map(({ field }) => field)))
  const inSection = ({ steps }: Section) => steps.flatMap(({ id }) => byStep.get(id)?.map(({ field }) => field) ?? [])
  for (const section of graph.sections.values()) own.set(section.key, new Set(inSection(section)))

  const live = new Map([...own].map(([id, fields]) => [id, new Set(fields)]))
  settle(() => {
    let grew = false
    for (const [id, fields] of live) {
      for (const target of onwardOf(graph, id)) {
        for (const field of live.get(target ?? '') ?? []) {
          if (!fields.has(field)) grew = Boolean(fields.add(field))
        }
      }
    }
    return grew
  })
  return {
    reads,
    inputs: own,
    live: (target) => live.get(target ?? '') ?? new Set(),
    sure: sureOf(draft, graph),
  }
}

/** Targets of a server step, or of a section as a whole. */
function onwardOf({ steps, sections }: Graph, id: string): Target[] {
  const section = sections.get(id)
  if (section) return [...section.exits, ...Object.values(section.outcomes)]
  return Object.values(steps.get(id)?.outlets ?? {})
}

/** Only what the trigger brings is sure: a device that enrols tells of it when its first section ends as authored. */
function sureOf(draft: Draft, graph: Graph): Map<string, Set<Field>> {
  const brought = new Set(
    Object.entries(draft.fields?.event ?? {})
      .filter(([, { required }]) => required)
      .map(([key]) => `event.${key}`),
  )
  const byDevice = isDeviceEnrolled(draft)
  const sure = new Map<string, Set<Field>>([[draft.graph.entry, brought]])
  settle(() => {
    let shrank = false
    const meet = (target: Target, fields: Set<Field>) => {
      if (target === null || (!graph.sections.has(target) && !graph.serverSteps.has(target))) return
      const known = sure.get(target)
      const both = known ? new Set([...known].filter((field) => fields.has(field))) : fields
      if (known?.size !== both.size) {
        sure.set(target, both)
        shrank = true
      }
    }
    for (const [id, fields] of sure) {
      const section = graph.sections.get(id)
      if (!section) for (const target of onwardOf(graph, id)) meet(target, fields)
      else {
        for (const target of section.exits) meet(target, fields)
        const kept = byDevice && id === draft.graph.entry ? new Set<Field>() : fields
        for (const target of Object.values(section.outcomes)) meet(target, kept)
      }
    }
    return shrank
  })
  return sure
}

/** Each round changes one of finitely many sets in one direction, so it ends. */
function settle(round: () => boolean): void {
  while (round());
}

function readsOf({ action }: DraftStep): Field[] {
  const found = new Set<Field>()
  for (const { type, key } of nodesOf(action)) {
    // The body of a webhook is any JSON: what only looks like a field there is none.
    if (typeof key !== 'string') continue
    if (type === 'Event.Field') found.add(`event.${key}`)
    if (type === 'Response.Field') found.add(`responses.${key}`)
  }
  const { until, correlate, entityField } = action
  for (const name of [isObject(until) && until.field, isObject(correlate) && correlate.field, entityField]) {
    if (typeof name === 'string') found.add(name)
  }
  return [...found].toSorted()
}
