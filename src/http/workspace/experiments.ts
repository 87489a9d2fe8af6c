import Type from 'typebox'
import type { Pool } from '../../db/pool.ts'
import type { AnalyticsStore, QueryGuard } from '../../events/index.ts'
import {
  beginPhase,
  changeExperiment,
  concludeExperiment,
  createExperiment,
  type ExperimentEdit,
  type ExperimentVerb,
  getExperiment,
  listExperiments,
  updateExperiment,
} from '../../experiences/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { closed, oneOf } from '../schema.ts'
import { scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import {
  ExperimentObject,
  showExperiment,
  someTerms,
  terms,
  termsIn,
  variantId,
  variantsIn,
} from './experiment-object.ts'
import { experimentResults } from './experiment-results.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byIdOrKey, inProject, key, name, projectId } from './parts.ts'
import type { Answer, Change } from './route.ts'

const tag = 'Experiments'
const errors = [404, 409]

export interface ExperimentServices {
  pool: Pool
  listPool: Pool
  clock: Clock
  queryGuard: QueryGuard
  analytics: Pick<AnalyticsStore, 'inTurn'>
}

export function experiments(to: Endpoints, services: ExperimentServices): void {
  reads(to, services)
  edits(to)
  lifecycle(to, services)
  experimentResults(to, services)
}

function reads({ get }: Endpoints, { pool }: ExperimentServices): void {
  get(
    {
      path: '/experiments',
      operationId: 'listExperiments',
      tag,
      summary: 'List experiments',
      description: 'Without archived ones.',
      query: closed({ ...listQuery, project_id: projectId }),
      answers: { 200: listOf(ExperimentObject) },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, idsOf('xp'))
      const scope = look.scope(query.project_id)
      return listAnswer(await listExperiments(pool, scope, page), page, {
        show: (experiment) => showExperiment(experiment, scope),
        positionOf: ({ publicId }) => publicId,
      })
    },
  )

  get(
    {
      path: '/experiments/:id',
      operationId: 'getExperiment',
      tag,
      summary: 'Get an experiment',
      description: 'By id or key.',
      params: byIdOrKey,
      query: inProject,
      answers: { 200: ExperimentObject },
      errors: [404],
    },
    async (look, { params, query }) => {
      const scopes = look.scopes(query.project_id)
      const experiment = await getExperiment(pool, scopes, params.id)
      return showExperiment(experiment, scopeIn(scopes, experiment))
    },
  )
}

function edits({ post, patch }: Endpoints): void {
  post(
    {
      path: '/experiments',
      operationId: 'createExperiment',
      tag,
      summary: 'Create an experiment',
      description: 'A draft: nobody is assigned before it is started. The key stays taken for ever.',
      body: closed({
        project_id: projectId,
        key,
        name: Type.Optional(name),
        kind: Type.Optional(oneOf('ab', 'holdout')),
        ...terms,
      }),
      answers: { 201: ExperimentObject },
      errors,
    },
    async (change, { body }) => {
      const scope = change.scope(body.project_id)
      const created = await createExperiment(change.tx, scope, {
        ...{ key: body.key, name: body.name ?? body.key, kind: body.kind ?? 'ab' },
        terms: { ...termsIn(body), variants: variantsIn(body.variants) },
      })
      const after = showExperiment(created, scope)
      await change.audit('create', 'experiment', after.id, { after })
      await change.catalogueChanged(scope)
      return { status: 201, body: after }
    },
  )

  patch(
    {
      path: '/experiments/:id',
      operationId: 'updateExperiment',
      tag,
      summary: 'Change an experiment',
      description:
        'By id or key. A draft may change whole. Once it was started only its name, its weights and a higher coverage can: they decide for customers to come and move nobody. 409 for the rest, which takes a new phase.',
      params: byIdOrKey,
      query: inProject,
      body: closed({ name: Type.Optional(name), ...someTerms }),
      answers: { 200: ExperimentObject },
      errors,
    },
    async (change, { params, query, body }) =>
      edited(
        change,
        'update',
        await updateExperiment(change.tx, change.scopes(query.project_id), params.id, {
          name: body.name,
          terms: termsIn(body),
        }),
      ),
  )
}

const words: Record<ExperimentVerb, [summary: string, description: string]> = {
  start: ['Start an experiment', 'From a draft. 409 while another one runs in the same part of its namespace.'],
  pause: ['Pause an experiment', 'Nobody new is assigned. Who has a variant keeps it.'],
  resume: ['Resume an experiment', 'After a pause. 409 while another one runs in the same part of its namespace.'],
  archive: [
    'Archive an experiment',
    'A draft, or one that was concluded. Experiences run their fallback from then on.',
  ],
}

function lifecycle({ post }: Endpoints, { clock }: ExperimentServices): void {
  const add = (verb: ExperimentVerb) => {
    const [summary, description] = words[verb]
    post(
      {
        path: `/experiments/:id/${verb}`,
        operationId: `${verb}Experiment`,
        tag,
        summary,
        description,
        params: byIdOrKey,
        query: inProject,
        body: closed({}),
        answers: { 200: ExperimentObject },
        errors,
      },
      async (change, { params, query }) =>
        edited(
          change,
          verb,
          await changeExperiment(change.tx, change.scopes(query.project_id), params.id, verb, clock.now()),
        ),
    )
  }
  add('start')
  add('pause')
  add('resume')
  add('archive')

  post(
    {
      path: '/experiments/:id/new_phase',
      operationId: 'beginExperimentPhase',
      tag,
      summary: 'Begin a new phase',
      description:
        'Everybody is dealt anew and counted anew, with the same terms but for those given. The phase before ends and keeps its results.',
      params: byIdOrKey,
      query: inProject,
      body: closed(someTerms),
      answers: { 200: ExperimentObject },
      errors,
    },
    async (change, { params, query, body }) =>
      edited(
        change,
        'new_phase',
        await beginPhase(change.tx, change.scopes(query.project_id), params.id, {
          terms: termsIn(body),
          nowMs: clock.now(),
        }),
      ),
  )

  post(
    {
      path: '/experiments/:id/conclude',
      operationId: 'concludeExperiment',
      tag,
      summary: 'Conclude an experiment',
      description:
        'The winner is everybody’s from then on, also of those who had another variant. There is no way back.',
      params: byIdOrKey,
      query: inProject,
      body: closed({ winner_variant_id: variantId }),
      answers: { 200: ExperimentObject },
      errors,
    },
    async (change, { params, query, body }) =>
      edited(
        change,
        'conclude',
        await concludeExperiment(change.tx, change.scopes(query.project_id), params.id, {
          winnerVariantId: body.winner_variant_id,
          nowMs: clock.now(),
        }),
      ),
  )
}

async function edited(change: Change, action: string, { before, after, scope }: ExperimentEdit): Promise<Answer> {
  const states = { before: showExperiment(before, scope), after: showExperiment(after, scope) }
  await change.audit(action, 'experiment', after.publicId, states)
  await change.catalogueChanged(scope)
  return { status: 200, body: states.after }
}
