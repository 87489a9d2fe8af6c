import { assert } from '../../kernel/assert.ts'
import type { Account, Grant, Ms, Units } from '../types.ts'
import { minUnits, storedUnitsMax } from './units.ts'

/** What the target account becomes when one customer's standing with a Feature joins another's. The source ends empty. */
export interface AccountMerge {
  source: bigint
  target: bigint
  /** The source's grants as the target's: units, periods and ends as they were. */
  grants: Grant[]
  /** Counters of the target; only the entities the source has counted or registered. */
  used: Units
  entities: { entityId: string; used: Units; registered: boolean }[]
  /** The clock of the target: no earlier than either. */
  lastAt: Ms
}

/** Conserves units and counters. Both accounts are whole (all unsettled grants, all entities) and of one Feature. */
export function decideMerge(source: Account, target: Account): AccountMerge {
  assert(source.id !== target.id, 'an account does not join itself')
  assert(source.featureId === target.featureId, 'only accounts of one Feature join')
  return {
    source: source.id,
    target: target.id,
    grants: source.grants.map((grant) => ({ ...grant, accountId: target.id })),
    used: add(source.used, target.used),
    entities: [...source.entities].map(([entityId, { used, registered }]) => {
      const other = target.entities.get(entityId)
      return { entityId, used: add(used, other?.used ?? 0n), registered: registered || (other?.registered ?? false) }
    }),
    lastAt: Math.max(source.lastAt, target.lastAt),
  }
}

function add(a: Units, b: Units): Units {
  return minUnits(a + b, storedUnitsMax)
}
