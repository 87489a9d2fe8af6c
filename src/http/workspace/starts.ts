import Type, { type Static } from 'typebox'
import { byDistinctId, wireCustomerId } from '../../customers/index.ts'
import type { Pool } from '../../db/pool.ts'
import { cleanJson, type JsonObject } from '../../events/index.ts'
import { findVersion, getExperience, listVersions } from '../../experiences/index.ts'
import { funnelOf, listStarts, type StartExperience, type StartRecord } from '../../journeys/index.ts'
import { Refusal, refuse } from '../../kernel/errors.ts'
import { startContextBytesMax } from '../../kernel/limits.ts'
import { getApp, type Scope } from '../../tenancy/index.ts'
import { closed, customerId, instant, nullableString, oneOf } from '../schema.ts'
import { instantOf } from './amount.ts'
import { type Caller, scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byIdOrKey, environment, id, projectId } from './parts.ts'

const ExperienceStart = Type.Object(
  {
    object: Type.Literal('experience_start'),
    experience_id: Type.String(),
    journey_id: Type.Unsafe<string | null>({ ...nullableString, description: 'Null when ineligible.' }),
    status: oneOf('started', 'coalesced', 'ineligible'),
  },
  { title: 'ExperienceStart' },
)

const StartRecordObject = Type.Object(
  {
    object: Type.Literal('experience_start_record'),
    id: Type.String(),
    environment,
    experience_id: Type.String(),
    app_id: Type.String(),
    customer_id: Type.String(),
    key: Type.String({
      description:
        '`api:` and the Idempotency-Key, `evt:` and an event, `seg:` and a change of a Segment: what can begin one journey only.',
    }),
    status: oneOf('started', 'ineligible'),
    reason: Type.Unsafe<string | null>({
      ...nullableString,
      description:
        'Of an ineligible one: customer_paused, experience_paused, eligibility, held_out, frequency or input_missing.',
    }),
    journey_id: nullableString,
    created_at: instant,
  },
  { title: 'ExperienceStartRecord' },
)

const FunnelObject = Type.Object(
  {
    object: Type.Literal('funnel'),
    environment,
    experience_id: Type.String(),
    version_id: Type.String(),
    sections: Type.Array(
      Type.Object({
        section_key: Type.String(),
        armed: Type.Integer({ description: 'Legs offered, or begun by a device.' }),
        started: Type.Integer(),
        outcomes: Type.Record(Type.String(), Type.Integer()),
      }),
    ),
  },
  { title: 'Funnel' },
)

const tag = 'Journeys'
/** 1 to 255 visible ASCII characters. */
const keyPattern = /^[\x21-\x7e]{1,255}$/

export interface StartServices {
  pool: Pool
  start: StartExperience
}

export function starts({ get, command }: Endpoints, { pool, start }: StartServices): void {
  command(
    {
      path: '/experiences/:id/start',
      operationId: 'startExperience',
      tag,
      summary: 'Start an Experience for a customer',
      description:
        'The Experience is live in the app and has the trigger `api`. An `Idempotency-Key` of 1 to 255 visible ASCII ' +
        'characters makes it once for this customer, app and Experience, and is kept for 400 days: a repetition is ' +
        '`coalesced`, or `ineligible` as it was. Without one each request is a start of its own. `ineligible` is no ' +
        'error: `GET /experiences/{id}/starts` tells why.',
      params: byIdOrKey,
      body: closed({
        app_id: id,
        distinct_id: customerId,
        context: Type.Optional(
          Type.Record(Type.String(), Type.Unknown(), {
            description: 'What the Experience reads as its trigger event, at most 64 KiB.',
          }),
        ),
      }),
      answers: { 202: ExperienceStart },
      errors: [404, 410],
    },
    async (ask, { params, body }) => {
      const key = ask.header('idempotency-key')
      if (key !== undefined && !keyPattern.test(key)) {
        const message = 'Idempotency-Key must have 1 to 255 visible ASCII characters'
        throw refuse('invalid_request', { param: 'Idempotency-Key', message })
      }
      const scope = await scopeOfApp(pool, ask, body.app_id)
      const { experienceId, journeyId, status } = await start({
        ...{ scope, experience: params.id, appId: body.app_id, distinctId: body.distinct_id, key },
        context: contextOf(body.context ?? {}),
      })
      const answer: Static<typeof ExperienceStart> = {
        ...{ object: 'experience_start', experience_id: experienceId, journey_id: journeyId, status },
      }
      return { status: 202, body: answer }
    },
  )

  get(
    {
      path: '/experiences/:id/starts',
      operationId: 'listExperienceStarts',
      tag,
      summary: "List an Experience's starts",
      description: 'By the server, newest first: what began a journey, and why others did not.',
      params: byIdOrKey,
      query: closed({ ...listQuery, project_id: projectId, distinct_id: Type.Optional(customerId) }),
      answers: { 200: listOf(StartRecordObject) },
      errors: [404],
    },
    async (look, { params, query }) => {
      const page = pageOf(query, /^[0-9]{1,18}$/)
      const scopes = look.scopes(query.project_id)
      const experience = await getExperience(pool, scopes, params.id)
      const scope = scopeIn(scopes, experience)
      const customer = query.distinct_id === undefined ? null : await byDistinctId(pool, scope, query.distinct_id)
      const found =
        query.distinct_id !== undefined && customer === null
          ? []
          : await listStarts(pool, experience, customer?.id ?? null, page)
      return listAnswer(found, page, {
        show: (one) => showRecord(one, experience.publicId, scope),
        positionOf: (one) => one.id,
      })
    },
  )

  get(
    {
      path: '/experiences/:id/funnel',
      operationId: 'getExperienceFunnel',
      tag,
      summary: "Count an Experience's legs",
      description: 'Of one version, the newest unless named: versions stay apart.',
      params: byIdOrKey,
      query: closed({ project_id: projectId, version_id: Type.Optional(id) }),
      answers: { 200: FunnelObject },
      errors: [404],
    },
    async (look, { params, query }) => {
      const scopes = look.scopes(query.project_id)
      const experience = await getExperience(pool, scopes, params.id)
      const named = query.version_id
      const version =
        named === undefined
          ? (await listVersions(pool, experience, { limit: 1, after: null }))[0]
          : await findVersion(pool, experience, named)
      if (!version) throw refuse('not_found', { param: 'version_id' })
      const sections = await funnelOf(pool, experience, version.versionNumber)
      const answer: Static<typeof FunnelObject> = {
        object: 'funnel',
        environment: scopeIn(scopes, experience).environment,
        experience_id: experience.publicId,
        version_id: version.publicId,
        sections: sections.map(({ sectionKey, armed, started, outcomes }) => ({
          ...{ section_key: sectionKey, armed, started, outcomes },
        })),
      }
      return answer
    },
  )
}

/** An app that the caller's workspace has; its project is where the Experience lies. */
async function scopeOfApp(
  pool: Pool,
  { caller, scope }: { caller: Caller; scope: (projectId: string) => Scope },
  appId: string,
): Promise<Scope> {
  const app = await getApp(pool, caller.workspaceId, caller.environment, appId).catch(withParam)
  return scope(app.projectId)
}

function withParam(error: unknown): never {
  throw error instanceof Refusal ? refuse('not_found', { param: 'app_id' }) : error
}

/** A refusal is thrown when its turn comes: whether the Experience can be started is told first. */
function contextOf(context: Record<string, unknown>): JsonObject | Refusal {
  if (Buffer.byteLength(JSON.stringify(context)) > startContextBytesMax) {
    return refuse('invalid_request', { param: 'context', message: 'context must be at most 64 KiB' })
  }
  const cleaned = cleanJson(context as JsonObject, 'context') // parsed from JSON
  if (cleaned.ok) return cleaned.value
  const { path, message } = cleaned.issue
  return refuse('invalid_request', { param: 'context', issues: [{ path, message }] })
}

function showRecord(one: StartRecord, experienceId: string, scope: Scope): Static<typeof StartRecordObject> {
  return {
    object: 'experience_start_record',
    id: `start_${one.id}`,
    environment: scope.environment,
    experience_id: experienceId,
    app_id: one.appId,
    customer_id: wireCustomerId(one.customerId),
    key: one.key,
    status: one.status,
    reason: one.reason,
    journey_id: one.journeyId,
    created_at: instantOf(one.at),
  }
}
