import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import {
  createExperience,
  type Experience,
  type ExperienceEdit,
  getExperience,
  listExperiences,
  renameExperience,
} from '../../experiences/index.ts'
import type { Scope } from '../../tenancy/index.ts'
import { closed, instant, oneOf } from '../schema.ts'
import { scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byIdOrKey, environment, inProject, key, name, projectId } from './parts.ts'
import type { Answer, Change } from './route.ts'

export const ExperienceObject = Type.Object(
  {
    object: Type.Literal('experience'),
    id: Type.String(),
    project_id: Type.String(),
    environment,
    key: Type.String(),
    name: Type.String(),
    status: oneOf('draft', 'published', 'paused', 'archived'),
    draft_revision: Type.Integer({ description: '0: no draft was saved yet.' }),
    created_at: instant,
  },
  { title: 'Experience' },
)

const tag = 'Experiences'

export function experiences({ get, post, patch }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/experiences',
      operationId: 'listExperiences',
      tag,
      summary: 'List Experiences',
      description: 'Without archived ones.',
      query: closed({ ...listQuery, project_id: projectId }),
      answers: { 200: listOf(ExperienceObject) },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, idsOf('exp'))
      const scope = look.scope(query.project_id)
      return listAnswer(await listExperiences(pool, scope, page), page, {
        show: (experience) => showExperience(experience, scope),
        positionOf: ({ publicId }) => publicId,
      })
    },
  )

  post(
    {
      path: '/experiences',
      operationId: 'createExperience',
      tag,
      summary: 'Create an Experience',
      description: 'Without a draft. The key stays taken for ever.',
      body: closed({ project_id: projectId, key, name }),
      answers: { 201: ExperienceObject },
      errors: [404, 409],
    },
    async (change, { body }) => {
      const scope = change.scope(body.project_id)
      const after = showExperience(await createExperience(change.tx, scope, body), scope)
      await change.audit('create', 'experience', after.id, { after })
      return { status: 201, body: after }
    },
  )

  get(
    {
      path: '/experiences/:id',
      operationId: 'getExperience',
      tag,
      summary: 'Get an Experience',
      description: 'By id or key.',
      params: byIdOrKey,
      query: inProject,
      answers: { 200: ExperienceObject },
      errors: [404],
    },
    async (look, { params, query }) => {
      const scopes = look.scopes(query.project_id)
      const experience = await getExperience(pool, scopes, params.id)
      return showExperience(experience, scopeIn(scopes, experience))
    },
  )

  patch(
    {
      path: '/experiences/:id',
      operationId: 'updateExperience',
      tag,
      summary: 'Rename an Experience',
      description: 'By id or key.',
      params: byIdOrKey,
      query: inProject,
      body: closed({ name: Type.Optional(name) }),
      answers: { 200: ExperienceObject },
      errors: [404],
    },
    async (change, { params, query, body }) =>
      editedExperience(
        change,
        'update',
        await renameExperience(change.tx, change.scopes(query.project_id), params.id, body),
      ),
  )
}

/** The answer to a change of an Experience, with its audit row. */
export async function editedExperience(
  change: Change,
  action: string,
  { before, after, scope }: ExperienceEdit,
): Promise<Answer> {
  const states = { before: showExperience(before, scope), after: showExperience(after, scope) }
  await change.audit(action, 'experience', after.publicId, states)
  return { status: 200, body: states.after }
}

/** As the API shows it. */
function showExperience(experience: Experience, scope: Scope): Static<typeof ExperienceObject> {
  return {
    object: 'experience',
    id: experience.publicId,
    project_id: scope.projectId,
    environment: scope.environment,
    key: experience.key,
    name: experience.name,
    status: experience.status,
    draft_revision: experience.draftRevision,
    created_at: experience.createdAt.toISOString(),
  }
}
