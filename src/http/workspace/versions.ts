import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import {
  activate,
  changeState,
  type Experience,
  envelopeOf,
  freeze,
  getExperience,
  listPublications,
  listVersions,
  type Publication,
  type PublishServices,
  type StateVerb,
  selectRelease,
  type Version,
} from '../../experiences/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'
import { targetAppsMax } from '../../kernel/limits.ts'
import { closed, instant, nullableString, oneOf } from '../schema.ts'
import { scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { ExperienceObject, editedExperience } from './experiences.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf, wholeList } from './list.ts'
import { byIdOrKey, environment, id, idOrKey, inProject, projectId } from './parts.ts'
import type { Change, Look } from './route.ts'

const VersionObject = Type.Object(
  {
    object: Type.Literal('experience_version'),
    id: Type.String(),
    environment,
    experience_id: Type.String(),
    version_number: Type.Integer(),
    draft_sha256: Type.String(),
    note: nullableString,
    created_at: instant,
  },
  { title: 'ExperienceVersion' },
)

const PublicationObject = Type.Object(
  {
    object: Type.Literal('publication'),
    id: Type.String(),
    environment,
    experience_id: Type.String(),
    app_id: Type.String(),
    version_id: Type.String(),
    version_number: Type.Integer(),
    build_id: Type.String({ description: 'Names the compiled content: a rollback has the build that it had before.' }),
    published_at: instant,
    published_at_seq: Type.Integer({ description: 'Rises with every publication in the app.' }),
    published_by: Type.String(),
    status: oneOf('live', 'paused', 'unpublished', 'superseded'),
    created_at: instant,
  },
  { title: 'Publication' },
)

const ReleaseObject = Type.Object(
  {
    object: Type.Literal('release'),
    id: Type.String({ description: 'SHA-256 of the descriptor.' }),
    locator: Type.Record(Type.String(), Type.Unknown()),
    envelope: Type.Record(Type.String(), Type.Unknown(), { description: 'As profiles deliver it.' }),
    descriptor: Type.Record(Type.String(), Type.Unknown(), {
      description: 'Decoded; the signed bytes are in the envelope.',
    }),
  },
  { title: 'Release' },
)

const tag = 'Publishing'
const appIds = Type.Optional(Type.Array(id, { minItems: 1, maxItems: targetAppsMax, uniqueItems: true }))
const errors = [404, 409, 500]

export interface VersionServices extends PublishServices {
  pool: Pool
  clock: Clock
}

export function versions(to: Endpoints, services: VersionServices): void {
  publishing(to, services)
  states(to)
  reads(to, services)
}

function publishing({ post }: Endpoints, services: VersionServices): void {
  post(
    {
      path: '/experiences/:id/versions',
      operationId: 'publishExperience',
      tag,
      summary: 'Publish the draft',
      description:
        'Freezes the saved draft as the next version, or takes the newest where it is the same, and makes it live in every app of a platform it is for, or in those named. Signed and checked as clients would; all apps or none. 400 `draft_invalid` tells all that is wrong. With `activate: false` it is only frozen.',
      params: byIdOrKey,
      query: inProject,
      body: closed({
        activate: Type.Optional(Type.Boolean()),
        app_ids: appIds,
        note: Type.Optional(Type.String({ maxLength: 500, 'x-storable': true })),
      }),
      answers: { 201: VersionObject, 200: VersionObject },
      errors,
    },
    async (change, { params, query, body }) => {
      const scopes = change.scopes(query.project_id)
      const scope = scopeIn(scopes, await getExperience(change.tx, scopes, params.id))
      const frozen = await freeze(change.tx, scope, params.id, { note: body.note ?? null })
      const { experience, version, isNew } = frozen
      if (body.activate !== false) {
        const command = { versionId: version.publicId, appIds: body.app_ids, ...asked(change, services) }
        await activate(change.tx, scope, experience, command, services)
        await change.catalogueChanged(scope)
      }
      const after = showVersion(version, experience, scope.environment)
      await change.audit(body.activate === false ? 'freeze' : 'publish', 'experience', experience.publicId, { after })
      return { status: isNew ? 201 : 200, body: after }
    },
  )

  post(
    {
      path: '/experiences/:id/versions/:version_id/activate',
      operationId: 'activateVersion',
      tag,
      summary: 'Make a version live',
      description: 'An older one is a rollback: the same build, signed anew under a higher number.',
      params: closed({ id: idOrKey, version_id: id }),
      query: inProject,
      body: closed({ app_ids: appIds }),
      answers: { 200: listOf(PublicationObject) },
      errors,
    },
    async (change, { params, query, body }) => {
      const scopes = change.scopes(query.project_id)
      const experience = await getExperience(change.tx, scopes, params.id, { lock: true })
      const scope = scopeIn(scopes, experience)
      const command = { versionId: params.version_id, appIds: body.app_ids, ...asked(change, services) }
      await activate(change.tx, scope, experience, command, services)
      await change.catalogueChanged(scope)
      const where = { experienceId: experience.publicId, current: true }
      const current = await listPublications(change.tx, [scope], where, { limit: targetAppsMax, after: null })
      const after = wholeList(current.map((one) => showPublication(one, scope.environment)))
      await change.audit('activate', 'experience', experience.publicId, { after })
      return { status: 200, body: after }
    },
  )
}

function asked({ caller }: Change, { clock }: VersionServices): { by: string; at: Date } {
  return { by: caller.actor.id, at: new Date(clock.now()) }
}

function states({ post }: Endpoints): void {
  const words: Record<StateVerb, [summary: string, description: string]> = {
    pause: ['Pause an Experience', 'Nobody new enters it. What is signed and its numbers stay.'],
    resume: ['Resume an Experience', 'What was live before the pause is live again.'],
    unpublish: ['Take an Experience back', 'Nobody new enters it until a version is made live again.'],
    archive: ['Archive an Experience', 'Taken back and hidden from lists, for ever. Its key stays taken.'],
  }
  const add = (verb: StateVerb) => {
    const [summary, description] = words[verb]
    post(
      {
        path: `/experiences/:id/${verb}`,
        operationId: `${verb}Experience`,
        tag,
        summary,
        description,
        params: byIdOrKey,
        query: inProject,
        body: closed(verb === 'archive' ? {} : { app_ids: appIds }),
        answers: { 200: ExperienceObject },
        errors: [404, 409],
      },
      async (change, { params, query, body }) => {
        const named = 'app_ids' in body ? (body.app_ids as string[] | undefined) : undefined // by the schema above
        const edit = await changeState(change.tx, change.scopes(query.project_id), params.id, verb, named)
        await change.catalogueChanged(edit.scope)
        return editedExperience(change, verb, edit)
      },
    )
  }
  add('pause')
  add('resume')
  add('unpublish')
  add('archive')
}

function reads({ get }: Endpoints, { pool, names }: VersionServices): void {
  get(
    {
      path: '/experiences/:id/versions',
      operationId: 'listVersions',
      tag,
      summary: "List an Experience's versions",
      params: byIdOrKey,
      query: closed({ ...listQuery, project_id: projectId }),
      answers: { 200: listOf(VersionObject) },
      errors: [404],
    },
    async (look, { params, query }) => {
      const page = pageOf(query, idsOf('ver'))
      const scopes = look.scopes(query.project_id)
      const experience = await getExperience(pool, scopes, params.id)
      return listAnswer(await listVersions(pool, experience, page), page, {
        show: (version) => showVersion(version, experience, scopeIn(scopes, experience).environment),
        positionOf: ({ publicId }) => publicId,
      })
    },
  )

  get(
    {
      path: '/publications',
      operationId: 'listPublications',
      tag,
      summary: 'List publications',
      description: 'What is live, and what was.',
      query: closed({
        ...listQuery,
        project_id: projectId,
        experience_id: Type.Optional(id),
        app_id: Type.Optional(id),
      }),
      answers: { 200: listOf(PublicationObject) },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, idsOf('pub'))
      const where = { experienceId: query.experience_id, appId: query.app_id, current: false }
      const found = await listPublications(pool, look.scopes(query.project_id), where, page)
      return listAnswer(found, page, {
        show: (one) => showPublication(one, look.caller.environment),
        positionOf: ({ publicId }) => publicId,
      })
    },
  )

  get(
    {
      path: '/releases/:sha256',
      operationId: 'getRelease',
      tag,
      summary: 'Get a release',
      description: 'By the SHA-256 of its descriptor, with the signature of the key that signs for its app now.',
      params: closed({ sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }) }),
      answers: { 200: ReleaseObject },
      errors: [404],
    },
    async (look: Look, { params }) => {
      const found = await selectRelease(pool, look.scopes(), params.sha256)
      if (!found) throw refuse('not_found')
      const { legId, bytes, keyId, signature } = found
      const descriptor = JSON.parse(bytes.toString()) as Record<string, unknown> // an object, made by us
      const { identity } = descriptor
      return {
        object: 'release',
        id: params.sha256,
        locator: { ...(identity as object), legId },
        envelope: envelopeOf(names, { sha256: params.sha256, bytes }, { keyId, signature }),
        descriptor,
      }
    },
  )
}

function showVersion(version: Version, experience: Experience, of: 'test' | 'live'): Static<typeof VersionObject> {
  return {
    object: 'experience_version',
    id: version.publicId,
    environment: of,
    experience_id: experience.publicId,
    version_number: version.versionNumber,
    draft_sha256: version.draftSha256,
    note: version.note,
    created_at: version.createdAt.toISOString(),
  }
}

function showPublication(one: Publication, of: 'test' | 'live'): Static<typeof PublicationObject> {
  return {
    object: 'publication',
    id: one.publicId,
    environment: of,
    experience_id: one.experienceId,
    app_id: one.appId,
    version_id: one.versionId,
    version_number: one.versionNumber,
    build_id: one.buildId,
    published_at: one.publishedAt.toISOString(),
    published_at_seq: one.seq,
    published_by: one.publishedBy,
    status: one.status,
    created_at: one.publishedAt.toISOString(),
  }
}
