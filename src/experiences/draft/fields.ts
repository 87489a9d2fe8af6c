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
  /** What a section reads and does not surely make itself; false: it goes on without it, since a screen of its own asks for it. */
  inputs: Map<string, Map<Field, boolean>>
  /** Declared answers that screens of a section take. */
  captured: Map<string, Set<Field>>
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
  const captured = new Map([...graph.sections.values()].map((section) => [section.key, capturedIn(draft, section)]))
  return {
    reads,
    inputs: inputsOf(graph, { own, captured, made: madeBefore(draft, graph, captured) }),
    captured,
    live: (target) => live.get(target ?? '') ?? new Set(),
    sure: sureOf(draft, graph, captured),
  }
}

function capturedIn({ fields = {} }: Draft, { screens }: Section): Set<Field> {
  const declared = Object.keys(fields.responses ?? {})
  const asked = new Set(screens.flatMap(({ responseCaptures = [] }) => responseCaptures))
  return new Set(declared.filter((key) => asked.has(key)).map((key) => `responses.${key}`))
}

type PerSection = Map<string, Set<Field>>

/** What the section's own screens ask for comes from elsewhere only where something has asked for it before. */
function inputsOf(
  graph: Graph,
  { own, captured, made }: { own: PerSection; captured: PerSection; made: PerSection },
): Map<string, Map<Field, boolean>> {
  return new Map(
    [...graph.sections.keys()].map((key) => {
      const asks = captured.get(key) ?? new Set()
      const fields = [...(own.get(key) ?? [])].filter((field) => !asks.has(field) || made.get(key)?.has(field))
      return [key, new Map(fields.map((field) => [field, !asks.has(field)]))]
    }),
  )
}

/** Answers that some path to a step has taken. */
function madeBefore(draft: Draft, graph: Graph, captured: PerSection): PerSection {
  const made: PerSection = new Map([[draft.graph.entry, new Set()]])
  settle(() => {
    let grew = false
    for (const [id, fields] of made) {
      const save = graph.serverSteps.get(id)?.action.save
      const after = new Set([...fields, ...(captured.get(id) ?? []), ...(isObject(save) ? Object.keys(save) : [])])
      for (const target of onwardOf(graph, id)) {
        if (target === null || (!graph.sections.has(target) && !graph.serverSteps.has(target))) continue
        const known = made.get(target)
        if (known && [...after].every((field) => known.has(field))) continue
        made.set(target, new Set([...after, ...(known ?? [])]))
        grew = true
      }
    }
    return grew
  })
  return made
}

/** Targets of a server step, or of a section as a whole. */
function onwardOf({ steps, sections }: Graph, id: string): Target[] {
  const section = sections.get(id)
  if (section) return [...section.exits, ...Object.values(section.outcomes)]
  return Object.values(steps.get(id)?.outlets ?? {})
}

/**
 * What the trigger brings is sure, and required answers that a section's screens take: where it ends as authored, a device
 * that has not got them tells of a broken-off section instead. One that enrols tells of its trigger there too.
 */
function sureOf(draft: Draft, graph: Graph, captured: PerSection): PerSection {
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
        const answers = [...(captured.get(id) ?? [])].filter((field) => isRequired(draft, field))
        for (const target of section.exits) meet(target, new Set([...fields, ...answers]))
        const kept = byDevice && id === draft.graph.entry ? new Set<Field>() : fields
        for (const target of Object.values(section.outcomes)) meet(target, kept)
      }
    }
    return shrank
  })
  return sure
}

function isRequired({ fields = {} }: Draft, field: Field): boolean {
  const key = field.slice('responses.'.length)
  return Object.hasOwn(fields.responses ?? {}, key) && fields.responses?.[key]?.required === true
}

/** Each round changes one of finitely many sets in one direction, so it ends. */
function settle(round: () => boolean): void {
  while (round());
}

function readsOf({ action }: DraftStep): Field[] {
  const found = new Set<Field>()
  for (const { type, key, form } of nodesOf(action)) {
    // The body of a webhook is any JSON: what only looks like a field there is none. Forms stay on the device.
    if (typeof key !== 'string' || form !== undefined) continue
    if (type === 'Event.Field') found.add(`event.${key}`)
    if (type === 'Response.Field') found.add(`responses.${key}`)
  }
  const { until, correlate, entityField } = action
  for (const name of [isObject(until) && until.field, isObject(correlate) && correlate.field, entityField]) {
    if (typeof name === 'string') found.add(name)
  }
  return [...found].toSorted()
}

/** Reads of forms, which hold their answers on the device. */
export function formReads({ graph }: Draft): { step: DraftStep; form: string; key: string }[] {
  return graph.steps
    .filter(({ plane }) => plane === 'device')
    .flatMap((step) =>
      [...nodesOf(step.action)].flatMap(({ type, form, key }) =>
        type === 'Response.Field' && typeof form === 'string' && typeof key === 'string' ? [{ step, form, key }] : [],
      ),
    )
}
