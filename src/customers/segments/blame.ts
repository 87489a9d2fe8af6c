import { type CompiledSet, compile, type Version } from './compile.ts'
import type { Closed } from './visit.ts'

/** Whose fault a look that failed is. */
export interface Verdict {
  /** Pending versions that cannot be computed. */
  versions: number[]
  /** The customer without them; null: the customer is the cause. */
  closed: Closed | null
}

/** Looks again without pending versions, and with one at a time: what fails only with a version is that version's fault. */
export async function blame(
  { versions }: CompiledSet,
  look: (set: CompiledSet) => Promise<{ closed: Closed[] }>,
): Promise<Verdict> {
  const lookWith = async (some: readonly Version[]) => (await look(compile(some))).closed[0] ?? null
  const pending = versions.filter((version) => version.pending)
  const serving = versions.filter((version) => !version.pending)
  const closed = pending.length === 0 ? null : await lookWith(serving)
  if (closed === null) return { versions: [], closed: null }
  const failing = new Set<Version>()
  for (const version of pending) if ((await lookWith([...serving, version])) === null) failing.add(version)
  const others = versions.filter((version) => !failing.has(version))
  const rest = failing.size === 0 ? null : await lookWith(others)
  return rest ? { versions: idsOf([...failing]), closed: rest } : { versions: idsOf(pending), closed }
}

function idsOf(versions: readonly Version[]): number[] {
  return versions.map(({ id }) => id)
}
