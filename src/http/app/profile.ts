import type { Static } from 'typebox'
import Type from 'typebox'
import type { WireNames } from '../../kernel/wire-names.ts'
import type { Profiles } from '../../profiles/index.ts'
import type { Marks } from '../../tenancy/index.ts'
import { ok } from '../answer.ts'
import { customerId, oneOf } from '../schema.ts'
import { matchingTag } from './if-none-match.ts'
import type { Operation } from './operation.ts'
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
export function profile({ profiles, marks, names }: ProfileOptions): Operation<Static<typeof Body>> {
  const headers = {
    ETag: Type.String({ description: 'Names these very bytes.' }),
    [names.appIdHeader]: Type.String({ description: 'The app of the key.' }),
    [names.appEnvironmentHeader]: oneOf('test', 'live'),
  }

  // Lower-case, as the framework writes what goes through it.
  const [appIdHeader, appEnvironmentHeader] = [
    names.appIdHeader.toLowerCase(),
    names.appEnvironmentHeader.toLowerCase(),
  ]

  return {
    path: '/profile',
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
    run: async ({ app, body: { distinct_id: distinctId, locale = null }, ifNoneMatch }) => {
      // A tag is worth the cheap question first; without one the whole is needed anyway.
      let tag = ifNoneMatch === undefined ? undefined : await profiles.knownTag(app, distinctId, locale)
      let made: Awaited<ReturnType<Profiles['get']>> | undefined
      if (tag === undefined || matchingTag(ifNoneMatch, tag) === undefined) {
        made = await profiles.get(app, distinctId, locale)
        tag = made.tag
      }

      marks.appConnected(app)
      const sent = matchingTag(ifNoneMatch, tag)
      const common = {
        [appIdHeader]: app.appId,
        [appEnvironmentHeader]: app.environment,
        'cache-control': 'private, no-cache',
        etag: sent ?? tag,
      }
      if (sent !== undefined || made === undefined) return { status: 304, headers: common }
      return ok(made.body, common)
    },
  }
}
