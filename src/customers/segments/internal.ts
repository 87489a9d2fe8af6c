import type { Tx } from '../../db/pool.ts'
import { applyCommand, type Json } from '../../events/index.ts'
import { type Issue, Refusal, refuse } from '../../kernel/errors.ts'
import { segmentsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { insertPending, insertSegment, retireSegment, selectSegments } from './manage-store.ts'
import { parseDefinition, parseNewDefinition } from './parse-definition.ts'
import { ring } from './state-store.ts'

/** A Segment that the service keeps for something of its own: by an id that says what it asks, and never listed. */
export interface InternalSegment {
  id: string
  definition: unknown
}

/** What is wrong with a definition; none: it can be kept, as far as it looks back no longer than events are kept. */
export function segmentIssues(definition: unknown): Issue[] {
  try {
    parseDefinition(definition)
    return []
  } catch (error) {
    if (error instanceof Refusal) return error.detail.issues ?? []
    throw error
  }
}

/**
 * Has these kept from here on, for an owner; those that are kept already stay. 400 with issues for one that looks back longer
 * than events are kept, 409 beyond 200 segments.
 */
export async function keepInternalSegments(
  tx: Tx,
  scope: Scope,
  { owner, segments, keptDays }: { owner: string; segments: readonly InternalSegment[]; keptDays: number },
): Promise<void> {
  if (segments.length === 0) return
  for (const { definition } of segments) parseNewDefinition(definition, keptDays)
  await applyCommand(tx, scope, 'keep_segments', { owner, segment_ids: segments.map(({ id }) => id) })
  const kept = await selectSegments(tx, scope)
  const known = new Set(kept.map(({ publicId }) => publicId))
  const missing = segments.filter(({ id }) => !known.has(id))
  if (missing.length === 0) return
  if (kept.length + missing.length > segmentsMax) {
    throw refuse('conflict', {
      message: `A project has at most ${segmentsMax} segments in an environment; conditions over past events count as some.`,
    })
  }
  for (const { id: publicId, definition } of missing) {
    // It was parsed.
    await insertSegment(tx, scope, { publicId, name: owner, definition: definition as Json, internalOf: owner })
  }
  await insertPending(
    tx,
    scope,
    missing.map(({ id }) => id),
  )
  await ring(tx, scope)
}

/** Those of an owner are kept no longer. */
export async function dropInternalSegments(tx: Tx, scope: Scope, owner: string): Promise<void> {
  const own = (await selectSegments(tx, scope)).filter(({ internalOf }) => internalOf === owner)
  if (own.length === 0) return
  await applyCommand(tx, scope, 'drop_segments', { owner, segment_ids: own.map(({ publicId }) => publicId) })
  for (const segment of own) await retireSegment(tx, segment)
  await ring(tx, scope)
}
