import { type Decision, type DeliveredRelease, decideVariant, type Experiment } from '../experiences/index.ts'
import type { Person, ProfileInput } from './types.ts'

/** What releases declare between them: the members of the three objects, each in its order, with their names as JSON. */
export interface Declared {
  properties: { key: string; present: string; absent: string }[]
  memberships: { key: string; name: string }[]
  /** With the variants that any step of theirs lists. */
  assignments: { key: string; name: string; listed: ReadonlySet<string> }[]
}

export function declaredBy(releases: readonly DeliveredRelease[]): Declared {
  const keysOf = (kind: keyof DeliveredRelease['facts']) =>
    [...new Set(releases.flatMap(({ facts }) => facts[kind]))].toSorted()
  const nameOf = (key: string) => `${JSON.stringify(key)}:`
  return {
    properties: keysOf('propertyKeys').map((key) => ({
      ...{ key, present: `${nameOf(key)}{"present":true,"value":`, absent: `${nameOf(key)}{"present":false}` },
    })),
    memberships: keysOf('segmentIds').map((key) => ({ key, name: nameOf(key) })),
    assignments: keysOf('experimentIds').map((key) => ({
      ...{ key, name: nameOf(key) },
      listed: new Set(releases.flatMap(({ variants }) => [...(variants.get(key) ?? [])])),
    })),
  }
}

/** Exactly what is declared, as JSON, and the experiments that give the customer a variant with it: to be stored before it is told. */
export function factsOf(input: ProfileInput, declared: Declared): { json: string; fresh: string[] } {
  const { person, delivery } = input
  const fresh: string[] = []
  const properties = declared.properties.map(({ key, present, absent }) => {
    // A stored null is a value.
    return Object.hasOwn(person.properties, key) ? `${present}${JSON.stringify(person.properties[key])}}` : absent
  })
  const memberships = declared.memberships.map(({ key, name }) => {
    const segment = delivery.segments.get(key)
    return `${name}${segment !== undefined && person.members.has(segment.versionId)}`
  })
  const assignments = declared.assignments.map(({ key, name, listed }) => {
    const decision = decisionOf(input, key)
    if (decision?.fresh) fresh.push(key)
    return name + assignmentJson(decision, listed)
  })
  const json = `{"properties":{${properties.join(',')}},"memberships":{${memberships.join(',')}},"assignments":{${assignments.join(',')}}}`
  return { json, fresh }
}

/** What no signed step lists acts like none. */
function assignmentJson(decision: Decision, listed: ReadonlySet<string>): string {
  if (decision === null || !listed.has(decision.assignment.variantId)) return 'null'
  const { variantId, isHoldout } = decision.assignment
  return JSON.stringify({ variantId, isHoldout })
}

/** An id without a record is dealt by the one that it will have; before that is foreseen it has none. */
function decisionOf({ person, delivery }: ProfileInput, id: string): Decision {
  const experiment = delivery.experiments.get(id)
  if (!experiment) return null
  const { audienceSegmentId, id: row, phase } = experiment
  const unit = unitOf(person)
  if (unit === undefined && dealsByUnit(experiment)) return null
  const audience = audienceSegmentId === null ? undefined : delivery.segments.get(audienceSegmentId)
  return decideVariant(experiment, {
    customerId: unit ?? '',
    stored: person.assignments.get(`${row} ${phase}`),
    inAudience: audienceSegmentId === null || (audience !== undefined && person.members.has(audience.versionId)),
  })
}

/** Whom experiments deal to; undefined: an id of which nothing was heard, and nobody has looked what it will be. */
export function unitOf({ customerId, birthId }: Pick<Person, 'customerId' | 'birthId'>): string | undefined {
  return customerId ?? birthId
}

/** Whether a variant of these hangs on a record that has to be foreseen first. */
export function asksForBirth({ person, delivery }: ProfileInput, { assignments }: Declared): boolean {
  if (unitOf(person) !== undefined) return false
  return assignments.some(({ key }) => {
    const experiment = delivery.experiments.get(key)
    return experiment !== undefined && dealsByUnit(experiment)
  })
}

function dealsByUnit({ status }: Experiment): boolean {
  return status === 'running' || status === 'paused'
}
