import Type, { type Static } from 'typebox'
import type { Experiment, Terms } from '../../experiences/index.ts'
import {
  customerIdCharsMax,
  dayMs,
  experimentMetricsMax,
  experimentVariantsMax,
  experimentWindowDaysMax,
} from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { closed, instant, nullable, nullableString, oneOf } from '../schema.ts'
import { environment, id } from './parts.ts'

const share = Type.Number({ minimum: 0, maximum: 1 })
export const variantId = Type.String({
  pattern: '^[A-Za-z0-9_.-]{1,128}$',
  description: 'As the steps of Experiences list it.',
})
const eventName = Type.String({ minLength: 1, maxLength: customerIdCharsMax, 'x-storable': true })
const variant = { id: variantId, weight: share, is_holdout: Type.Boolean() }
const namespace = { id: Type.String({ minLength: 1, maxLength: 128, 'x-storable': true }), start: share, end: share }
const metric = {
  event_name: eventName,
  window_ms: Type.Integer({
    minimum: 1,
    maximum: experimentWindowDaysMax * dayMs,
    description: 'Within this time after the first exposure, both ends included.',
  }),
}

export const ExperimentObject = Type.Object(
  {
    object: Type.Literal('experiment'),
    id: Type.String(),
    project_id: Type.String(),
    environment,
    key: Type.String(),
    name: Type.String(),
    kind: oneOf('ab', 'holdout'),
    status: oneOf('draft', 'running', 'paused', 'concluded', 'archived'),
    phase: Type.Integer(),
    seed: Type.String(),
    variants: Type.Array(Type.Object(variant), { description: 'The first is the control.' }),
    coverage: Type.Number(),
    audience_segment_id: nullableString,
    namespace: nullable(Type.Object(namespace)),
    metrics: Type.Array(Type.Object(metric)),
    winner_variant_id: nullableString,
    started_at: nullable(instant),
    created_at: instant,
  },
  { title: 'Experiment' },
)

/** What a phase asks. */
export const terms = {
  variants: Type.Array(closed(variant), {
    minItems: 2,
    maxItems: experimentVariantsMax,
    description: 'The first is the control. Weights add up to 1.',
  }),
  coverage: Type.Optional(
    Type.Number({ minimum: 0, maximum: 1, description: 'The share of customers that takes part, 1 by default.' }),
  ),
  seed: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      'x-storable': true,
      description: '`<id>:<phase>` by default. Equal seeds deal customers alike.',
    }),
  ),
  audience_segment_id: Type.Optional(nullable(id)),
  namespace: Type.Optional(
    nullable(closed(namespace, { description: 'Experiments in separate parts of one namespace share no customer.' })),
  ),
  metrics: Type.Optional(Type.Array(closed(metric), { maxItems: experimentMetricsMax })),
}
export const someTerms = { ...terms, variants: Type.Optional(terms.variants) }
const Some = closed(someTerms)

export function termsIn(body: Static<typeof Some>): Partial<Terms> {
  const { variants, coverage, seed, audience_segment_id: audience, namespace: part, metrics } = body
  return {
    ...(variants !== undefined && { variants: variantsIn(variants) }),
    ...(coverage !== undefined && { coverage }),
    ...(seed !== undefined && { seed }),
    ...(audience !== undefined && { audienceSegmentId: audience }),
    ...(part !== undefined && { namespace: part }),
    ...(metrics !== undefined && {
      metrics: metrics.map(({ event_name, window_ms }) => ({ eventName: event_name, windowMs: window_ms })),
    }),
  }
}

export function variantsIn(variants: Static<typeof terms.variants>): Terms['variants'] {
  return variants.map(({ id: variantName, weight, is_holdout }) => ({ id: variantName, weight, isHoldout: is_holdout }))
}

export function showExperiment(experiment: Experiment, scope: Scope): Static<typeof ExperimentObject> {
  const { publicId, phase, seed, coverage, namespace: part, startedAtMs } = experiment
  return {
    object: 'experiment',
    id: publicId,
    project_id: scope.projectId,
    environment: scope.environment,
    ...{ key: experiment.key, name: experiment.name, kind: experiment.kind, status: experiment.status, phase, seed },
    variants: experiment.variants.map(({ id: variantName, weight, isHoldout }) => ({
      ...{ id: variantName, weight, is_holdout: isHoldout },
    })),
    coverage,
    audience_segment_id: experiment.audienceSegmentId,
    namespace: part && { id: part.id, start: part.start, end: part.end },
    metrics: experiment.metrics.map(({ eventName: event_name, windowMs: window_ms }) => ({ event_name, window_ms })),
    winner_variant_id: experiment.winnerVariantId,
    started_at: startedAtMs === null ? null : new Date(startedAtMs).toISOString(),
    created_at: experiment.createdAt.toISOString(),
  }
}
