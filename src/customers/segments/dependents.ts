import { type Condition, leavesOf } from './definition.ts'

/** A segment, and by what it is judged. */
export interface Judged {
  publicId: string
  condition: Condition
}

/** The segments that a definition asks for. */
export function askedFor(condition: Condition): Set<string> {
  return new Set(leavesOf(condition).flatMap((leaf) => (leaf.kind === 'segment' ? [leaf.id] : [])))
}

/** All that ask for the segment, however far around. They change when its definition does, so they are swapped with it. */
export function dependentsOf(segments: readonly Judged[], publicId: string): Set<string> {
  const dependents = new Set<string>()
  const visit = (asked: string) => {
    for (const segment of segments) {
      if (dependents.has(segment.publicId) || !askedFor(segment.condition).has(asked)) continue
      dependents.add(segment.publicId)
      visit(segment.publicId)
    }
  }
  visit(publicId)
  return dependents
}
