import type { RawRow } from '../../db/raw.ts'
import { must } from '../../kernel/assert.ts'
import { storedTerms } from '../catalogue/grant-terms.ts'
import { termsOf } from '../catalogue/products.ts'
import type { GrantTemplate } from '../catalogue/types.ts'
import type { Account, EntityOffer, Feature, GrantOrigin } from '../types.ts'

/**
 * Adds the offer of a row of `selectOffers` to its account. Several entities may have been asked about: what the row says of
 * `entityId` joins what is known of the others.
 */
export function addOffer(account: Account, row: RawRow, feature: Feature, entityId: string): void {
  const offers = account.offers ?? []
  const offer = offerOf(row, feature)
  const at = offers.findIndex(({ id }) => id === offer.id)
  const had = new Set(offers[at]?.had)
  if (row[11] === 't') had.add(entityId)
  account.offers = [...offers.filter(({ id }) => id !== offer.id), { ...offer, had }]
}

function offerOf(row: RawRow, feature: Feature): EntityOffer {
  const [, , id, productId, origin, rank, template, effectiveAt, expiresAt, max, taken, , paidUntil] = row
  const terms = JSON.parse(must(template, 'a not-null column')) as GrantTemplate // as attaching stored it
  return {
    id: BigInt(id ?? 0),
    productId: productId ?? null,
    origin: origin as GrantOrigin, // by the table's check
    rank: Number(rank),
    ...storedTerms(feature, termsOf(terms)),
    effectiveAt: Number(effectiveAt),
    expiresAt: expiresAt ? Number(expiresAt) : null,
    paidUntil: paidUntil ? Number(paidUntil) : null,
    max: Number(max),
    taken: Number(taken),
    had: new Set(),
  }
}
