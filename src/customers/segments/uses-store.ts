import { keepNamed, takeNamed } from '../../db/named-lock.ts'
import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

const name = 'segment'

/**
 * Keeps every segment of the scope from being deleted until the end of `tx`: for who looks whether one is there and then
 * writes down that it is asked for. Call it before what locks the lane.
 */
export async function keepSegments(tx: Tx, { scopeId }: Scope): Promise<void> {
  await keepNamed(tx, { scopeId, name })
}

/** For who deletes one: waits for whoever keeps them, so that all who ask for it can be seen. */
export async function takeSegments(tx: Tx, { scopeId }: Scope): Promise<void> {
  await takeNamed(tx, { scopeId, name })
}
