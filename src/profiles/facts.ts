import type { DeliveredRelease } from '../experiences/index.ts'
import type { ProfileInput } from './types.ts'

const kinds = ['properties', 'memberships', 'assignments'] as const
type Kind = (typeof kinds)[number]
const declaredAs = { properties: 'propertyKeys', memberships: 'segmentIds', assignments: 'experimentIds' } as const

/** Members of the three objects as JSON, by key: exactly what the releases declare. */
export interface Facts {
  entries: Record<Kind, Map<string, string>>
}

export function noFacts(): Facts {
  return { entries: { properties: new Map(), memberships: new Map(), assignments: new Map() } }
}

/** What a further release adds, and how many bytes that is. */
export function factsOf(input: ProfileInput, { entries }: Facts, release: DeliveredRelease) {
  const added: [Kind, string, string][] = []
  let bytes = 0
  for (const kind of kinds) {
    let count = entries[kind].size
    for (const key of release.facts[declaredAs[kind]]) {
      if (entries[kind].has(key)) continue
      const entry = `${JSON.stringify(key)}:${factOf(input, kind, key)}`
      bytes += Buffer.byteLength(entry) + (count++ > 0 ? 1 : 0)
      added.push([kind, key, entry])
    }
  }
  return { added, bytes }
}

export function addFacts({ entries }: Facts, added: readonly [Kind, string, string][]): void {
  for (const [kind, key, entry] of added) entries[kind].set(key, entry)
}

export function factsJson({ entries }: Facts): string {
  const object = (kind: Kind) => {
    const sorted = [...entries[kind]].toSorted(([a], [b]) => (a < b ? -1 : 1))
    return `"${kind}":{${sorted.map(([, entry]) => entry).join(',')}}`
  }
  return `{${kinds.map(object).join(',')}}`
}

function factOf({ person, delivery }: ProfileInput, kind: Kind, key: string): string {
  switch (kind) {
    case 'properties':
      // A stored null is a value.
      if (!Object.hasOwn(person.properties, key)) return '{"present":false}'
      return `{"present":true,"value":${JSON.stringify(person.properties[key])}}`
    case 'memberships': {
      const segment = delivery.segments.get(key)
      return String(segment !== undefined && person.members.has(segment.versionId))
    }
    case 'assignments':
      return 'null'
  }
}
