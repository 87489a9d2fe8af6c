import { getSegment, keepSegments } from '../../customers/index.ts'
import type { Sql, Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import { Refusal, refuse } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import { experimentsMax } from '../../kernel/limits.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type AssignmentRecord, selectAssignmentPage } from './assignment-store.ts'
import {
  countExperiments,
  insertExperiment,
  lockExperiments,
  selectExperiments,
  updateExperimentRow,
  upsertPhase,
} from './experiment-store.ts'
import { checkTerms, sameBesidesWeights } from './terms.ts'
import type { Experiment, ExperimentKind, Terms } from './types.ts'

export interface ExperimentEdit {
  before: Experiment
  after: Experiment
  scope: Scope
}

export type TermsInput = Partial<Terms> & Pick<Terms, 'variants'>

/** A draft. 409 for a key that was ever used, 400 with issues for terms that can't be kept. */
export async function createExperiment(
  tx: Tx,
  scope: Scope,
  { key, name, kind, terms }: { key: string; name: string; kind: ExperimentKind; terms: TermsInput },
): Promise<Experiment> {
  const publicId = newId('xp')
  const whole = withDefaults(terms, seedOf(publicId, 1))
  checkTerms(kind, whole)
  await lockExperiments(tx, scope)
  await checkAudience(tx, scope, whole.audienceSegmentId)
  if ((await countExperiments(tx, scope)) >= experimentsMax) {
    throw refuse('conflict', {
      message: `An environment of a project has at most ${experimentsMax} experiments, ever.`,
    })
  }
  const id = await insertExperiment(tx, scope, { publicId, key, name, kind })
  if (id === undefined) {
    throw refuse('conflict', { param: 'key', message: `There is or was an experiment with the key ${key}.` })
  }
  await upsertPhase(
    tx,
    { scopeId: scope.scopeId, id, phase: 1 },
    { ...whole, weightPeriods: periodsOf(whole), startedAtMs: null },
  )
  return getExperiment(tx, [scope], publicId)
}

/**
 * A draft may change whole. Once it runs only what moves nobody may: its name, its weights, which decide for those to come,
 * and a higher coverage; 409 for the rest.
 */
export async function updateExperiment(
  tx: Tx,
  scopes: readonly Scope[],
  idOrKey: string,
  { name, terms }: { name?: string | undefined; terms: Partial<Terms> },
): Promise<ExperimentEdit> {
  return editExperiment(tx, scopes, idOrKey, async (before, scope) => {
    if (name !== undefined) await updateExperimentRow(tx, before, { ...before, name })
    const after = { ...termsOf(before), ...defined(terms) }
    if (canonicalJson(after) === canonicalJson(termsOf(before))) return
    if (before.status === 'concluded' || before.status === 'archived') {
      throw refuse('conflict', { message: `The experiment is ${before.status}.` })
    }
    checkTerms(before.kind, after)
    checkHoldoutVariants(before, after)
    if (before.status === 'draft') {
      await checkAudience(tx, scope, after.audienceSegmentId)
      await upsertPhase(tx, before, { ...after, weightPeriods: periodsOf(after), startedAtMs: null })
      return
    }
    const fixed = fixedIn(before, after)
    if (fixed !== undefined) {
      throw refuse('conflict', {
        param: fixed,
        message:
          'Once an experiment runs, only its name, its weights and a higher coverage can change: begin a new phase.',
      })
    }
    const weights = after.variants.map(({ weight }) => weight)
    const moved = canonicalJson(weights) !== canonicalJson(before.weightPeriods.at(-1))
    const weightPeriods = moved ? [...before.weightPeriods, weights] : before.weightPeriods
    await upsertPhase(tx, before, { ...after, weightPeriods, startedAtMs: before.startedAtMs })
  })
}

/** What a holdout is compiled to stays what it is: Experiences carry its variants in every build. */
export function checkHoldoutVariants({ kind, variants }: Experiment, after: Terms): void {
  if (kind === 'ab' || sameBesidesWeights(variants, after.variants)) return
  throw refuse('conflict', { param: 'variants', message: 'A holdout keeps its variants for ever; weights may change.' })
}

/** What is not to change while it runs, by its name on the wire. */
function fixedIn(before: Terms, after: Terms): string | undefined {
  if (!sameBesidesWeights(before.variants, after.variants)) return 'variants'
  if (after.coverage < before.coverage) return 'coverage'
  if (after.seed !== before.seed) return 'seed'
  if (after.audienceSegmentId !== before.audienceSegmentId) return 'audience_segment_id'
  if (canonicalJson(after.namespace) !== canonicalJson(before.namespace)) return 'namespace'
  return canonicalJson(after.metrics) === canonicalJson(before.metrics) ? undefined : 'metrics'
}

/** By id or key. Throws `not_found`, or `invalid_request` for a key that several projects have. */
export async function getExperiment(sql: Sql, scopes: readonly Scope[], idOrKey: string): Promise<Experiment> {
  const found = await selectExperiments(sql, scopes, idOrKey)
  const byId = found.find(({ publicId }) => publicId === idOrKey)
  const [first, second] = found
  if (!first) throw refuse('not_found')
  if (second && !byId) {
    throw refuse('invalid_request', {
      param: 'project_id',
      message: 'project_id is required: several projects of the workspace have this key',
    })
  }
  return byId ?? first
}

/** By phase and customer; those of one customer where one is named. */
export function listAssignments(
  sql: Sql,
  scope: Scope,
  { id }: Experiment,
  customerId: string | null,
  page: Page,
): Promise<AssignmentRecord[]> {
  return selectAssignmentPage(sql, scope, { experimentId: id, customerId }, page)
}

/** Runs a change while no other experiment of the scope changes. Throws as `getExperiment` does. */
export async function editExperiment(
  tx: Tx,
  scopes: readonly Scope[],
  idOrKey: string,
  change: (before: Experiment, scope: Scope) => Promise<void>,
): Promise<ExperimentEdit> {
  const found = await getExperiment(tx, scopes, idOrKey)
  const scope = must(
    scopes.find(({ scopeId }) => scopeId === found.scopeId),
    'it was found there',
  )
  await lockExperiments(tx, scope)
  const before = await getExperiment(tx, [scope], found.publicId)
  await change(before, scope)
  return { before, after: await getExperiment(tx, [scope], found.publicId), scope }
}

/** 400 where it is not there; it stays until the end of `tx`. */
export async function checkAudience(tx: Tx, scope: Scope, segmentId: string | null): Promise<void> {
  if (segmentId === null) return
  await keepSegments(tx, scope)
  await getSegment(tx, [scope], segmentId).catch((error: unknown) => {
    if (!(error instanceof Refusal)) throw error
    throw refuse('invalid_request', { param: 'audience_segment_id', message: `There is no segment ${segmentId}.` })
  })
}

export function seedOf(publicId: string, phase: number): string {
  return `${publicId}:${phase}`
}

export function termsOf(experiment: Terms): Terms {
  const { seed, variants, coverage, audienceSegmentId, namespace, metrics } = experiment
  return { seed, variants, coverage, audienceSegmentId, namespace, metrics }
}

export function periodsOf({ variants }: Terms): number[][] {
  return [variants.map(({ weight }) => weight)]
}

function withDefaults(terms: TermsInput, seed: string): Terms {
  return { seed, coverage: 1, audienceSegmentId: null, namespace: null, metrics: [], ...defined(terms) }
}

/** Without what was left out. */
export function defined<T extends object>(of: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(of).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>
  } // they were filtered
}
