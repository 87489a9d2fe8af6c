import type { Evidence, PurchaseIdentity } from '../types.ts'
import type { PlayItem, PlayPurchase } from './purchase.ts'

/**
 * The line item that the client means, or null when it says anything that the store does not. What the client says decides
 * nothing else. Pure.
 */
export function claimedItem(
  { productId, basePlanId, purchaseOptionId, offerId, productType, packageName }: Evidence['claims'],
  purchase: PlayPurchase,
  ownPackage: string,
): PlayItem | null {
  if (packageName !== undefined && packageName !== ownPackage) return null
  if (productType !== undefined && productType !== purchase.kind) return null
  const isMeant = (item: PlayItem) =>
    agrees(productId, item.productId) &&
    agrees(basePlanId, item.basePlanId) &&
    agrees(purchaseOptionId, item.purchaseOptionId) &&
    agrees(offerId, item.offerId)
  return purchase.items.find(isMeant) ?? null
}

/** The same of what an earlier answer said of the purchase. */
export function agreesWithSaved(
  claims: Evidence['claims'],
  { catalogProduct }: PurchaseIdentity,
  ownPackage: string,
): boolean {
  if (catalogProduct === undefined) return false
  const { store_product_id, base_plan_id, purchase_option_id, offer_id, store_product_type } = catalogProduct
  return (
    agrees(claims.packageName, ownPackage) &&
    agrees(claims.productType, store_product_type) &&
    agrees(claims.productId, store_product_id) &&
    agrees(claims.basePlanId, base_plan_id) &&
    agrees(claims.purchaseOptionId, purchase_option_id) &&
    agrees(claims.offerId, offer_id)
  )
}

function agrees(claimed: string | undefined, found: string | null): boolean {
  return claimed === undefined || claimed === found
}
