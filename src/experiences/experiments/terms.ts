import { type Issue, refuse } from '../../kernel/errors.ts'
import { dayMs, experimentMetricsMax, experimentVariantsMax, experimentWindowDaysMax } from '../../kernel/limits.ts'
import type { ExperimentKind, Terms, Variant } from './types.ts'

const weightTolerance = 1e-6

/** Refuses terms that can't be kept: 400 with issues. */
export function checkTerms(kind: ExperimentKind, terms: Terms): void {
  const issues: Issue[] = []
  const wrong = (path: string, message: string) => issues.push({ path, message })
  const { variants, coverage, namespace, metrics } = terms
  if (variants.length < 2 || variants.length > experimentVariantsMax) {
    wrong('variants', `must be 2 to ${experimentVariantsMax}`)
  }
  if (new Set(variants.map(({ id }) => id)).size < variants.length) wrong('variants', 'must have ids of their own')
  if (Math.abs(variants.reduce((sum, { weight }) => sum + weight, 0) - 1) > weightTolerance) {
    wrong('variants', 'must have weights that add up to 1')
  }
  for (const [i, { weight }] of variants.entries()) {
    if (!(weight >= 0 && weight <= 1)) wrong(`variants[${i}].weight`, 'must be between 0 and 1')
  }
  const held = variants.filter(({ isHoldout }) => isHoldout).length
  if (kind === 'holdout' && (held === 0 || held === variants.length)) {
    wrong('variants', 'of a holdout must be some that are held out and some that are not')
  }
  if (!(coverage >= 0 && coverage <= 1)) wrong('coverage', 'must be between 0 and 1')
  if (namespace !== null && !(namespace.start >= 0 && namespace.start < namespace.end && namespace.end <= 1)) {
    wrong('namespace', 'must begin before it ends, within 0 and 1')
  }
  if (metrics.length > experimentMetricsMax) wrong('metrics', `must be at most ${experimentMetricsMax}`)
  if (new Set(metrics.map(({ eventName }) => eventName)).size < metrics.length) {
    wrong('metrics', 'must be of different events')
  }
  for (const [i, { windowMs }] of metrics.entries()) {
    if (!(windowMs >= 1 && windowMs <= experimentWindowDaysMax * dayMs)) {
      wrong(`metrics[${i}].window_ms`, `must be at most ${experimentWindowDaysMax} days`)
    }
  }
  if (issues.length > 0) throw refuse('invalid_request', { message: 'The experiment is not valid.', issues })
}

/** Whether only the weights differ. */
export function sameBesidesWeights(a: readonly Variant[], b: readonly Variant[]): boolean {
  return a.length === b.length && a.every(({ id, isHoldout }, i) => id === b[i]?.id && isHoldout === b[i]?.isHoldout)
}
