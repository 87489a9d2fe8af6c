import { nodesOf, type Plan } from '../../experiences/index.ts'

/** What the journeys of a version listen to. */
export interface Interests {
  events: Set<string>
  segments: Set<string>
  /** Properties that an eligibility reads whose loss ends journeys. */
  properties: Set<string>
}

/** The service itself says so when a customer's access to a Feature changed. */
export const accessEvent = '$feature_access_changed'

/** Pure. A trigger that devices judge by themselves is none of the server's. */
export function interestsOf({ policy, steps, isDeviceEnrolled }: Plan): Interests {
  const interests: Interests = { events: new Set(), segments: new Set(), properties: new Set() }
  const listen = (to: object) => {
    if ('eventName' in to && typeof to.eventName === 'string') interests.events.add(to.eventName)
    if ('segmentId' in to && typeof to.segmentId === 'string') interests.segments.add(to.segmentId)
  }
  const { entry, goal, exitWhenAny } = policy
  if (!isDeviceEnrolled) listen(entry.trigger)
  if (goal) listen(goal.criterion)
  for (const exit of exitWhenAny) listen(exit)
  if (goal?.attribution.basis === 'first_shown') interests.events.add('$experience_shown')
  for (const { action } of Object.values(steps)) if (action.type === 'wait_for_event') listen(action)
  if (exitWhenAny.some(({ type }) => type === 'eligibility_lost')) {
    for (const { type, key, id } of nodesOf(entry.eligibility)) {
      if (type === 'User' && typeof key === 'string') interests.properties.add(key)
      if (type === 'Segment' && typeof id === 'string') interests.segments.add(id)
      if (type === 'Feature') interests.events.add(accessEvent)
    }
  }
  return interests
}

export function joined(all: Iterable<Interests>): Interests {
  const sum: Interests = { events: new Set(), segments: new Set(), properties: new Set() }
  for (const { events, segments, properties } of all) {
    for (const name of events) sum.events.add(name)
    for (const id of segments) sum.segments.add(id)
    for (const key of properties) sum.properties.add(key)
  }
  return sum
}
