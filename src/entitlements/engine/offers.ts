import type { Account, Change, EntityOffer, Grant, Ms } from '../types.ts'

type Opening = Extract<Change, { kind: 'grant' }>

const nothing: readonly Opening[] = Object.freeze([])

/**
 * The grants that `entity` opens by using the Feature now: one of each offer in which it has had none and a place is left. Until
 * something is spent they are virtual, like resets.
 */
export function openings({ id, offers }: Account, entity: string | null, now: Ms): readonly Opening[] {
  if (entity === null || offers === undefined) return nothing
  return offers
    .filter((offer) => isOpen(offer, entity, now))
    .sort((a, b) => (a.id < b.id ? -1 : 1)) // the same changes whatever order the rows came in
    .map((offer) => ({
      kind: 'grant',
      account: id,
      offer: offer.id,
      grant: grantOf(offer, { account: id, entity, now }),
    }))
}

function isOpen({ effectiveAt, expiresAt, taken, max, had }: EntityOffer, entity: string, now: Ms): boolean {
  return effectiveAt <= now && (expiresAt === null || now < expiresAt) && taken < max && !had.has(entity)
}

/** Begins with the first use, like that of an entity that is registered then. */
function grantOf(
  { id, taken, origin, rank, unlimited, amount, interval, rollover, expiresAt, paidUntil }: EntityOffer,
  { account, entity, now }: { account: bigint; entity: string; now: Ms },
): Grant {
  return {
    // Above those of rollovers, and each place has its own.
    id: -((id << placeBits) + BigInt(taken) + 1n),
    accountId: account,
    entityId: entity,
    origin,
    rolledFrom: null,
    rank,
    unlimited,
    amount,
    remaining: amount,
    effectiveAt: now,
    expiresAt,
    paidUntil,
    cycle: interval && { unit: interval, count: 1, anchor: now },
    periodNo: 0n,
    rollover,
    revokedAt: null,
    createdAt: now,
  }
}

/** An offer has at most 10,000 places. */
const placeBits = 14n
