import { LRUCache } from 'lru-cache'
import type { Sql } from '../../db/pool.ts'
import { segmentSetsKept } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type CompiledSet, compile, type Definition } from './compile.ts'
import type { Condition } from './definition.ts'
import { parseDefinition } from './parse-definition.ts'

interface VersionRow {
  id: number
  segment_id: number
  public_id: string
  state: 'pending' | 'serving'
  definition: unknown
}

/** By revision, which is unique in the world: a set is compiled once and never changes. */
const compiled = new LRUCache<string, CompiledSet>({ max: segmentSetsKept })

/** The definitions of a lane as of `revision`, read in the transaction that saw it under the lane's row. */
export async function setOf(sql: Sql, scope: Scope, revision: string): Promise<CompiledSet> {
  const known = compiled.get(revision)
  if (known) return known
  const { definitions, unread } = await definitionsOf(sql, scope)
  const set = { ...compile(definitions), unread }
  compiled.set(revision, set)
  return set
}

/** Definitions that serve, and those that will; of the latter, those that can be read. */
export async function definitionsOf(sql: Sql, scope: Scope): Promise<{ definitions: Definition[]; unread: number[] }> {
  const rows = await sql.query<VersionRow>(
    `select v.id, v.segment_id, s.public_id, v.state, v.definition
     from segment_version v
     join segment s on s.scope_id = $1 and s.id = v.segment_id
     where v.scope_id = $1
       and v.state in ('pending', 'serving')
     order by v.id`,
    [scope.scopeId],
  )
  const definitions: Definition[] = []
  const unread: number[] = []
  for (const { id, segment_id: segmentId, public_id: publicId, state, definition } of rows) {
    const pending = state === 'pending'
    const condition = conditionOf(definition, pending)
    if (condition) definitions.push({ id, segmentId, publicId, pending, condition })
    else unread.push(id)
  }
  return { definitions, unread }
}

/** What serves must be read: to leave it out would forget what it has counted. */
function conditionOf(definition: unknown, pending: boolean): Condition | null {
  try {
    return parseDefinition(definition)
  } catch (error) {
    if (pending) return null
    throw error
  }
}
