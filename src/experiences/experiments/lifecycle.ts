import type { Tx } from '../../db/pool.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import { endPhase, selectAllExperiments, updateExperimentRow, upsertPhase } from './experiment-store.ts'
import {
  checkAudience,
  checkHoldoutVariants,
  defined,
  type ExperimentEdit,
  editExperiment,
  periodsOf,
  seedOf,
  termsOf,
} from './experiments.ts'
import { checkTerms } from './terms.ts'
import type { Experiment, ExperimentStatus, Terms } from './types.ts'

export type ExperimentVerb = 'start' | 'pause' | 'resume' | 'archive'

const verbs: Record<ExperimentVerb, { from: ExperimentStatus[]; to: ExperimentStatus }> = {
  start: { from: ['draft'], to: 'running' },
  pause: { from: ['running'], to: 'paused' },
  resume: { from: ['paused'], to: 'running' },
  archive: { from: ['draft', 'concluded'], to: 'archived' },
}

/** 409 where the verb leads nowhere from the state it is in, or where another one runs in the same part of its namespace. */
export function changeExperiment(
  tx: Tx,
  scopes: readonly Scope[],
  idOrKey: string,
  verb: ExperimentVerb,
  nowMs: number,
): Promise<ExperimentEdit> {
  const { from, to } = verbs[verb]
  return editExperiment(tx, scopes, idOrKey, async (before, scope) => {
    checkStatus(before, from, verb)
    if (to === 'running') await checkNamespace(tx, scope, before)
    if (verb === 'start') {
      await upsertPhase(tx, before, { ...termsOf(before), weightPeriods: periodsOf(before), startedAtMs: nowMs })
    }
    await updateExperimentRow(tx, before, { ...before, status: to })
  })
}

/** For ever, and for everybody: also for those who had another variant. */
export function concludeExperiment(
  tx: Tx,
  scopes: readonly Scope[],
  idOrKey: string,
  { winnerVariantId, nowMs }: { winnerVariantId: string; nowMs: number },
): Promise<ExperimentEdit> {
  return editExperiment(tx, scopes, idOrKey, async (before) => {
    checkStatus(before, ['running', 'paused'], 'conclude')
    if (!before.variants.some(({ id }) => id === winnerVariantId)) {
      throw refuse('invalid_request', {
        param: 'winner_variant_id',
        message: `The experiment has no variant ${winnerVariantId}.`,
      })
    }
    await endPhase(tx, before, nowMs)
    await updateExperimentRow(tx, before, { ...before, status: 'concluded', winnerVariantId })
  })
}

/** Everybody is dealt anew, with the same terms but for those given, and counted anew. */
export function beginPhase(
  tx: Tx,
  scopes: readonly Scope[],
  idOrKey: string,
  { terms, nowMs }: { terms: Partial<Terms>; nowMs: number },
): Promise<ExperimentEdit> {
  return editExperiment(tx, scopes, idOrKey, async (before, scope) => {
    checkStatus(before, ['running', 'paused'], 'new_phase')
    const phase = before.phase + 1
    const after = { ...termsOf(before), seed: seedOf(before.publicId, phase), ...defined(terms) }
    checkTerms(before.kind, after)
    checkHoldoutVariants(before, after)
    if (after.audienceSegmentId !== before.audienceSegmentId) await checkAudience(tx, scope, after.audienceSegmentId)
    if (before.status === 'running') await checkNamespace(tx, scope, { ...before, ...after })
    await endPhase(tx, before, nowMs)
    await upsertPhase(tx, { ...before, phase }, { ...after, weightPeriods: periodsOf(after), startedAtMs: nowMs })
    await updateExperimentRow(tx, before, { ...before, phase })
  })
}

function checkStatus({ status }: Experiment, from: readonly ExperimentStatus[], verb: string): void {
  if (from.includes(status)) return
  throw refuse('conflict', {
    message: `${verb} is for an experiment that is ${from.join(' or ')}; this one is ${status}.`,
  })
}

/** Two that run are never asked of the same customer within one namespace. */
async function checkNamespace(tx: Tx, scope: Scope, { publicId, namespace }: Experiment): Promise<void> {
  if (namespace === null) return
  const others = (await selectAllExperiments(tx, scope)).filter(
    (other) =>
      other.status === 'running' &&
      other.publicId !== publicId &&
      other.namespace?.id === namespace.id &&
      other.namespace.start < namespace.end &&
      namespace.start < other.namespace.end,
  )
  if (others.length === 0) return
  throw refuse('conflict', {
    param: 'namespace',
    message: `Other experiments run in this part of the namespace ${namespace.id}.`,
    details: { experiments: others.map((other) => other.publicId) },
  })
}
