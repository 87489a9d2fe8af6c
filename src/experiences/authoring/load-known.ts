import type { Sql } from '../../db/pool.ts'
import { findProducts, listFeatures, type ProductRecord } from '../../entitlements/index.ts'
import { catalogueObjectsMax, draftLocalesMax, draftPlacementsMax, draftScreensMax } from '../../kernel/limits.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import { getProject, type Scope } from '../../tenancy/index.ts'
import { manifestType } from '../artefacts/addresses.ts'
import { selectArtefacts } from '../artefacts/artefact-store.ts'
import { openArtefact } from '../artefacts/artefacts.ts'
import { type Content, digestIn, fileOf } from '../draft/content.ts'
import type { References } from '../draft/references.ts'
import { isObject } from '../draft/shape.ts'
import { selectSentPreviews } from '../publish/build-store.ts'
import { type Feature, productOf } from './catalogue-product.ts'
import type { Experience } from './experience-store.ts'
import { loadReferences } from './load-references.ts'

export interface Settings {
  names: WireNames
  /** Whether clients know the entry condition `always`, where the project does not say. */
  deliverAlways: boolean
}

/**
 * All that the draft may name, and that its screens stand on. Whatever JSON the draft is, no more is read than a sound one
 * could name.
 */
export async function loadKnown(
  sql: Sql,
  scope: Scope,
  { experience, draft }: { experience: Experience; draft: unknown },
  { names, deliverAlways }: Settings,
): Promise<Known> {
  const references = await loadReferences(sql, scope)
  const { deliverAlways: own, clientRuntime } = await getProject(sql, scope.workspaceId, scope.projectId)
  const content = { names, clientRuntime, ...(await loadContent(sql, scope, experience, draft)) }
  return { ...references, deliverAlways: own ?? deliverAlways, content }
}

export type Known = References & Required<Pick<References, 'deliverAlways' | 'content'>>

async function loadContent(
  sql: Sql,
  scope: Scope,
  experience: Experience,
  draft: unknown,
): Promise<Omit<Content, 'names' | 'clientRuntime'>> {
  const named = isObject(draft) ? draft : {}
  const manifests = new Map<string, unknown>()
  for (const digest of manifestsIn(named)) {
    const bytes = await readWhole(sql, { sha256: digest, contentType: manifestType, projectId: scope.projectId })
    if (bytes) manifests.set(digest, parsed(bytes))
  }
  const digests = [...scriptsIn(named), ...[...manifests.values()].flatMap(filesIn)]
  const files = await selectArtefacts(sql, scope.projectId, digests)
  const products = await loadProducts(sql, scope, productsIn(named))
  return {
    manifests,
    files: new Map(files.map(({ sha256, contentType, sizeBytes }) => [fileOf(sha256, contentType), sizeBytes])),
    products,
    sentPreviews: products.size === 0 ? new Map() : await selectSentPreviews(sql, experience),
  }
}

async function loadProducts(sql: Sql, scope: Scope, idsOrKeys: string[]): Promise<Content['products']> {
  if (idsOrKeys.length === 0) return new Map()
  const found = await findProducts(sql, scope, idsOrKeys)
  const features = await listFeatures(sql, scope, { limit: catalogueObjectsMax, after: null })
  const byKey = new Map<string, Feature>(features.map((feature) => [feature.key, feature]))
  const pairs = (name: (product: ProductRecord) => string) =>
    found.map((product) => [name(product), productOf(product, byKey)] as const)
  // A key that is another Product's id means that one.
  return new Map([...pairs(({ key }) => key), ...pairs(({ publicId }) => publicId)])
}

async function readWhole(sql: Sql, wanted: Parameters<typeof openArtefact>[1]): Promise<Buffer | undefined> {
  const found = await openArtefact(sql, wanted)
  if (!found) return undefined
  const pieces: Buffer[] = []
  for await (const piece of found.pieces()) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** Undefined for what is no JSON. */
function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

const named = /^sha256:[a-f0-9]{64}$/

function manifestsIn({ render }: Record<string, unknown>): Set<string> {
  const entries = isObject(render) ? Object.values(render).slice(0, draftLocalesMax) : []
  const asked = entries.map((entry) => (isObject(entry) ? entry.manifest : undefined))
  return new Set(asked.filter((one) => typeof one === 'string' && named.test(one)).map((one) => digestIn(String(one))))
}

function scriptsIn({ screenBehaviors }: Record<string, unknown>): string[] {
  const entries = Array.isArray(screenBehaviors) ? screenBehaviors.slice(0, draftScreensMax) : []
  const asked = entries.map((entry) => (isObject(entry) ? entry.script : undefined))
  return asked.filter((one) => typeof one === 'string' && named.test(one)).map((one) => digestIn(String(one)))
}

function productsIn({ placements }: Record<string, unknown>): string[] {
  const entries = Array.isArray(placements) ? placements.slice(0, draftPlacementsMax) : []
  const asked = entries.map((entry) => (isObject(entry) ? entry.productId : undefined))
  return asked.filter((one) => typeof one === 'string' && !one.includes('\0') && one.isWellFormed()).map(String)
}

/** Digests in a manifest of any shape. */
function filesIn(manifest: unknown): string[] {
  const { scene, assets } = isObject(manifest) ? manifest : {}
  const all = [scene, ...(Array.isArray(assets) ? assets.slice(0, 1024) : [])]
  const digests = all.map((one) => (isObject(one) ? one.sha256 : undefined))
  return digests.filter((one) => typeof one === 'string' && /^[a-f0-9]{64}$/.test(one)).map(String)
}
