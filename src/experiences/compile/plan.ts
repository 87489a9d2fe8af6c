import { dayMs, runSlackDays } from '../../kernel/limits.ts'
import { type Action, outletsOf } from '../draft/actions.ts'
import type { Draft } from '../draft/draft.ts'
import { isDeviceEnrolled } from '../draft/fields.ts'
import type { Graph, Section, Target } from '../draft/graph.ts'
import { isForgeable } from '../draft/trust.ts'
import type { CompiledLeg } from './leg.ts'

/** How the server runs a version: where a journey goes on after each leg, and its own steps. Never sent. */
export interface Plan {
  entry: string
  isDeviceEnrolled: boolean
  /** Of its arms: the higher first. */
  priority: number
  policy: Draft['policy']
  fields: NonNullable<Draft['fields']>
  sections: Record<string, PlanSection>
  steps: Record<string, PlanStep>
}

export interface PlanSection {
  legId: string
  /** How long it is offered; null: as long as usual. */
  armForMs: number | null
  /** How long a device may take from its start. */
  runForMs: number
  /** An outcome that isn't here ends the journey. */
  outcomes: Record<string, Target>
  /** What the leg reads; it can't be offered without those that are required. */
  inputs: PlanFields
  /** What devices may tell at each outcome. */
  outputs: Record<string, PlanFields>
}

export interface PlanFields {
  eventFields: DeclaredField[]
  responseFields: DeclaredField[]
}

/** A declared field, as descriptors carry it. */
export interface DeclaredField {
  key: string
  type: string
  required: boolean
  enum?: string[]
  options?: string[]
  min?: number
  max?: number
}

export interface PlanStep {
  action: Action
  outlets: Record<string, Target>
  /** Its conditions look at what a client can write. */
  forgeable: boolean
}

export function planOf(draft: Draft, graph: Graph, legs: CompiledLeg[]): Plan {
  const plan: Plan = {
    ...{ entry: draft.graph.entry, isDeviceEnrolled: isDeviceEnrolled(draft), priority: draft.priority ?? 0 },
    ...{ policy: draft.policy, fields: draft.fields ?? {}, sections: {}, steps: {} },
  }
  for (const { legId, sectionKey, body } of legs) {
    const section = graph.sections.get(sectionKey)
    if (!section) continue
    // As they were compiled: one place says what legs read and tell.
    const { inputs, completionOutputs } = body.leg as unknown as {
      inputs: PlanFields
      completionOutputs: Record<string, PlanFields>
    }
    plan.sections[sectionKey] = {
      legId,
      armForMs: draft.graph.sections?.[sectionKey]?.armForMs ?? null,
      runForMs: parkMs(section) + runSlackDays * dayMs,
      outcomes: outcomesOf(section),
      inputs,
      outputs: completionOutputs,
    }
  }
  for (const step of [...graph.serverSteps.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    const outlets = outletsOf(step).map((outlet) => [outlet, step.outlets[outlet] ?? null])
    plan.steps[step.id] = {
      ...{ action: step.action, outlets: Object.fromEntries(outlets) },
      forgeable: step.action.type === 'branch' && isForgeable(step.action.branches),
    }
  }
  return plan
}

/** Every outcome that steps or authors know, with where it leads; any other ends the journey. */
export function outcomesOf({ exits, reasons, outcomes }: Section): Record<string, Target> {
  const own = [...exits].map((target) => [target ?? 'completed', target] as const)
  const ended = [...reasons].map((reason) => [reason, null] as const)
  return Object.fromEntries([...ended, ...own, ...Object.entries(outcomes)])
}

/** How long the steps of a leg may wait, one after the other. */
function parkMs({ steps }: Section): number {
  return steps.reduce((sum, { action }) => {
    if (action.type === 'delay') return sum + Number(action.durationMs)
    if (action.type === 'wait_until') return sum + Number(action.maxTimeMs)
    // The next window opens within a week.
    return action.type === 'time_window' ? sum + 7 * dayMs : sum
  }, 0)
}
