import type { Draft } from './draft.ts'
import { type Findings, under } from './findings.ts'
import { type CatalogueProduct, linkFor } from './products.ts'

/** Placements: that what steps and offers sell is declared, and that every platform can sell it. */
export function checkSelling(
  draft: Draft,
  products: ReadonlyMap<string, CatalogueProduct>,
  sentPreviews: ReadonlyMap<string, string>,
  findings: Findings,
): void {
  const { placements = [], platforms } = draft
  for (const { who, placement, path } of salesIn(draft)) {
    if (placements.some(({ id }) => id === placement)) continue
    findings.add(path, 'placement_missing', `${who} sells placement "${placement}", which is not declared.`)
  }
  for (const [i, { id, productId }] of placements.entries()) {
    const path = under('/placements', i)
    const first = placements.findIndex((one) => one.id === id)
    if (first < i) {
      const message = `Placement id "${id}" is used twice; first at ${under('/placements', first)}.`
      findings.add(under(path, 'id'), 'id_duplicate', message)
    }
    const product = products.get(productId)
    if (!product) {
      const message = `Product "${productId}" does not exist in this project and environment.`
      findings.add(under(path, 'productId'), 'reference_missing', message)
      continue
    }
    for (const platform of platforms) {
      if (linkFor(product, platform)) continue
      const message = `Product "${productId}" has no ${platform} store product, but the Experience targets ${platform}.`
      findings.add(under(path, 'productId'), 'product_not_mapped', message)
    }
    const sent = sentPreviews.get(product.id)
    if (sent !== undefined && sent !== JSON.stringify(product.preview)) {
      const message = `Store texts of "${productId}" changed; publish again to show them.`
      findings.add(under(path, 'productId'), 'W_preview_outdated', message)
    }
  }
}

/** Placements that are named, by steps and by offers; what a view model names is known on the device only. */
function salesIn({ graph, screens = [] }: Draft): { who: string; placement: string; path: string }[] {
  const bought = graph.steps.flatMap(({ id, plane, action }, i) => {
    const placement = plane === 'device' && action.type === 'purchase' ? placementIn(action.placementId) : null
    if (placement === null) return []
    return [{ who: `Step "${id}"`, placement, path: under('/graph/steps', i, 'action', 'placementId') }]
  })
  const offered = screens.flatMap(({ id, offer }, i) =>
    (offer?.placementIds ?? []).map((placement, n) => {
      return { who: `Screen "${id}"`, placement, path: under('/screens', i, 'offer', 'placementIds', n) }
    }),
  )
  return [...bought, ...offered]
}

/** The placement that a purchase names; null: a view model does. */
export function placementIn(named: unknown): string | null {
  if (typeof named === 'string') return named
  const { literal } = named as { literal?: string } // its shape was found right
  return literal ?? null
}
