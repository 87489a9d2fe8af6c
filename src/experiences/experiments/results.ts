import { type Sql, sqlState } from '../../db/pool.ts'
import { selectPerformers } from '../../events/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'
import { experimentPageUnits, queryMsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { selectPhase } from './experiment-store.ts'
import { type SeenUnit, selectSeen } from './results-store.ts'
import { type Comparison, checkRatio, compareSamples, type RatioCheck, rateOf, type Sample } from './statistics.ts'
import type { Experiment, Metric } from './types.ts'

export interface ExperimentResult {
  phase: number
  /** Null: the experiment has none, and only units are counted. */
  metric: Metric | null
  ratio: RatioCheck
  /** The control first, compared with nothing. */
  variants: (Sample & Comparison & { id: string; rate: number | null })[]
  excluded: { fallback: number; mismatch: number; crossover: number }
  verdict: Verdict | null
}

export interface Verdict {
  status: 'difference' | 'inconclusive'
  bestVariantId: string | null
}

/** Counted by variant and by the weights that held. */
interface Tally {
  units: number[][]
  conversions: number[]
  excluded: ExperimentResult['excluded']
}

/**
 * What a phase came to, by one metric: the first one where none is named. 400 for a phase or metric that it does not have;
 * 503 `query_timeout` where there is more to count than time.
 */
export async function resultsOf(
  sql: Sql,
  scope: Scope,
  experiment: Experiment,
  { phase, metric: named, clock }: { phase: number | undefined; metric: string | undefined; clock: Clock },
): Promise<ExperimentResult> {
  const asked = await selectPhase(sql, experiment, phase ?? experiment.phase)
  if (!asked) throw refuse('invalid_request', { param: 'phase', message: 'The experiment has no such phase.' })
  const metric = asked.metrics.find(({ eventName }) => named === undefined || eventName === named) ?? null
  if (metric === null && named !== undefined) {
    throw refuse('invalid_request', { param: 'metric', message: `${named} is no metric of this phase.` })
  }
  const tally: Tally = {
    units: asked.weightPeriods.map(() => asked.variants.map(() => 0)),
    conversions: asked.variants.map(() => 0),
    excluded: { fallback: 0, mismatch: 0, crossover: 0 },
  }
  const until = clock.now() + queryMsMax
  let after = '00000000-0000-0000-0000-000000000000'
  const read = async () => {
    for (;;) {
      const page = await selectSeen(
        sql,
        scope,
        { experimentId: asked.id, phase: asked.phase },
        { after, limit: experimentPageUnits },
      )
      await count(sql, scope, { asked, metric, page, tally })
      if (page.length < experimentPageUnits) return judge(asked, metric, tally)
      after = page.at(-1)?.customerId ?? after
      if (clock.now() > until) throw refuse('query_timeout', { retryAfterS: 60 })
    }
  }
  return read().catch((error: unknown) => {
    throw sqlState(error) === canceled ? refuse('query_timeout', { retryAfterS: 60, cause: error }) : error
  })
}

/** A statement that took longer than its connection allows. */
const canceled = '57014'

async function count(
  sql: Sql,
  scope: Scope,
  { asked, metric, page, tally }: { asked: Experiment; metric: Metric | null; page: SeenUnit[]; tally: Tally },
): Promise<void> {
  const counted = page.flatMap((unit) => {
    const { variantId, exposedAtMs, customerId } = unit
    const variant = asked.variants.findIndex(({ id }) => id === variantId)
    if (exposedAtMs === null || variant < 0) {
      tally.excluded[unit.isMismatch ? 'mismatch' : 'fallback']++
      return []
    }
    if (unit.crossover) {
      tally.excluded.crossover++
      return []
    }
    const period = tally.units[unit.weightPeriod ?? tally.units.length - 1]
    if (period) period[variant] = (period[variant] ?? 0) + 1
    return [{ customerId, fromMs: exposedAtMs, variant }]
  })
  if (metric === null || counted.length === 0) return
  const { eventName: event, windowMs } = metric
  for (const place of await selectPerformers(sql, scope, { event, windowMs }, counted)) {
    const variant = counted[place]?.variant ?? 0
    tally.conversions[variant] = (tally.conversions[variant] ?? 0) + 1
  }
}

function judge(asked: Experiment, metric: Metric | null, { units, conversions, excluded }: Tally): ExperimentResult {
  const samples = asked.variants.map(({ id }, i) => ({
    id,
    units: units.reduce((sum, period) => sum + (period[i] ?? 0), 0),
    conversions: conversions[i] ?? 0,
  }))
  const ratio = checkRatio(units.map((each, i) => ({ units: each, weights: asked.weightPeriods[i] ?? [] })))
  const control = samples[0] ?? { units: 0, conversions: 0 }
  const variants = samples.map((sample, i) => ({
    ...sample,
    rate: metric === null ? null : rateOf(sample),
    // Nothing is compared with itself.
    ...compareSamples(i === 0 || metric === null ? { units: 0, conversions: 0 } : control, sample),
  }))
  const { phase } = asked
  return { phase, metric, ratio, variants, excluded, verdict: metric && verdictOf(ratio, variants) }
}

/** Of units that are not as many as they should be nothing can be said. */
function verdictOf(ratio: RatioCheck, variants: ExperimentResult['variants']): Verdict | null {
  if (ratio.status !== 'passed') return null
  const judged = variants.flatMap(({ id, diff, sequentialInterval }) =>
    sequentialInterval === null || diff === null ? [] : [{ id, diff, interval: sequentialInterval }],
  )
  const differing = judged.filter(({ interval: [low, high] }) => low > 0 || high < 0)
  if (differing.length === 0) return { status: 'inconclusive', bestVariantId: null }
  const [best] = differing.filter(({ diff }) => diff > 0).toSorted((a, b) => b.diff - a.diff)
  // The control is best where all others are worse.
  const control = differing.length === variants.length - 1 ? variants[0] : undefined
  return { status: 'difference', bestVariantId: (best ?? control)?.id ?? null }
}
