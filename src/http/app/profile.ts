import { hash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { LRUCache } from 'lru-cache'
import type { Static } from 'typebox'
import Type from 'typebox'
import { activeFeatures, type Catalogues, type Standing, type Versions } from '../../entitlements/index.ts'
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
  standing: (query: { scope: Scope; customerId: string }) => Promise<Standing>
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
      const ifNoneMatch = request.headers['if-none-match']
      const catalogue = await catalogues.get(scope)
      const known = await versions({ scope, distinctId: request.body.distinct_id })
      const vector = `${catalogue.revision}.${known.vector}`
      const key = `${scope.appId} ${scope.environment} ${known.customerId}`

      let current = tags.get(key)
      let bytes: Buffer | undefined
      if (!current || current.vector !== vector || known.now >= current.validUntil) {
        const found =
          known.customerId === undefined ? nobody(known) : await standing({ scope, customerId: known.customerId })
        const { features, validUntil } = activeFeatures(catalogue, scope.platform, found)
        bytes = assemble(options, features)
        current = { tag: tagOf(bytes), vector, validUntil: validUntil ?? Number.POSITIVE_INFINITY }
        if (known.customerId !== undefined) tags.set(key, current)
      }

      marks.appConnected(scope)
      reply
        .header(names.appIdHeader, scope.appId)
        .header(names.appEnvironmentHeader, scope.environment)
        .header('cache-control', 'private, no-cache')
      const sent = matchingTag(ifNoneMatch, current.tag)
      if (sent !== undefined) return reply.code(304).header('etag', sent).send()
      if (!bytes) bytes = await currentBytes(options, scope, known)
      return reply.header('etag', tagOf(bytes)).header('content-type', 'application/json; charset=utf-8').send(bytes)
    },
  })
}

/** The tag was known but the caller has another one: the body is made afresh, as it is now. */
async function currentBytes(options: ProfileOptions, scope: AppScope, known: Versions): Promise<Buffer> {
  const { catalogues, standing } = options
  const customerId = must(known.customerId, 'tags are kept of customers only')
  const found = await standing({ scope, customerId })
  return assemble(options, activeFeatures(await catalogues.get(scope), scope.platform, found).features)
}

function nobody({ now }: Versions): Standing {
  return { now, accounts: new Map() }
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
