import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import Type from 'typebox'
import { must } from '../../kernel/assert.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import type { Profiles } from '../../profiles/index.ts'
import type { Marks } from '../../tenancy/index.ts'
import { customerId, oneOf } from '../schema.ts'
import { matchingTag } from './if-none-match.ts'
import { profileFields } from './profile-fields.ts'
import { appErrors } from './responses.ts'

const Body = Type.Object({
  apiKey: Type.String({ description: 'Publishable key.' }),
  distinct_id: customerId,
  locale: Type.Optional(
    Type.Union([Type.String({ maxLength: 128 }), Type.Null()], {
      description: 'A language tag. Releases are those of the tag, else of its language, else of the default locale.',
    }),
  ),
})

export interface ProfileOptions {
  profiles: Profiles
  marks: Marks
  names: WireNames
}

/** `POST /profile`: the customer's Features, facts, armed legs and releases, with a tag over the exact bytes. */
export function profile(server: FastifyInstance, { profiles, marks, names }: ProfileOptions): void {
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
      const { distinct_id: distinctId, locale = null } = request.body

      // A tag is worth the cheap question first; without one the whole is needed anyway.
      let tag = ifNoneMatch === undefined ? undefined : await profiles.knownTag(scope, distinctId, locale)
      let bytes: Buffer | undefined
      if (tag === undefined || matchingTag(ifNoneMatch, tag) === undefined) {
        const made = await profiles.get(scope, distinctId, locale)
        tag = made.tag
        bytes = made.bytes
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
}
