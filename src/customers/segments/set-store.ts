import { LRUCache } from 'lru-cache'
import type { Sql } from '../../db/pool.ts'
import { segmentSetsKept } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type CompiledSet, compile, type Definition } from './compile.ts'
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
  const set = compile(await definitionsOf(sql, scope))
  compiled.set(revision, set)
  return set
}

/** Definitions that serve, and those that will. */
export async function definitionsOf(sql: Sql, scope: Scope): Promise<Definition[]> {
  const rows = await sql.query<VersionRow>(
    `select v.id, v.segment_id, s.public_id, v.state, v.definition
     from segment_version v
     join segment s on s.scope_id = $1 and s.id = v.segment_id
     where v.scope_id = $1
       and v.state in ('pending', 'serving')
     order by v.id`,
    [scope.scopeId],
  )
  return rows.map(({ id, segment_id: segmentId, public_id: publicId, state, definition }) => ({
    ...{ id, segmentId, publicId },
    pending: state === 'pending',
    condition: parseDefinition(definition),
  }))
}
