import Type, { type Static } from 'typebox'
import type { Pool, Sql } from '../../db/pool.ts'
import {
  build,
  changeState,
  type Experience,
  envelopeOf,
  findVersion,
  freeze,
  getExperience,
  listBuilds,
  listPublications,
  listVersions,
  type PublishServices,
  type StateVerb,
  selectRelease,
  type Version,
} from '../../experiences/index.ts'
import { must } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'
import { targetAppsMax } from '../../kernel/limits.ts'
import { closed, instant, nullableString, oneOf } from '../schema.ts'
import { scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { ExperienceObject, editedExperience, showExperience } from './experiences.ts'
import { activateFor, choices, inFlight, tellOpen } from './in-flight.ts'
import { idsOf, listAnswer, listOf, listQuery, pageOf, wholeList } from './list.ts'
import { byIdOrKey, environment, id, idOrKey, inProject, projectId } from './parts.ts'
import { PublicationObject, showPublication } from './publication-object.ts'
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
    builds: Type.Array(Type.Object({ id: Type.String(), app_id: Type.String(), status: oneOf('ready') }), {
      description: "What it was compiled to, each app's newest first.",
    }),
    issues: Type.Array(Type.Unknown(), { description: 'Empty: what has any is not frozen.' }),
    created_at: instant,
  },
  { title: 'ExperienceVersion' },
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
  /** How many days events are kept. */
  eventRetentionDays: number
  pool: Pool
  clock: Clock
}

export function versions(to: Endpoints, services: VersionServices): void {
  publishing(to, services)
  states(to, services)
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
        in_flight: inFlight,
        note: Type.Optional(Type.String({ maxLength: 500, 'x-storable': true })),
      }),
      answers: { 201: VersionObject, 200: VersionObject },
      errors,
    },
    async (change, { params, query, body }) => {
      const scopes = change.scopes(query.project_id)
      const scope = scopeIn(scopes, await getExperience(change.tx, scopes, params.id))
      const frozen = await freeze(
        change.tx,
        scope,
        params.id,
        { note: body.note ?? null, keptDays: services.eventRetentionDays },
        services,
      )
      const { experience, version, isNew, made } = frozen
      const command = { versionId: version.publicId, appIds: body.app_ids, made }
      if (body.activate === false) await build(change.tx, scope, experience, command, services)
      else {
        const { in_flight: inFlightNow } = body
        await activateFor(
          change,
          scope,
          experience,
          { ...command, inFlight: inFlightNow, ...asked(change, services) },
          services,
        )
        await change.catalogueChanged(scope)
      }
      const after = await showVersion(change.tx, version, experience, scope.environment)
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
      body: closed({ app_ids: appIds, in_flight: inFlight }),
      answers: { 200: listOf(PublicationObject) },
      errors,
    },
    async (change, { params, query, body }) => {
      const scopes = change.scopes(query.project_id)
      const experience = await getExperience(change.tx, scopes, params.id, { lock: true })
      const scope = scopeIn(scopes, experience)
      const { app_ids: named, in_flight: chosen } = body
      const command = { versionId: params.version_id, appIds: named, inFlight: chosen, ...asked(change, services) }
      await activateFor(change, scope, experience, command, services)
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

function states({ post }: Endpoints, { clock }: VersionServices): void {
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
        body: closed(verb === 'archive' ? {} : { app_ids: appIds, ...choices[verb] }),
        answers: { 200: ExperienceObject },
        errors: [404, 409],
      },
      async (change, { params, query, body }) => {
        const named = 'app_ids' in body ? (body.app_ids as string[] | undefined) : undefined // by the schema above
        const scopes = change.scopes(query.project_id)
        const before = await getExperience(change.tx, scopes, params.id, { lock: true })
        const was = await showExperience(change.tx, before, scopeIn(scopes, before))
        const { after, scope } = await changeState(change.tx, scopes, params.id, verb, named)
        const choice = 'in_flight' in body ? String(body.in_flight) : undefined
        await tellOpen(change, after, { verb, choice, appIds: named ?? null, clock })
        await change.catalogueChanged(scope)
        return editedExperience(change, verb, { before: was, after, scope })
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
      const shown = await showVersions(pool, await listVersions(pool, experience, page), {
        experience,
        of: scopeIn(scopes, experience).environment,
      })
      return listAnswer(shown, page, { show: (version) => version, positionOf: (version) => version.id })
    },
  )

  get(
    {
      path: '/experiences/:id/versions/:version_id',
      operationId: 'getVersion',
      tag,
      summary: 'Get a version',
      params: closed({ id: idOrKey, version_id: id }),
      query: inProject,
      answers: { 200: VersionObject },
      errors: [404],
    },
    async (look, { params, query }) => {
      const scopes = look.scopes(query.project_id)
      const experience = await getExperience(pool, scopes, params.id)
      const version = await findVersion(pool, experience, params.version_id)
      if (!version) throw refuse('not_found')
      return showVersion(pool, version, experience, scopeIn(scopes, experience).environment)
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

async function showVersion(
  sql: Sql,
  version: Version,
  experience: Experience,
  of: 'test' | 'live',
): Promise<Static<typeof VersionObject>> {
  return must((await showVersions(sql, [version], { experience, of }))[0], 'one for one')
}

async function showVersions(
  sql: Sql,
  found: Version[],
  { experience, of }: { experience: Experience; of: 'test' | 'live' },
): Promise<Static<typeof VersionObject>[]> {
  const numbers = found.map(({ versionNumber }) => versionNumber)
  const builds = Map.groupBy(await listBuilds(sql, experience, numbers), ({ versionNumber }) => versionNumber)
  return found.map((version) => ({
    object: 'experience_version',
    id: version.publicId,
    environment: of,
    experience_id: experience.publicId,
    version_number: version.versionNumber,
    draft_sha256: version.draftSha256,
    note: version.note,
    builds: (builds.get(version.versionNumber) ?? []).map(({ buildId, appId }) => {
      return { id: buildId, app_id: appId, status: 'ready' }
    }),
    issues: [],
    created_at: version.createdAt.toISOString(),
  }))
}
