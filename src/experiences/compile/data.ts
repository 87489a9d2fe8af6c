import type { Draft } from '../draft/draft.ts'
import { type Field, type FieldFlow, isDeviceEnrolled } from '../draft/fields.ts'
import type { Section, Target } from '../draft/graph.ts'

/** What the leg reads, and what it tells at each of its ends: of what it alone has seen, exactly what something reads later. */
export function dataOf(
  draft: Draft,
  flow: FieldFlow,
  { section, outcomes }: { section: Section; outcomes: Record<string, Target> },
) {
  const seesTrigger = section.key === draft.graph.entry && isDeviceEnrolled(draft)
  const captured = flow.captured.get(section.key) ?? new Set<Field>()
  const told = new Set<Field>()
  const ends = Object.entries(outcomes).filter(([outcome]) => !isBuiltIn(section, outcome))
  const completionOutputs = Object.fromEntries(
    ends.map(([outcome, target]) => {
      const live = [...flow.live(target)].filter((field) =>
        field.startsWith('event.') ? seesTrigger : captured.has(field),
      )
      for (const field of live) told.add(field)
      return [outcome, fieldsOf(draft, new Map(live.map((field) => [field, true])))]
    }),
  )
  const seen = [...told].filter((field) => field.startsWith('event.')).map((field) => [field, true] as const)
  const answers = [...told].filter((field) => !field.startsWith('event.')).map((field) => [field, true] as const)
  return {
    inputs: fieldsOf(draft, new Map([...(flow.inputs.get(section.key) ?? []), ...seen])),
    outputs: fieldsOf(draft, new Map(answers)).responseFields,
    completionOutputs,
  }
}

/** Reported by the device itself, without a step that leads there. */
function isBuiltIn({ exits, reasons }: Section, outcome: string): boolean {
  return !reasons.has(outcome) && !exits.has(outcome) && !(outcome === 'completed' && exits.has(null))
}

/** By key, in order; false: whatever is declared, the leg goes on without it. */
function fieldsOf({ fields = {} }: Draft, wanted: ReadonlyMap<Field, boolean>) {
  const of = (kind: 'event' | 'responses') =>
    Object.entries(fields[kind] ?? {})
      .flatMap(([key, field]) => {
        const must = wanted.get(`${kind}.${key}`)
        return must === undefined ? [] : [{ key, ...field, required: must && field.required }]
      })
      .toSorted((a, b) => (a.key < b.key ? -1 : 1))
  return { eventFields: of('event'), responseFields: of('responses') }
}
