import Type from 'typebox'
import { wireCustomerId } from '../../customers/index.ts'
import { getExperiment, listAssignments, resultsOf } from '../../experiences/index.ts'
import { closed, instant, nullable, nullableNumber, nullableString, oneOf } from '../schema.ts'
import { instantOf } from './amount.ts'
import { scopeIn } from './caller.ts'
import { findCustomer } from './customers.ts'
import type { Endpoints } from './endpoint.ts'
import type { ExperimentServices } from './experiments.ts'
import { listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byIdOrKey, environment, id, projectId } from './parts.ts'

const interval = nullable(Type.Array(Type.Number(), { minItems: 2, maxItems: 2 }))

const ResultObject = Type.Object(
  {
    object: Type.Literal('experiment_result'),
    experiment_id: Type.String(),
    environment,
    phase: Type.Integer(),
    metric: nullable(Type.Object({ event_name: Type.String(), window_ms: Type.Integer() })),
    srm: Type.Object(
      {
        status: oneOf('passed', 'failed', 'too_few'),
        chi2: Type.Number(),
        df: Type.Integer(),
        p: Type.Number(),
      },
      { description: 'Whether variants have as many units as their weights say. `failed`: nothing can be said.' },
    ),
    variants: Type.Array(
      Type.Object({
        id: Type.String(),
        units: Type.Integer(),
        conversions: Type.Integer(),
        rate: nullableNumber,
        diff: Type.Unsafe<number | null>({
          ...nullableNumber,
          description: 'Against the control, as all that follows.',
        }),
        se: nullableNumber,
        z: nullableNumber,
        p: nullableNumber,
        interval,
        sequential_interval: Type.Unsafe<number[] | null>({
          ...interval,
          description: '95 %, however often one looks; `interval` is for one look at a time fixed beforehand.',
        }),
        chance_to_win: nullableNumber,
      }),
    ),
    excluded: Type.Object({ fallback: Type.Integer(), mismatch: Type.Integer(), crossover: Type.Integer() }),
    verdict: nullable(Type.Object({ status: oneOf('difference', 'inconclusive'), best_variant_id: nullableString })),
  },
  { title: 'ExperimentResult' },
)

const AssignmentObject = Type.Object(
  {
    object: Type.Literal('assignment'),
    experiment_id: Type.String(),
    phase: Type.Integer(),
    customer_id: Type.String(),
    variant_id: Type.String(),
    is_holdout: Type.Boolean(),
    reason: oneOf('hash', 'merged'),
    assigned_at: instant,
    first_exposed_at: nullable(instant),
    crossover: Type.Boolean({ description: 'Customers with different variants became this one: it is not counted.' }),
  },
  { title: 'Assignment' },
)

const tag = 'Experiments'
/** `<phase>_<uuid>`: what assignments are listed by. */
const position = /^[1-9][0-9]{0,8}_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function experimentResults(
  { get }: Endpoints,
  { pool, listPool, clock, queryGuard, analytics }: ExperimentServices,
): void {
  get(
    {
      path: '/experiments/:id/results',
      operationId: 'getExperimentResults',
      tag,
      summary: 'Get results',
      description:
        'Of the current phase and the first metric, unless others are named. A unit counts from its first exposure to the variant it was assigned; 503 `query_timeout` where there is more to count than time.',
      params: byIdOrKey,
      query: closed({
        project_id: projectId,
        phase: Type.Optional(Type.String({ pattern: '^[1-9][0-9]{0,8}$' })),
        metric: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: 'The name of its event.' })),
      }),
      answers: { 200: ResultObject },
      errors: [404],
    },
    async (look, { params, query }) => {
      const scopes = look.scopes(query.project_id)
      const experiment = await getExperiment(pool, scopes, params.id)
      const scope = scopeIn(scopes, experiment)
      const phase = query.phase === undefined ? undefined : Number(query.phase)
      const asked = { phase, metric: query.metric, clock }
      const result = await queryGuard.run(scope.workspaceId, () =>
        analytics.inTurn(() => resultsOf(listPool, scope, experiment, asked)),
      )
      const { metric, ratio, variants, excluded, verdict } = result
      return {
        object: 'experiment_result',
        experiment_id: experiment.publicId,
        environment: scope.environment,
        phase: result.phase,
        metric: metric && { event_name: metric.eventName, window_ms: metric.windowMs },
        srm: ratio,
        variants: variants.map(({ sequentialInterval, chanceToWin, ...variant }) => ({
          ...variant,
          sequential_interval: sequentialInterval,
          chance_to_win: chanceToWin,
        })),
        excluded,
        verdict: verdict && { status: verdict.status, best_variant_id: verdict.bestVariantId },
      }
    },
  )

  get(
    {
      path: '/experiments/:id/assignments',
      operationId: 'listAssignments',
      tag,
      summary: 'List assignments',
      description: 'Of all phases, the oldest first.',
      params: byIdOrKey,
      query: closed({ ...listQuery, project_id: projectId, customer_id: Type.Optional(id) }),
      answers: { 200: listOf(AssignmentObject) },
      errors: [404, 410],
    },
    async (look, { params, query }) => {
      const page = pageOf(query, position)
      const scopes = look.scopes(query.project_id)
      const experiment = await getExperiment(pool, scopes, params.id)
      const scope = scopeIn(scopes, experiment)
      const whose = query.customer_id === undefined ? null : await findCustomer(pool, [scope], query.customer_id)
      const found = await listAssignments(pool, scope, experiment, whose?.customer.id ?? null, page)
      return listAnswer(found, page, {
        show: (row) => ({
          object: 'assignment' as const,
          experiment_id: experiment.publicId,
          ...{ phase: row.phase, customer_id: wireCustomerId(row.customerId) },
          ...{ variant_id: row.variantId, is_holdout: row.isHoldout, reason: row.reason, crossover: row.crossover },
          assigned_at: instantOf(row.assignedAtMs),
          first_exposed_at: row.firstExposedAtMs === null ? null : instantOf(row.firstExposedAtMs),
        }),
        positionOf: (row) => `${row.phase}_${row.customerId}`,
      })
    },
  )
}
