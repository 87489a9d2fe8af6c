import type { Json, JsonObject } from '../../events/index.ts'
import { isObject } from '../is-object.ts'

/** What a device says of the step or control that an event came of. */
export interface OriginClaim {
  journeyId: string
  experienceId: string
  versionId: string
  legId: string
  generation: number
  source: { kind: 'step'; stepId: string } | { kind: 'control'; screenId: string; actionId: string }
}

/** The parts of a descriptor that say which events a leg sends. */
export interface AuthoredLeg {
  leg: { steps: { id: string; action?: { type: string; eventName?: string } }[] }
  screenBehaviors: {
    screenId: string
    controls: {
      actionId: string
      behavior: { kind: string; program?: { type: string; eventName?: string }[] }
    }[]
  }[]
}

/** Null: it claims nothing, or not what belongs to this event. */
export function originOf(claim: JsonObject | null, eventUuid: string): OriginClaim | null {
  if (claim === null) return null
  const text = (key: string) => (typeof claim[key] === 'string' ? claim[key] : '')
  const { generation } = claim
  if (text('occurrenceId').toLowerCase() !== eventUuid || typeof generation !== 'number') return null
  const source = sourceOf(text)
  if (!source) return null
  return {
    journeyId: text('journeyId').toLowerCase(),
    ...{ experienceId: text('experienceId'), versionId: text('versionId'), legId: text('legId') },
    ...{ generation, source },
  }
}

function sourceOf(text: (key: string) => string): OriginClaim['source'] | null {
  switch (text('source')) {
    case 'device_action':
      return { kind: 'step', stepId: text('stepId') }
    case 'screen_control':
      return { kind: 'control', screenId: text('screenId'), actionId: text('actionId') }
    default:
      return null
  }
}

/** Whether that step or control of the leg sends events of this name. Scripts may send any. */
export function sends(
  { leg, screenBehaviors }: AuthoredLeg,
  source: OriginClaim['source'],
  eventName: string,
): boolean {
  if (source.kind === 'step') {
    const action = leg.steps.find(({ id }) => id === source.stepId)?.action
    return action?.type === 'send_event' && action.eventName === eventName
  }
  const screen = screenBehaviors.find(({ screenId }) => screenId === source.screenId)
  const behavior = screen?.controls.find(({ actionId }) => actionId === source.actionId)?.behavior
  if (behavior?.kind === 'script') return true
  return behavior?.program?.some((item) => item.type === 'emit' && item.eventName === eventName) ?? false
}

/** An event that names one converts no other. */
export function namesJourney(properties: JsonObject): boolean {
  return ['journey_id', 'experience_id', 'experience_version_id'].some((key) => isNamed(properties, key))
}

function isNamed(properties: JsonObject, key: string): boolean {
  const value: Json | undefined = Object.hasOwn(properties, key) ? properties[key] : undefined
  return value !== undefined && value !== null && !isObject(value)
}
