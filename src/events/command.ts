import type { Tx } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'
import { insertCommands } from './lane-store.ts'
import type { Json } from './types.ts'

/**
 * Gives a change from outside the log, such as an edit through the Workspace API, its position in the lane: locks the
 * lane's row until the end of `tx` and leaves a record, so that a rebuild does the same at the same place. Call it before
 * changing customers: the lane takes its row first too.
 */
export function applyCommand(tx: Tx, scope: Scope, kind: string, body: Json): Promise<bigint> {
  return insertCommands(tx, scope, kind, [JSON.stringify(body)])
}

/** The same for several of one kind at once, in their order: each has a position of its own. */
export async function applyCommands(tx: Tx, scope: Scope, kind: string, bodies: readonly Json[]): Promise<bigint[]> {
  if (bodies.length === 0) return []
  const first = await insertCommands(
    tx,
    scope,
    kind,
    bodies.map((body) => JSON.stringify(body)),
  )
  return bodies.map((_, i) => first + BigInt(i))
}
