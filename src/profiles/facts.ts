import { type Decision, type DeliveredRelease, decideVariant, type Experiment } from '../experiences/index.ts'
import type { Person, ProfileInput } from './types.ts'

const kinds = ['properties', 'memberships', 'assignments'] as const
type Kind = (typeof kinds)[number]
const declaredAs = { properties: 'propertyKeys', memberships: 'segmentIds', assignments: 'experimentIds' } as const

/** Members of the three objects as JSON, by key: exactly what the releases declare. */
export interface Facts {
  entries: Record<Kind, Map<string, string>>
  /** Experiments that give the customer a variant with this profile: to be stored before it is told. */
  fresh: Set<string>
}

export function noFacts(): Facts {
  return { entries: { properties: new Map(), memberships: new Map(), assignments: new Map() }, fresh: new Set() }
}

export interface AddedFact {
  kind: Kind
  key: string
  entry: string
  isFresh: boolean
}

/** What a further release adds, and how many bytes that is. */
export function factsOf(
  input: ProfileInput,
  { entries }: Facts,
  release: DeliveredRelease,
): { added: AddedFact[]; bytes: number } {
  const added: AddedFact[] = []
  let bytes = 0
  for (const kind of kinds) {
    let count = entries[kind].size
    for (const key of release.facts[declaredAs[kind]]) {
      const there = entries[kind].get(key)
      // A variant that one release does not list may be one of another's.
      if (there !== undefined && !(kind === 'assignments' && there.endsWith(':null'))) continue
      const { value, isFresh } = factOf(input, kind, key, release)
      const entry = `${JSON.stringify(key)}:${value}`
      if (entry === there) continue
      bytes += there === undefined ? Buffer.byteLength(entry) + (count++ > 0 ? 1 : 0) : entry.length - there.length
      added.push({ kind, key, entry, isFresh })
    }
  }
  return { added, bytes }
}

export function addFacts({ entries, fresh }: Facts, added: readonly AddedFact[]): void {
  for (const { kind, key, entry, isFresh } of added) {
    entries[kind].set(key, entry)
    if (isFresh) fresh.add(key)
  }
}

export function factsJson({ entries }: Facts): string {
  const object = (kind: Kind) => {
    const sorted = [...entries[kind]].toSorted(([a], [b]) => (a < b ? -1 : 1))
    return `"${kind}":{${sorted.map(([, entry]) => entry).join(',')}}`
  }
  return `{${kinds.map(object).join(',')}}`
}

function factOf(
  input: ProfileInput,
  kind: Kind,
  key: string,
  release: DeliveredRelease,
): { value: string; isFresh: boolean } {
  const { person, delivery } = input
  switch (kind) {
    case 'properties': {
      // A stored null is a value.
      const has = Object.hasOwn(person.properties, key)
      const value = has ? `{"present":true,"value":${JSON.stringify(person.properties[key])}}` : '{"present":false}'
      return { value, isFresh: false }
    }
    case 'memberships': {
      const segment = delivery.segments.get(key)
      return { value: String(segment !== undefined && person.members.has(segment.versionId)), isFresh: false }
    }
    case 'assignments': {
      const decision = decisionOf(input, key)
      // What no signed step lists acts like none.
      const isListed = decision !== null && release.variants.get(key)?.has(decision.assignment.variantId)
      if (!isListed) return { value: 'null', isFresh: decision?.fresh ?? false }
      const { variantId, isHoldout } = decision.assignment
      return { value: JSON.stringify({ variantId, isHoldout }), isFresh: decision.fresh }
    }
  }
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
export function asksForBirth({ person, delivery }: ProfileInput, { entries }: Facts): boolean {
  if (unitOf(person) !== undefined) return false
  return [...entries.assignments.keys()].some((id) => {
    const experiment = delivery.experiments.get(id)
    return experiment !== undefined && dealsByUnit(experiment)
  })
}

function dealsByUnit({ status }: Experiment): boolean {
  return status === 'running' || status === 'paused'
}
