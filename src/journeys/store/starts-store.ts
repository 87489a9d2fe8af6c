import { keepNamed, takeNamed } from '../../db/named-lock.ts'
import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

const name = 'journey_start'

/**
 * For who may begin journeys, before it looks at the clock and at what is live: whatever is made of journeys under way
 * comes after it, or it begins after that.
 */
export async function keepStarts(tx: Tx, { scopeId }: Pick<Scope, 'scopeId'>): Promise<void> {
  await keepNamed(tx, { scopeId, name })
}

/** Waits for those that are beginning journeys; nobody else begins one until the end of `tx`. */
export async function takeStarts(tx: Tx, { scopeId }: Pick<Scope, 'scopeId'>): Promise<void> {
  await takeNamed(tx, { scopeId, name })
}
