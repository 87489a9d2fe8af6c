import type { Disposition, Input, LegChange, LegRun } from '../types.ts'
import { bump, type Change, clearTimers, NeedsMore, sectionOf, setTimer } from './change.ts'
import { declaredOf, merged } from './fields.ts'
import { run } from './run.ts'

type Started = Extract<Input, { kind: 'legStarted' }>
type Completed = Extract<Input, { kind: 'legCompleted' }>

/** Known to devices without being authored: where nothing leads on from them, the journey ends. */
const builtIn = new Set(['completed', 'abandoned', 'host_dismissed', 'products_unavailable', 'expired', 'holdout'])

export function legStarted(change: Change, { generation, legId, startedAt, eventId }: Started): Disposition {
  const { journey, now, effects } = change
  const leg = legOf(change, generation, legId)
  if (typeof leg === 'string') return leg
  if (leg.startedEvent !== null) return 'duplicate'
  const set: LegChange = { startedAt, startedEvent: eventId }
  if (leg.completedEvent !== null) {
    effects.push({ kind: 'leg', generation, set: { ...set, note: 'late_start' } })
    return 'late_start'
  }
  if (!isCurrent(change, leg) || journey.status !== 'armed') {
    effects.push({ kind: 'leg', generation, set: { ...set, note: 'late' } })
    return 'late'
  }
  clearTimers(change, 'arm')
  effects.push({ kind: 'disarm', generation }, { kind: 'leg', generation, set: { ...set, status: 'on_device' } })
  journey.status = 'on_device'
  const section = sectionOf(change, leg.sectionKey)
  setTimer(change, 'run', now + (section?.runForMs ?? 0))
  bump(change)
  return 'applied'
}

export function legCompleted(change: Change, report: Completed): Disposition {
  const { journey, effects } = change
  const { generation, legId, outputs, startedAt, completedAt, eventId } = report
  const leg = legOf(change, generation, legId)
  if (typeof leg === 'string') return leg
  if (leg.completedEvent !== null) return 'duplicate'
  const started = leg.startedEvent === null ? { startedAt } : {}
  const done: LegChange = { ...started, completedAt, completedEvent: eventId }
  if (!isCurrent(change, leg)) {
    effects.push({ kind: 'leg', generation, set: { ...done, outcome: report.outcome, outputs, note: 'late' } })
    return 'late'
  }
  const section = sectionOf(change, leg.sectionKey)
  const isKnown = builtIn.has(report.outcome) || Object.hasOwn(section?.outcomes ?? {}, report.outcome)
  const outcome = isKnown ? report.outcome : 'abandoned'
  const declared = section && Object.hasOwn(section.outputs, outcome) ? section.outputs[outcome] : undefined
  const { kept, dropped } = declaredOf(outputs, declared)
  if (journey.status === 'armed') effects.push({ kind: 'disarm', generation })
  clearTimers(change, 'arm', 'run')
  journey.context = merged(journey.context, kept)
  journey.trust = 'device'
  const notes = [...(isKnown ? [] : ['outcome_unknown']), ...(dropped ? ['output_dropped'] : [])]
  effects.push({
    ...{ kind: 'leg', generation },
    set: {
      ...done,
      status: 'completed',
      outcome,
      outputs: kept,
      ...(notes.length > 0 ? { note: notes.join(' ') } : {}),
    },
  })
  bump(change)
  run(change, section && Object.hasOwn(section.outcomes, outcome) ? section.outcomes[outcome] : null)
  return 'applied'
}

/** The offer that the report names. */
function legOf({ facts }: Change, generation: number, legId: string): LegRun | Disposition {
  if (facts.leg === undefined) throw new NeedsMore({ leg: generation })
  if (facts.leg === null) return 'unknown_generation'
  return facts.leg.legId === legId ? facts.leg : 'reference_mismatch'
}

function isCurrent({ journey }: Change, { generation, status }: LegRun): boolean {
  const isOpen = journey.status === 'armed' || journey.status === 'on_device'
  return isOpen && generation === journey.generation && (status === 'armed' || status === 'on_device')
}
