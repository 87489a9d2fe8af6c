import type { Sql } from '../../db/pool.ts'
import { unseal } from '../../kernel/seal.ts'
import { tokenContext } from '../apply-state.ts'
import { selectCurrentToken } from '../lifecycle-store.ts'
import type { Reread } from '../reverify.ts'
import type { Refused } from '../types.ts'
import { createPlayReread, type PlayParts } from './verify.ts'

/** How a lineage stands, asked by the token that nothing took the place of. */
export function createPlayLineageReread(
  parts: PlayParts,
  { sql, sealingKey }: { sql: Sql; sealingKey: Buffer },
): Reread {
  const reread = createPlayReread(parts)
  return async (app, lineage, context) => {
    const current = await selectCurrentToken(sql, lineage)
    const sealed = current?.token_sealed ?? null
    const token =
      current === undefined || sealed === null
        ? undefined
        : unseal(sealingKey, tokenContext(app, current.evidence_key), sealed)
    if (current === undefined || token === undefined) return unknown
    const kind = current.kind === 'one_time' ? 'one_time' : 'subscription'
    return reread(app, { token, kind }, context)
  }
}

const unknown: Refused = { kind: 'refused', suffix: 'invalid', detail: 'no token is stored' }
