import type { Sql, Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import type { Page } from '../../kernel/page.ts'
import type { Platform, Scope } from '../../tenancy/index.ts'
import type { FeatureType } from '../types.ts'
import { type CreditCost, type ExactCost, parseCost } from './credit-costs.ts'
import {
  insertFeature,
  replaceCosts,
  selectCosts,
  selectFeatures,
  selectFeaturesByKey,
  selectFeaturesNamed,
  updateFeatureRow,
} from './feature-store.ts'
import type { FeatureRecord } from './types.ts'

export interface NewFeature {
  /** 1 to 256 characters, trimmed, unique in the scope. */
  key: string
  name: string
  type: FeatureType
  /** Null is all. */
  platforms?: Platform[] | null | undefined
  /** Credit systems only. */
  creditCosts?: CreditCost[] | undefined
  /** Published at once, or a draft. */
  published: boolean
}

/**
 * The caller announces it with `touchCatalogue`. Throws `conflict` for a taken key, `invalid_request` and
 * `feature_not_found` for the costs.
 */
export async function createFeature(tx: Tx, scope: Scope, feature: NewFeature): Promise<FeatureRecord> {
  const { key, name, type, platforms = null, creditCosts = [], published } = feature
  const costs = await memberCosts(tx, scope, type, creditCosts)
  const [created] = await insertFeature(tx, scope, {
    publicId: newId('feat'),
    key,
    name,
    type,
    platforms,
    scale: scaleOf(costs),
    status: published ? 'published' : 'draft',
  })
  if (!created) throw refuse('conflict', { param: 'key', message: `There is a Feature with the key ${key} already.` })
  if (costs.length > 0) await replaceCosts(tx, created.id, costs)
  return withCosts(tx, created)
}

export async function listFeatures(sql: Sql, scope: Scope, page: Page): Promise<FeatureRecord[]> {
  return withAllCosts(sql, await selectFeatures(sql, scope, page))
}

/** By id or key, in whichever of the scopes it lies. Throws `not_found`, or `invalid_request` for a key in several. */
export async function getFeature(sql: Sql, scopes: Scope[], idOrKey: string): Promise<FeatureRecord> {
  return withCosts(sql, theOne(await selectFeaturesNamed(sql, scopes, idOrKey, { lock: false }), idOrKey))
}

export interface FeatureChanges {
  name?: string | undefined
  platforms?: Platform[] | null | undefined
  creditCosts?: CreditCost[] | undefined
}

/** What an edit did to an object of the catalogue; the scope is where it lies. */
export interface Edit<T> {
  before: T
  after: T
  scope: Scope
}

/**
 * Changes what is named. Costs are replaced whole; they must fit the scale, which is fixed from the first publication on:
 * grants are stored at it. The caller announces it. Throws as `getFeature` and `createFeature` do.
 */
export async function updateFeature(
  tx: Tx,
  scopes: Scope[],
  idOrKey: string,
  { name, platforms, creditCosts }: FeatureChanges,
): Promise<Edit<FeatureRecord>> {
  return edit(tx, scopes, idOrKey, async (before, scope) => {
    let { scale } = before
    if (creditCosts !== undefined) {
      const costs = await memberCosts(tx, scope, before.type, creditCosts)
      if (before.status === 'draft') scale = scaleOf(costs)
      checkScale(costs, scale)
      await replaceCosts(tx, before.id, costs)
    }
    return {
      ...before,
      name: name ?? before.name,
      platforms: platforms === undefined ? before.platforms : platforms,
      scale,
    }
  })
}

/** From a draft, or back from the archive. The caller announces it. Throws as `getFeature` does. */
export async function publishFeature(tx: Tx, scopes: Scope[], idOrKey: string): Promise<Edit<FeatureRecord>> {
  return edit(tx, scopes, idOrKey, async (before) => ({ ...before, status: 'published' }))
}

/**
 * From then on it is unknown to the App API. Grants stay, for when it is published again. The caller announces it. Throws
 * as `getFeature` does.
 */
export async function archiveFeature(tx: Tx, scopes: Scope[], idOrKey: string): Promise<Edit<FeatureRecord>> {
  return edit(tx, scopes, idOrKey, async (before) => ({ ...before, status: 'archived' }))
}

/** The published Features with these keys, in their order. Throws `feature_not_found`; `pathOf(i)` names the i-th key. */
export async function publishedFeatures(
  sql: Sql,
  scope: Scope,
  keys: string[],
  pathOf: (index: number) => string,
): Promise<FeatureRecord[]> {
  const found = new Map((await selectFeaturesByKey(sql, scope, keys)).map((feature) => [feature.key, feature]))
  return keys.map((key, i) => {
    const feature = found.get(key)
    if (feature?.status !== 'published') throw unknownFeature(key, pathOf(i))
    return feature
  })
}

async function edit(
  tx: Tx,
  scopes: Scope[],
  idOrKey: string,
  decide: (before: FeatureRecord, scope: Scope) => Promise<FeatureRecord>,
): Promise<Edit<FeatureRecord>> {
  const before = await withCosts(tx, theOne(await selectFeaturesNamed(tx, scopes, idOrKey, { lock: true }), idOrKey))
  const scope = must(
    scopes.find(({ scopeId }) => scopeId === before.scopeId),
    'it was looked for in these scopes',
  )
  const [after] = await updateFeatureRow(tx, scope, await decide(before, scope))
  return { before, after: await withCosts(tx, must(after, 'the row is locked')), scope }
}

/** An id wins over a key that looks like it. `param` is how the caller named it, when not by the path. */
export function theOne<T extends { publicId: string }>(found: T[], idOrKey: string, param?: string): T {
  const [first, second] = found
  if (!first)
    throw refuse('not_found', param === undefined ? {} : { param, message: `There is no ${param} ${idOrKey}.` })
  if (!second) return first
  const byId = found.find(({ publicId }) => publicId === idOrKey)
  if (byId) return byId
  throw refuse('invalid_request', {
    param: 'project_id',
    message: 'project_id is required: several projects of the workspace have this key',
  })
}

/** Members are metered Features of the same scope: credit systems do not nest, and a boolean Feature has no units. */
async function memberCosts(
  sql: Sql,
  scope: Scope,
  type: FeatureType,
  costs: CreditCost[],
): Promise<(ExactCost & { memberFeatureId: number })[]> {
  if (costs.length === 0) return []
  if (type !== 'creditSystem') {
    throw refuse('invalid_request', {
      param: 'credit_costs',
      message: 'credit_costs is for creditSystem Features only',
    })
  }
  const keys = costs.map(({ feature }) => feature)
  const members = new Map((await selectFeaturesByKey(sql, scope, keys)).map((member) => [member.key, member]))
  return costs.map(({ feature, cost }, i) => {
    const path = `credit_costs.${i}.feature`
    const member = members.get(feature)
    if (!member || member.status === 'archived') throw unknownFeature(feature, path)
    if (member.type !== 'metered') {
      throw refuse('invalid_request', { param: path, message: `${path} must be the key of a metered Feature` })
    }
    if (keys.indexOf(feature) < i) {
      throw refuse('invalid_request', { param: path, message: `${path} names a Feature a second time` })
    }
    return { memberFeatureId: member.id, ...parseCost(cost, `credit_costs.${i}.cost`) }
  })
}

export function unknownFeature(key: string, path: string) {
  return refuse('feature_not_found', { param: path, message: `${path}: there is no published Feature ${key}.` })
}

function scaleOf(costs: ExactCost[]): number {
  return costs.reduce((scale, { decimals }) => Math.max(scale, decimals), 0)
}

function checkScale(costs: ExactCost[], scale: number): void {
  for (const [i, { decimals }] of costs.entries()) {
    if (decimals <= scale) continue
    const path = `credit_costs.${i}.cost`
    throw refuse('invalid_request', {
      param: path,
      message: `${path} has ${decimals} decimals; grants of this Feature were made with at most ${scale}`,
    })
  }
}

async function withCosts(sql: Sql, feature: FeatureRecord): Promise<FeatureRecord> {
  return must((await withAllCosts(sql, [feature]))[0], 'one for one')
}

async function withAllCosts(sql: Sql, features: FeatureRecord[]): Promise<FeatureRecord[]> {
  const systems = features.filter(({ type }) => type === 'creditSystem').map(({ id }) => id)
  if (systems.length === 0) return features
  const costs = await selectCosts(sql, systems)
  return features.map((feature) => ({
    ...feature,
    costs: costs
      .filter(({ creditFeatureId }) => creditFeatureId === feature.id)
      .map(({ feature: key, credits, per }) => ({ feature: key, credits, per })),
  }))
}
