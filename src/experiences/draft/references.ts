import { nodesOf } from '../ir/grammar.ts'
import type { Content } from './content.ts'
import type { Draft } from './draft.ts'
import { type Findings, under } from './findings.ts'

/** What a draft may name, as it stands in the project and environment. */
export interface References {
  segments: ReadonlySet<string>
  /** Keys of published Features. */
  features: ReadonlySet<string>
  experiments: ReadonlyMap<string, Experiment>
  /** Whether the entry condition "always" is sent as written. */
  deliverAlways?: boolean
  /** What screens are made of; absent: nothing was uploaded and there is nothing to sell. */
  content?: Content
  webhookEndpoints?: ReadonlySet<string>
}

export interface Experiment {
  kind: 'ab' | 'holdout'
  isArchived: boolean
  variants: { id: string; isHoldout: boolean }[]
}

/** Whether everything that is named by key exists, and experiments are listed as they are. */
export function checkReferences(draft: Draft, known: References, findings: Findings): void {
  const missing = (path: string, kind: string, id: unknown) =>
    findings.add(path, 'reference_missing', `${kind} "${String(id)}" does not exist in this project and environment.`)
  const inExpressions = (value: unknown, path: string) => {
    for (const { type, id } of nodesOf(value)) {
      if (typeof id !== 'string') continue
      if (type === 'Segment' && !known.segments.has(id)) missing(path, 'Segment', id)
      if (type === 'Feature' && !known.features.has(id)) missing(path, 'Feature', id)
    }
  }
  const { policy, graph } = draft
  const { trigger } = policy.entry
  const named = [
    { path: '/policy/entry/trigger', segmentId: 'segmentId' in trigger ? trigger.segmentId : undefined },
    ...(policy.goal ? [{ path: '/policy/goal/criterion', ...segmentIn(policy.goal.criterion) }] : []),
    ...policy.exitWhenAny.map((exit, i) => ({ path: under('/policy/exitWhenAny', i), ...segmentIn(exit) })),
    ...Object.entries(graph.sections ?? {}).map(([key, { entry }]) => ({
      path: under('/graph/sections', key, 'entry'),
      ...segmentIn(entry ?? {}),
    })),
  ]
  for (const { path, segmentId } of named) {
    if (segmentId !== undefined && !known.segments.has(segmentId)) missing(path, 'Segment', segmentId)
  }
  inExpressions(policy, '/policy')
  for (const [key, { entry }] of Object.entries(graph.sections ?? {}))
    inExpressions(entry, under('/graph/sections', key))
  if (trigger.type === 'server_event') missing('/policy/entry/trigger/connectorKey', 'Connector', trigger.connectorKey)
  if (policy.holdout !== undefined) checkHoldout(policy.holdout, known, findings)
  for (const [i, { id, action }] of graph.steps.entries()) {
    const path = under('/graph/steps', i, 'action')
    // No other key holds an expression: the body of a webhook is any JSON.
    inExpressions([action.condition, action.branches], path)
    if (action.type === 'webhook' && !known.webhookEndpoints?.has(String(action.endpointId))) {
      missing(path, 'Webhook endpoint', action.endpointId)
    }
    if (action.type === 'grant_feature' && !known.features.has(String(action.featureId))) {
      missing(path, 'Feature', action.featureId)
    }
    if (action.type === 'experiment' || action.type === 'experiment_split') {
      const experiment = known.experiments.get(String(action.experimentId))
      if (experiment) checkVariants(id, action, experiment, { path, findings })
      else missing(path, 'Experiment', action.experimentId)
    }
  }
}

function segmentIn(part: object): { segmentId?: string } {
  return 'segmentId' in part && typeof part.segmentId === 'string' ? { segmentId: part.segmentId } : {}
}

function checkHoldout(id: string, { experiments }: References, findings: Findings): void {
  const path = '/policy/holdout'
  const experiment = experiments.get(id)
  if (!experiment) {
    const words = `Experiment "${id}" does not exist in this project and environment.`
    findings.add(path, 'reference_missing', words)
  } else if (experiment.isArchived) {
    findings.add(path, 'experiment_state', `Experiment "${id}" is archived.`)
  } else if (experiment.kind !== 'holdout') {
    findings.add(path, 'experiment_state', `Experiment "${id}" is not of kind holdout.`)
  }
}

function checkVariants(
  stepId: string,
  action: { [key: string]: unknown },
  experiment: Experiment,
  { path, findings }: { path: string; findings: Findings },
): void {
  const words = (variants: Experiment['variants']) =>
    variants
      .map(({ id, isHoldout }) => (isHoldout ? `${id} (holdout)` : id))
      .toSorted()
      .join(', ')
  const listed = words(action.variants as Experiment['variants']) // its shape was found right
  const stored = words(experiment.variants)
  const name = String(action.experimentId)
  if (experiment.isArchived) findings.add(path, 'experiment_state', `Experiment "${name}" is archived.`)
  if (listed !== stored) {
    findings.add(
      path,
      'experiment_variants',
      `Step "${stepId}" lists variants ${listed}, experiment "${name}" has ${stored}; they must be equal, flags included.`,
    )
  }
}
