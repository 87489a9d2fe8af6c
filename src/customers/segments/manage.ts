import type { Sql, Tx } from '../../db/pool.ts'
import { applyCommand, type Json } from '../../events/index.ts'
import { must } from '../../kernel/assert.ts'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import { refuse } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import { segmentsMax } from '../../kernel/limits.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Condition } from './definition.ts'
import { askedFor, dependentsOf, type Judged } from './dependents.ts'
import {
  insertPending,
  insertSegment,
  redefineSegment,
  renameSegment,
  retireSegment,
  type Segment,
  selectSegment,
  selectSegmentPage,
  selectSegments,
} from './manage-store.ts'
import { parseDefinition, parseNewDefinition } from './parse-definition.ts'
import { ring } from './state-store.ts'
import { takeSegments } from './uses-store.ts'

/** A segment and the ids of those whose definitions ask for it. */
export interface UsedSegment {
  segment: Segment
  usedBy: string[]
}

/**
 * Saves a definition, at a position of the lane; `keptDays`: how long events are kept. It is `backfilling` until every customer was looked at. 400 with issues
 * for one that cannot be kept, 409 beyond 200 segments.
 */
export async function createSegment(
  tx: Tx,
  scope: Scope,
  { name, definition, keptDays }: { name: string; definition: unknown; keptDays: number },
): Promise<UsedSegment> {
  const publicId = newId('seg')
  const condition = parseNewDefinition(definition, keptDays)
  await applyCommand(tx, scope, 'create_segment', { segment_id: publicId })
  const others = await selectSegments(tx, scope)
  if (others.length >= segmentsMax) {
    throw refuse('conflict', { message: `A project has at most ${segmentsMax} segments in an environment.` })
  }
  checkAsked(others, { publicId, condition })
  await insertSegment(tx, scope, { publicId, name, definition: definition as Json, internalOf: null }) // it was parsed from JSON
  await insertPending(tx, scope, [publicId])
  await ring(tx, scope)
  return getSegment(tx, [scope], publicId)
}

/**
 * Renames or redefines a segment. The definition before goes on serving until every customer was looked at; segments that
 * ask for this one are looked at with it, and all of them are swapped in at once.
 */
export async function updateSegment(
  tx: Tx,
  scopes: Scope[],
  publicId: string,
  { name, definition, keptDays }: { name?: string | undefined; definition?: unknown; keptDays: number },
): Promise<{ before: UsedSegment; after: UsedSegment; scope: Scope }> {
  const before = await getSegment(tx, scopes, publicId)
  const { segment } = before
  const scope = must(
    scopes.find(({ scopeId }) => scopeId === segment.scopeId),
    'it was found there',
  )
  if (name !== undefined) await renameSegment(tx, segment, name)
  const unchanged = segment.status !== 'failed' && canonicalJson(definition) === canonicalJson(segment.definition)
  if (definition !== undefined && !unchanged) await redefine(tx, scope, segment, { definition, keptDays })
  return { before, after: await getSegment(tx, scopes, publicId), scope }
}

async function redefine(
  tx: Tx,
  scope: Scope,
  segment: Segment,
  { definition, keptDays }: { definition: unknown; keptDays: number },
): Promise<void> {
  const { publicId } = segment
  const condition = parseNewDefinition(definition, keptDays)
  await applyCommand(tx, scope, 'redefine_segment', { segment_id: publicId })
  const all = await selectSegments(tx, scope)
  checkAsked(all, { publicId, condition })
  await redefineSegment(tx, segment, definition as Json) // it was parsed from JSON
  await insertPending(tx, scope, [publicId, ...dependentsOf(all.map(judgedOf), publicId)])
  await ring(tx, scope)
}

/** Gives the segment as it was. 409 while another one asks for it; whoever else may ask (`keepSegments`) is to be seen afterwards. */
export async function deleteSegment(
  tx: Tx,
  scopes: Scope[],
  publicId: string,
): Promise<{ before: UsedSegment; scope: Scope }> {
  const found = await getSegment(tx, scopes, publicId)
  const scope = must(
    scopes.find(({ scopeId }) => scopeId === found.segment.scopeId),
    'it was found there',
  )
  await takeSegments(tx, scope)
  await applyCommand(tx, scope, 'delete_segment', { segment_id: publicId })
  const before = await getSegment(tx, scopes, publicId)
  if (before.usedBy.length > 0) {
    throw refuse('conflict', {
      message: 'The segment is in use.',
      details: { used_by: before.usedBy.map((id) => ({ object: 'segment', id })) },
    })
  }
  await retireSegment(tx, before.segment)
  await ring(tx, scope)
  return { before, scope }
}

/** 404 when there is none in these scopes. */
export async function getSegment(sql: Sql, scopes: readonly Scope[], publicId: string): Promise<UsedSegment> {
  const segment = await selectSegment(sql, scopes, publicId)
  const scope = scopes.find(({ scopeId }) => scopeId === segment?.scopeId)
  if (!segment || !scope) throw refuse('not_found')
  return { segment, usedBy: usersOf(await selectSegments(sql, scope), publicId) }
}

/** Newest first. */
export async function listSegments(sql: Sql, scope: Scope, page: Page): Promise<UsedSegment[]> {
  const all = await selectSegments(sql, scope)
  const found = await selectSegmentPage(sql, scope, page)
  return found.map((segment) => ({ segment, usedBy: usersOf(all, segment.publicId) }))
}

function usersOf(all: readonly Segment[], publicId: string): string[] {
  return all.filter((other) => askedFor(parseDefinition(other.definition)).has(publicId)).map((other) => other.publicId)
}

function judgedOf({ publicId, definition }: Segment): Judged {
  return { publicId, condition: parseDefinition(definition) }
}

/** Refuses segments that are not there, and a definition that comes back to itself. */
export function checkAsked(
  all: readonly Segment[],
  { publicId, condition }: { publicId: string; condition: Condition },
): void {
  const known = new Set(all.flatMap((segment) => (segment.internalOf === null ? [segment.publicId] : [])))
  const around = dependentsOf(all.map(judgedOf), publicId)
  const issues = placesOf(condition).flatMap(({ id, path }) => {
    if (id === publicId || around.has(id))
      return [{ path, message: `${id} asks for this segment, directly or further around` }]
    return known.has(id) ? [] : [{ path, message: `there is no segment ${id}` }]
  })
  if (issues.length > 0)
    throw refuse('invalid_request', { param: 'definition', message: 'The definition is not valid.', issues })
}

function placesOf(condition: Condition): { id: string; path: string }[] {
  if (condition.kind === 'not') return placesOf(condition.of)
  if (condition.kind !== 'leaf') return condition.of.flatMap(placesOf)
  const { leaf, path } = condition
  return leaf.kind === 'segment' ? [{ id: leaf.id, path: `${path}.id` }] : []
}
