import Type, { type Static } from 'typebox'
import { closed, oneOf } from '../../http/schema.ts'
import { validatorCompiler } from '../../http/validator.ts'
import { creditCosts, featureType, platforms } from '../../http/workspace/features.ts'
import { key, name } from '../../http/workspace/parts.ts'
import { links, preview, productType, templates } from '../../http/workspace/products.ts'
import { definition } from '../../http/workspace/segments.ts'
import { catalogueObjectsMax, segmentsMax } from '../../kernel/limits.ts'
import { StartError } from '../../kernel/start-error.ts'

const FeatureEntry = closed({
  key,
  name,
  type: featureType,
  platforms,
  credit_costs: creditCosts,
  status: oneOf('draft', 'published', 'archived'),
})
const ProductEntry = closed({
  key,
  name,
  type: productType,
  grants: templates,
  stores: links,
  preview: Type.Optional(preview),
  status: oneOf('active', 'archived'),
})
const SegmentEntry = closed({ name, definition })
const CatalogueFile = closed({
  turnpike_catalogue: Type.Literal(1),
  features: Type.Array(FeatureEntry, { maxItems: catalogueObjectsMax }),
  products: Type.Array(ProductEntry, { maxItems: catalogueObjectsMax }),
  segments: Type.Optional(Type.Array(SegmentEntry, { maxItems: segmentsMax })),
})

export type FeatureEntry = Static<typeof FeatureEntry>
export type ProductEntry = Static<typeof ProductEntry>
/** Segments are told apart by their names; a definition asks for another one by its name too. */
export type SegmentEntry = Static<typeof SegmentEntry>

/** A catalogue without ids and instants, as the Workspace API shows its objects otherwise. */
export type CatalogueFile = Static<typeof CatalogueFile>

/** Throws StartError, in the words of the Workspace API, for anything that it would not take. */
export function readCatalogue(text: string): CatalogueFile {
  let file: unknown
  try {
    file = JSON.parse(text)
  } catch (error) {
    throw new StartError(`this is no JSON: ${(error as Error).message}`) // of JSON.parse
  }
  const fits = validatorCompiler()({ schema: CatalogueFile, method: '', url: '' })
  if (fits(file) !== true) {
    const [first] = fits.errors ?? []
    throw new StartError(
      `this is no exported catalogue: ${first?.instancePath || 'it'} ${first?.message ?? 'is not valid'}`,
    )
  }
  const catalogue = file as CatalogueFile // it fits
  for (const section of ['features', 'products'] as const) refuseTwice(section, keysOf(catalogue[section]))
  refuseTwice(
    'segments',
    (catalogue.segments ?? []).map((entry) => entry.name),
  )
  return catalogue
}

function keysOf(entries: { key: string }[]): string[] {
  return entries.map((entry) => entry.key)
}

export function refuseTwice(section: string, keys: readonly string[]): void {
  const seen = new Set<string>()
  for (const one of keys) {
    if (seen.has(one)) throw new StartError(`${section} names ${one} twice`)
    seen.add(one)
  }
}
