import Type, { type Static } from 'typebox'
import type { Pool, Sql } from '../../db/pool.ts'
import {
  copyExperience,
  createExperience,
  type Experience,
  getExperience,
  listCurrentPublications,
  listExperiences,
  renameExperience,
  selectLatestVersions,
} from '../../experiences/index.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Directory, Scope } from '../../tenancy/index.ts'
import { closed, instant, nullableString, oneOf } from '../schema.ts'
import { scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byIdOrKey, environment, inProject, key, name, projectId } from './parts.ts'
import { PublicationObject, showPublication } from './publication-object.ts'
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
    latest_version_id: nullableString,
    publications: Type.Array(PublicationObject, {
      description: 'What holds now in each app where it is, or was, published.',
    }),
    created_at: instant,
  },
  { title: 'Experience' },
)

const tag = 'Experiences'

export function experiences(
  { get, post, patch }: Endpoints,
  { pool, directory }: { pool: Pool; directory: Directory },
): void {
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
      const shown = await showExperiences(pool, await listExperiences(pool, scope, page), scope)
      return listAnswer(shown, page, { show: (experience) => experience, positionOf: (experience) => experience.id })
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
      const created = await createExperience(change.tx, scope, body)
      const after = await showExperience(change.tx, created, scope)
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
      return showExperience(pool, experience, scopeIn(scopes, experience))
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
    async (change, { params, query, body }) => {
      const { tx } = change
      const { before, after, scope } = await renameExperience(tx, change.scopes(query.project_id), params.id, body)
      return editedExperience(change, 'update', { before: await showExperience(tx, before, scope), after, scope })
    },
  )

  post(
    {
      path: '/experiences/:id/copy',
      operationId: 'copyExperience',
      tag,
      summary: "Copy an Experience's draft into the other environment",
      description:
        'There the Experience with the same key gets this draft in place of its own, and is made if there is none. Versions and releases are not copied: publish there. Products that the draft names by key are found there too.',
      params: byIdOrKey,
      query: inProject,
      body: closed({ to_environment: environment }),
      answers: { 200: ExperienceObject, 201: ExperienceObject },
      errors: [404, 409],
    },
    async (change, { params, query, body }) => {
      if (body.to_environment === change.caller.environment) {
        throw refuse('invalid_request', { param: 'to_environment', message: 'to_environment is where it lies already' })
      }
      const from = change.scopes(query.project_id)
      const to = ({ scopeId }: Experience) =>
        must(directory.scope(scopeIn(from, { scopeId }).projectId, body.to_environment), 'a project has both')
      const { before, after, scope } = await copyExperience(change.tx, { from, to }, params.id)
      const shown = await showExperience(change.tx, after, scope)
      const was = before && { before: await showExperience(change.tx, before, scope) }
      await change.audit('copy', 'experience', after.publicId, { ...was, after: shown })
      return { status: before ? 200 : 201, body: shown }
    },
  )
}

type Shown = Static<typeof ExperienceObject>

/** The answer to a change of an Experience, with its audit row. */
export async function editedExperience(
  change: Change,
  action: string,
  { before, after, scope }: { before: Shown; after: Experience; scope: Scope },
): Promise<Answer> {
  const body = await showExperience(change.tx, after, scope)
  await change.audit(action, 'experience', after.publicId, { before, after: body })
  return { status: 200, body }
}

/** As the API shows it. */
export async function showExperience(sql: Sql, experience: Experience, scope: Scope): Promise<Shown> {
  return must((await showExperiences(sql, [experience], scope))[0], 'one for one')
}

async function showExperiences(sql: Sql, found: Experience[], scope: Scope): Promise<Shown[]> {
  const latest = await selectLatestVersions(sql, found)
  const current = Map.groupBy(await listCurrentPublications(sql, found), ({ experienceId }) => experienceId)
  return found.map((experience) => ({
    object: 'experience',
    id: experience.publicId,
    project_id: scope.projectId,
    environment: scope.environment,
    key: experience.key,
    name: experience.name,
    status: experience.status,
    draft_revision: experience.draftRevision,
    latest_version_id: latest.get(experience.id) ?? null,
    publications: (current.get(experience.publicId) ?? []).map((one) => showPublication(one, scope.environment)),
    created_at: experience.createdAt.toISOString(),
  }))
}
