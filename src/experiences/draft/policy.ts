import { goalWindowDaysMax, jsonDepthMax } from '../../kernel/limits.ts'
import { checkKept } from '../ir/check-kept.ts'
import { checkIr } from '../ir/grammar.ts'
import type { Draft } from './draft.ts'
import { checkEventName } from './event-names.ts'
import { isDeviceEnrolled } from './fields.ts'
import { type Findings, under } from './findings.ts'
import { depthOf } from './safe-values.ts'
import type { Duration } from './values.ts'

/** Clients read 64 levels, and in a descriptor it lies two below the root. */
const policyDepthMax = jsonDepthMax - 2

const minutesOf = { minute: 1, hour: 60, day: 1440, week: 10_080 }

interface Criterion {
  type: string
  eventName?: string
  condition?: unknown
}

function checkCriterion(
  criterion: Criterion,
  path: string,
  findings: Findings,
  place: 'device' | 'server' | 'goal',
): void {
  if (criterion.eventName !== undefined) checkEventName(criterion.eventName, under(path, 'eventName'), findings)
  if (criterion.condition !== undefined) checkIr(criterion.condition, under(path, 'condition'), findings, place)
}

export function checkPolicy(draft: Draft, findings: Findings): void {
  const depth = depthOf(draft.policy)
  if (depth > policyDepthMax) findings.add('/policy', 'limit_exceeded', `${depth} levels; at most ${policyDepthMax}.`)
  const { entry, goal, exitWhenAny } = draft.policy
  const { trigger, enrolment = 'auto', eligibility } = entry
  checkCriterion(trigger, '/policy/entry/trigger', findings, isDeviceEnrolled(draft) ? 'device' : 'server')
  if (eligibility !== undefined) checkKept(eligibility, '/policy/entry/eligibility', findings)
  if (enrolment === 'device') {
    const path = '/policy/entry/enrolment'
    const entryStep = draft.graph.steps.find(({ id }) => id === draft.graph.entry)
    if (trigger.type === 'api' || trigger.type === 'server_event') {
      const always = `Trigger "${trigger.type}" is always enrolled by the server; enrolment "device" is not possible.`
      findings.add(path, 'trigger_enrolment', always)
    } else if (entryStep?.plane === 'server') {
      findings.add(path, 'trigger_enrolment', 'Enrolment "device" needs a device step as entry.')
    }
  }
  if (goal) {
    checkCriterion(goal.criterion, '/policy/goal/criterion', findings, 'goal')
    if (minutesIn(goal.attribution.window) > goalWindowDaysMax * minutesOf.day) {
      findings.add(
        '/policy/goal/attribution/window',
        'goal_window',
        `Goal window is longer than ${goalWindowDaysMax} days.`,
      )
    }
  }
  for (const [i, exit] of exitWhenAny.entries()) {
    const path = under('/policy/exitWhenAny', i)
    checkCriterion(exit, path, findings, 'server')
    const needs =
      exit.type === 'goal_met' && !goal
        ? 'goal'
        : exit.type === 'eligibility_lost' && !eligibility
          ? 'entry.eligibility'
          : null
    if (needs) findings.add(path, 'exit_incomplete', `exitWhenAny "${exit.type}" needs policy.${needs}.`)
  }
}

function minutesIn({ amount, unit }: Duration): number {
  return amount * minutesOf[unit]
}
