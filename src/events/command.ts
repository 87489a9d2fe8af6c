import type { Tx } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'
import { insertCommand } from './lane-store.ts'
import type { Json } from './types.ts'

/**
 * Gives a change from outside the log, such as an edit through the Workspace API, its position in the lane: locks the
 * lane's row until the end of `tx` and leaves a record, so that a rebuild does the same at the same place. Call it before
 * changing customers: the lane takes its row first too.
 */
export function applyCommand(tx: Tx, scope: Scope, kind: string, body: Json): Promise<bigint> {
  return insertCommand(tx, scope, kind, JSON.stringify(body))
}
