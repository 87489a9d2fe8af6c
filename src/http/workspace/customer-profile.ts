import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { refuse } from '../../kernel/errors.ts'
import { bytesOf, type Explained, type Profiles } from '../../profiles/index.ts'
import { type App, getApp, listApps, type Scope } from '../../tenancy/index.ts'
import { closed, instant, nullable, nullableString, oneOf } from '../schema.ts'
import { nullableInstantOf } from './amount.ts'
import { findCustomer } from './customers.ts'
import type { Endpoints } from './endpoint.ts'
import { byId, id } from './parts.ts'

const newReason = oneOf(
  ...['customer_paused', 'not_published', 'experience_paused', 'platform_not_built', 'server_enrolled'],
  ...['release_unverified', 'segment_state', 'eligibility', 'frequency', 'limit_arms', 'limit_bytes'],
)
const continueReason = oneOf(
  ...['not_armed', 'other_app', 'held', 'release_unverified', 'input_missing', 'limit_arms', 'limit_bytes'],
)

const CustomerProfileObject = Type.Object(
  {
    object: Type.Literal('customer_profile'),
    profile: Type.Unknown({ description: 'As the app would be given it now.' }),
    etag: Type.String({ description: 'Of these very bytes.' }),
    valid_until: nullable(Type.Unsafe<string>({ ...instant, description: 'When time alone may next change it.' })),
    experiences: Type.Array(
      Type.Object({
        experience_id: Type.String(),
        armed: Type.Boolean({ description: 'A new journey is offered.' }),
        reason: nullable(newReason),
        detail: Type.Unsafe<string | null>({
          ...nullableString,
          description: 'What decided, such as the time of the last enrolment.',
        }),
        binding: nullable(Type.Object({ type: oneOf('new') })),
        checks: Type.Array(Type.Object({ check: newReason, passed: Type.Boolean(), detail: nullableString }), {
          description: 'In their order, up to the first that fails.',
        }),
      }),
    ),
    journeys: Type.Array(
      Type.Object({
        journey_id: Type.String(),
        status: Type.String(),
        armed: Type.Boolean(),
        reason: nullable(continueReason),
      }),
      { description: 'Those that have not ended.' },
    ),
  },
  { title: 'CustomerProfile' },
)

export interface CustomerProfileServices {
  pool: Pool
  profiles: Profiles
}

export function customerProfile({ get }: Endpoints, { pool, profiles }: CustomerProfileServices): void {
  get(
    {
      path: '/customers/:id/profile',
      operationId: 'explainProfile',
      tag: 'Customers',
      summary: "Explain a customer's profile",
      description:
        'The profile that the app would be given, made by the same function, and of every Experience and open journey whether it is armed and why not. Nothing is written.',
      params: byId,
      query: closed({
        app_id: Type.Optional({ ...id, description: 'May be left out where the project has one app.' }),
        locale: Type.Optional(Type.String({ maxLength: 128 })),
        experience_id: Type.Optional(id),
      }),
      answers: { 200: CustomerProfileObject },
      errors: [404],
    },
    async (look, { params, query }) => {
      const { customer, scope } = await findCustomer(pool, look.scopes(), params.id)
      const { platform, id: appId } = await appOf(pool, scope, query.app_id)
      const asked = { appId, platform, locale: query.locale ?? null }
      return show(await profiles.explain(scope, customer.id, asked), query.experience_id)
    },
  )
}

/** The named one, or the only one. */
async function appOf(
  pool: Pool,
  { workspaceId, environment, projectId }: Scope,
  appId: string | undefined,
): Promise<App> {
  if (appId !== undefined) {
    const app = await getApp(pool, workspaceId, environment, appId)
    if (app.projectId !== projectId) throw refuse('not_found', { param: 'app_id' })
    return app
  }
  const [only, ...others] = await listApps(pool, workspaceId, environment, {
    projectId,
    page: { limit: 2, after: null },
  })
  if (!only || others.length > 0) {
    throw refuse('invalid_request', { param: 'app_id', message: 'Say which app: the project has none, or several.' })
  }
  return only
}

/** All of them, or one Experience and its journeys. */
function show(
  { body, tag, validUntil, trace }: Explained,
  only: string | undefined,
): Static<typeof CustomerProfileObject> {
  const isAsked = (experienceId: string | null) => only === undefined || experienceId === only
  const experiences = [...trace.experiences].filter(([experienceId]) => isAsked(experienceId))
  const journeys = [...trace.journeys].filter(([, { experienceId }]) => isAsked(experienceId))
  if (only !== undefined && experiences.length === 0) throw refuse('not_found', { param: 'experience_id' })
  return {
    object: 'customer_profile',
    profile: JSON.parse(bytesOf(body).toString()),
    etag: tag,
    valid_until: nullableInstantOf(validUntil),
    experiences: experiences.map(([experienceId, { reason, detail, checks }]) => {
      const armed = reason === null
      return { experience_id: experienceId, armed, reason, detail, binding: armed ? { type: 'new' } : null, checks }
    }),
    journeys: journeys.map(([journeyId, { status, reason }]) => {
      return { journey_id: journeyId, status, armed: reason === null, reason }
    }),
  }
}
