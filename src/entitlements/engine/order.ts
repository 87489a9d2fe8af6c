import type { Grant, Ms, PoolState } from '../types.ts'
import { endOf, live, nextReset, visible } from './grant.ts'

/**
 * The live and visible grants of one settled account in the order in which they are spent: unlimited first, the entity's
 * own before shared, lost first before lost later, rank, age, id. A total order: rows may come in any.
 */
export function order(grants: readonly Grant[], entity: string | null, t: Ms): Grant[] {
  const usable = grants.filter((grant) => live(grant, t) && visible(grant, entity))
  if (usable.length < 2) return usable
  return usable
    .map((grant) => ({ grant, lostAt: lostAt(grant, t) }))
    .sort(
      (a, b) =>
        Number(b.grant.unlimited) - Number(a.grant.unlimited) ||
        Number(a.grant.entityId === null) - Number(b.grant.entityId === null) ||
        compare(a.lostAt, b.lostAt) ||
        a.grant.rank - b.grant.rank ||
        a.grant.createdAt - b.grant.createdAt ||
        compareIds(a.grant.id, b.grant.id),
    )
    .map((entry) => entry.grant)
}

/** Settled pools in the order in which they are asked: the one whose units are lost first, empty ones last, then by id. */
export function orderPools(pools: readonly PoolState[], entity: string | null, t: Ms): readonly PoolState[] {
  if (pools.length < 2) return pools
  return pools
    .map((pool) => ({ pool, ...firstLoss(pool.account.grants, entity, t) }))
    .sort(
      (a, b) =>
        Number(a.empty) - Number(b.empty) || compare(a.lostAt, b.lostAt) || a.pool.feature.id - b.pool.feature.id,
    )
    .map((entry) => entry.pool)
}

function firstLoss(grants: readonly Grant[], entity: string | null, t: Ms): { empty: boolean; lostAt: Ms } {
  const filled = grants.filter((grant) => grant.remaining > 0n && live(grant, t) && visible(grant, entity))
  return { empty: filled.length === 0, lostAt: Math.min(...filled.map((grant) => lostAt(grant, t))) }
}

/** When what is left of the grant goes: at its next reset or its end. Infinity when never. */
function lostAt(grant: Grant, t: Ms): Ms {
  return nextReset(grant, t) ?? endOf(grant) ?? Number.POSITIVE_INFINITY
}

/** Not a difference: that of two infinities is not a number. */
function compare(a: number, b: number): number {
  return a < b ? -1 : Number(a > b)
}

/** Grants without a row yet (negative ids) come after those that have one, as they will once they are numbered. */
function compareIds(a: bigint, b: bigint): number {
  if (a < 0n !== b < 0n) return a < 0n ? 1 : -1
  if (a === b) return 0
  return a < b === a > 0n ? -1 : 1
}
