import { hash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { LRUCache } from 'lru-cache'
import type { Static } from 'typebox'
import Type from 'typebox'
import {
  activeFeatures,
  type Catalogue,
  type Catalogues,
  type Versions,
  type WholeStanding,
  type Whose,
} from '../../entitlements/index.ts'
import { must } from '../../kernel/assert.ts'
import { profileTagsMax } from '../../kernel/limits.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import type { AppScope, Marks, Scope } from '../../tenancy/index.ts'
import { customerId, nullableNumber, oneOf } from '../schema.ts'
import { matchingTag } from './if-none-match.ts'
import { appErrors } from './responses.ts'

const Body = Type.Object({
  apiKey: Type.String({ description: 'Publishable key.' }),
  distinct_id: customerId,
  locale: Type.Optional(Type.Union([Type.String({ maxLength: 128 }), Type.Null()])),
})

const profileFields = {
  schemaVersion: Type.String(),
  status: oneOf('ok'),
  delivery: Type.Object({ renderBaseUrl: Type.String(), assetBaseUrl: Type.String() }),
  features: Type.Array(
    Type.Object({
      id: Type.String(),
      type: oneOf('boolean', 'metered', 'creditSystem'),
      balance: nullableNumber,
      unlimited: Type.Boolean(),
      nextResetAt: Type.Null(),
      interval: Type.Null(),
    }),
  ),
  facts: Type.Object({
    properties: Type.Record(Type.String(), Type.Unknown()),
    memberships: Type.Record(Type.String(), Type.Unknown()),
    assignments: Type.Record(Type.String(), Type.Unknown()),
  }),
  armedLegs: Type.Array(Type.Unknown()),
  releases: Type.Array(Type.Unknown()),
}

export interface ProfileOptions {
  versions: (query: { scope: Scope; distinctId: string }) => Promise<Versions>
  standing: (query: Whose) => Promise<WholeStanding>
  catalogues: Catalogues
  marks: Marks
  names: WireNames
  renderBaseUrl: string
  assetBaseUrl: string
}

/** What is kept of a profile: its tag and what must be unchanged for it to hold. Never customer state. */
interface KnownTag {
  tag: string
  vector: string
  validUntil: number
}

/** `POST /profile`: the customer's Features, facts, armed legs and releases, with a tag over the exact bytes. */
export function profile(server: FastifyInstance, options: ProfileOptions): void {
  const { versions, standing, catalogues, marks, names } = options
  const tags = new LRUCache<string, KnownTag>({ max: profileTagsMax })
  const headers = {
    ETag: Type.String({ description: 'Names these very bytes.' }),
    [names.appIdHeader]: Type.String({ description: 'The app of the key.' }),
    [names.appEnvironmentHeader]: oneOf('test', 'live'),
  }

  server.post<{ Body: Static<typeof Body> }>('/profile', {
    schema: {
      operationId: 'getProfile',
      summary: 'Customer state and signed releases',
      description: 'Send the last `ETag` as `If-None-Match`: an unchanged profile is a 304 without a body.',
      tags: ['Profile'],
      headers: Type.Object({ 'If-None-Match': Type.Optional(Type.String({ description: 'The last `ETag`.' })) }),
      body: Body,
      response: {
        200: Type.Object(profileFields, { title: 'Profile', description: 'The profile.', headers }),
        304: Type.Null({ description: 'Unchanged; keep the profile you have.', headers }),
        ...appErrors(400, 401, 403, 410, 413, 503),
      },
    },
    handler: async (request, reply) => {
      const scope = must(request.app, 'the route is authenticated')
      const catalogue = catalogues.current(scope) ?? (await catalogues.load(scope))
      const ifNoneMatch = request.headers['if-none-match']
      const query = { scope, distinctId: request.body.distinct_id }

      // A tag is worth the cheap question first; without one the whole is needed anyway.
      const known = ifNoneMatch === undefined ? undefined : knownTag(await versions(query), scope, catalogue)
      let tag = known?.tag
      let bytes: Buffer | undefined
      if (tag === undefined || matchingTag(ifNoneMatch, tag) === undefined) {
        const whole = await standing(query)
        const { features, validUntil } = activeFeatures(catalogue, scope.platform, whole)
        bytes = assemble(options, features)
        tag = tagOf(bytes)
        remember(whole, scope, catalogue, { tag, validUntil: validUntil ?? Number.POSITIVE_INFINITY })
      }

      marks.appConnected(scope)
      reply
        .header(names.appIdHeader, scope.appId)
        .header(names.appEnvironmentHeader, scope.environment)
        .header('cache-control', 'private, no-cache')
      const sent = matchingTag(ifNoneMatch, tag)
      if (sent !== undefined) return reply.code(304).header('etag', sent).send()
      return reply.header('etag', tag).header('content-type', 'application/json; charset=utf-8').send(bytes)
    },
  })

  /** The tag of the last profile, if nothing was written since and time has not changed it. */
  function knownTag(now: Versions, scope: AppScope, catalogue: Catalogue): KnownTag | undefined {
    const known = tags.get(keyOf(scope, now))
    const holds = known !== undefined && known.vector === vectorOf(catalogue, now) && now.now < known.validUntil
    return holds ? known : undefined
  }

  function remember(whole: WholeStanding, scope: AppScope, catalogue: Catalogue, tag: Omit<KnownTag, 'vector'>): void {
    if (whole.customerId !== undefined) tags.set(keyOf(scope, whole), { ...tag, vector: vectorOf(catalogue, whole) })
  }
}

function keyOf({ appId, environment }: AppScope, { customerId }: Versions): string {
  return `${appId} ${environment} ${customerId}`
}

function vectorOf({ revision }: Catalogue, { vector }: Versions): string {
  return `${revision}.${vector}`
}

/** Keys in fixed order, no clock, no request id: equal content has equal bytes. */
function assemble({ names, renderBaseUrl, assetBaseUrl }: ProfileOptions, features: unknown[]): Buffer {
  return Buffer.from(
    JSON.stringify({
      schemaVersion: names.profileSchema,
      status: 'ok',
      delivery: { renderBaseUrl, assetBaseUrl },
      features,
      facts: { properties: {}, memberships: {}, assignments: {} },
      armedLegs: [],
      releases: [],
    }),
  )
}

function tagOf(bytes: Buffer): string {
  return `"${hash('sha256', bytes, 'base64url')}"`
}
