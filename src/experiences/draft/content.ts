import type { WireNames } from '../../kernel/wire-names.ts'
import type { ClientRuntime } from '../../tenancy/index.ts'
import type { CatalogueProduct } from './products.ts'

/** What screens are made of, as it is stored when a draft is judged or compiled. */
export interface Content {
  names: WireNames
  /** Parsed, by digest, whatever is in them; undefined for what is no JSON. */
  manifests: ReadonlyMap<string, unknown>
  /** Sizes of what was uploaded, by `fileOf`. */
  files: ReadonlyMap<string, number>
  /** By id and by key. */
  products: ReadonlyMap<string, CatalogueProduct>
  clientRuntime: ClientRuntime | null
  /** Store texts that devices have been sent of Products, by id: of what is live or paused now. */
  sentPreviews: ReadonlyMap<string, string>
}

export function fileOf(sha256: string, contentType: string): string {
  return `${sha256} ${contentType}`
}

/** The digest in `sha256:…`. */
export function digestIn(named: string): string {
  return named.slice('sha256:'.length)
}
