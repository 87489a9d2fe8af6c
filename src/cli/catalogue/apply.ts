import { hash } from 'node:crypto'
import type { Config } from '../../config.ts'
import { createSegment, listSegments, type UsedSegment, updateSegment } from '../../customers/index.ts'
import type { Tx } from '../../db/pool.ts'
import {
  archiveFeature,
  archiveProduct,
  createFeature,
  createProduct,
  type FeatureRecord,
  type ProductRecord,
  publishFeature,
  updateFeature,
  updateProduct,
} from '../../entitlements/index.ts'
import { showFeature } from '../../http/workspace/features.ts'
import { linkOf, showProduct, templateOf } from '../../http/workspace/products.ts'
import { showSegment } from '../../http/workspace/segments.ts'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import { segmentsMax } from '../../kernel/limits.ts'
import { note, type Scope, touchCatalogue } from '../../tenancy/index.ts'
import type { FeatureEntry, ProductEntry } from './file.ts'
import type { Step } from './plan.ts'
import { identified } from './segment-names.ts'

/** Does what the plan says; each step leaves a row in the audit log. Throws what the verbs refuse. */
export async function applySteps(tx: Tx, scope: Scope, steps: Step[], config: Config): Promise<void> {
  for (const step of steps) await apply(tx, scope, step, config)
  if (steps.length > 0) await touchCatalogue(tx, scope.scopeId)
}

interface Done<T> {
  before?: T
  after: T
}

async function apply(tx: Tx, scope: Scope, step: Step, { eventRetentionDays: keptDays }: Config): Promise<void> {
  if (step.object === 'segment') {
    const { before, after } = await applyToSegment(tx, scope, step, keptDays)
    const digests = {
      beforeDigest: before ? digest(showSegment(before, scope)) : null,
      afterDigest: digest(showSegment(after, scope)),
    }
    const { publicId: objectId } = after.segment
    await note(tx, scope.workspaceId, { action: step.does, object: 'segment', objectId, ...digests })
  } else if (step.object === 'feature') {
    const { before, after } = await applyToFeature(tx, scope, step)
    const digests = {
      beforeDigest: before ? digest(showFeature(before, scope)) : null,
      afterDigest: digest(showFeature(after, scope)),
    }
    await note(tx, scope.workspaceId, { action: step.does, object: 'feature', objectId: after.publicId, ...digests })
  } else {
    const { before, after } = await applyToProduct(tx, scope, step)
    const digests = {
      beforeDigest: before ? digest(showProduct(before, scope)) : null,
      afterDigest: digest(showProduct(after, scope)),
    }
    await note(tx, scope.workspaceId, { action: step.does, object: 'product', objectId: after.publicId, ...digests })
  }
}

async function applyToFeature(tx: Tx, scope: Scope, step: Step & { object: 'feature' }): Promise<Done<FeatureRecord>> {
  switch (step.does) {
    case 'create':
      return { after: await createFeature(tx, scope, newFeature(step.entry)) }
    case 'update':
      return updateFeature(tx, [scope], step.entry.key, {
        name: step.entry.name,
        platforms: step.entry.platforms,
        ...(step.entry.type === 'creditSystem' ? { creditCosts: step.entry.credit_costs } : {}),
      })
    case 'publish':
      return publishFeature(tx, [scope], step.key)
    case 'archive':
      return archiveFeature(tx, [scope], step.key)
  }
}

async function applyToProduct(tx: Tx, scope: Scope, step: Step & { object: 'product' }): Promise<Done<ProductRecord>> {
  switch (step.does) {
    case 'create':
      return { after: await createProduct(tx, scope, newProduct(step.entry)) }
    case 'update': {
      const { name, grants, stores, preview } = newProduct(step.entry)
      const links = step.entry.stores ? { stores } : {}
      return updateProduct(tx, [scope], step.entry.key, { name, grants, preview, ...links })
    }
    case 'archive':
      return archiveProduct(tx, [scope], step.key)
  }
}

/** Those it asks for have been made by now. */
async function applyToSegment(
  tx: Tx,
  scope: Scope,
  { does, entry }: Step & { object: 'segment' },
  keptDays: number,
): Promise<Done<UsedSegment>> {
  const there = await listSegments(tx, scope, { limit: segmentsMax, after: null })
  const ids = new Map(there.map(({ segment }) => [segment.name, segment.publicId]))
  const definition = identified(entry.definition, ids)
  if (does === 'create') return { after: await createSegment(tx, scope, { name: entry.name, definition, keptDays }) }
  return updateSegment(tx, [scope], ids.get(entry.name) ?? '', { definition, keptDays })
}

/** One that is to be archived is published first: what names it is made in between. */
function newFeature({ key, name, type, platforms, credit_costs: creditCosts, status }: FeatureEntry) {
  return { key, name, type, platforms, creditCosts, published: status !== 'draft' }
}

function newProduct({ key, name, type, grants, stores, preview }: ProductEntry) {
  return { key, name, type, grants: grants.map(templateOf), stores: (stores ?? []).map(linkOf), preview }
}

function digest(shown: unknown): string {
  return hash('sha256', canonicalJson(shown))
}
