import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import Type from 'typebox'
import type { IntroOffer, OfferQuestion } from '../../journeys/index.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { introFieldBytesMax } from '../../kernel/limits.ts'
import type { IntroQuestion } from '../../purchases/index.ts'
import type { AppScope } from '../../tenancy/index.ts'
import { closed, customerId } from '../schema.ts'
import { appErrors } from './responses.ts'

const field = (description: string) =>
  Type.String({ minLength: 1, 'x-bytes-max': introFieldBytesMax, 'x-storable': true, description })
const digest = (description: string) => Type.String({ pattern: '^[a-f0-9]{64}$', description })

const Body = closed({
  apiKey: Type.String({ description: 'Publishable key of an iOS app.' }),
  distinctId: customerId,
  journeyId: field('The journey that sells; one that was not reported yet included.'),
  experienceVersionId: field('The published version that the leg is of.'),
  legId: digest('Lower-case hex SHA-256.'),
  descriptorSha256: digest('Of the release that the device runs.'),
  placementId: field('The placement of the offer.'),
  transactionId: field('Transaction that the App Store knows the device by.'),
})

const Token = Type.Object({ token: Type.String() }, { title: 'IntroEligibility' })

export interface IntroEligibilityOptions {
  /** The record that an id names by now. Throws `customer_deleted`. */
  whose: (query: { scope: AppScope; distinctId: string }) => Promise<{ customerId: string | undefined }>
  introOffer: (question: OfferQuestion) => Promise<IntroOffer | null>
  introToken: (question: IntroQuestion) => Promise<string>
}

/** `POST /app-store/intro-eligibility`: the signed decision about an introductory offer. */
export function introEligibility(server: FastifyInstance, options: IntroEligibilityOptions): void {
  server.post<{ Body: Static<typeof Body> }>('/app-store/intro-eligibility', {
    schema: {
      operationId: 'decideIntroEligibility',
      summary: 'Sign whether an introductory offer is allowed',
      description:
        'For placements whose author has decided it: product and decision are those of the signed release. Everything that does not fit, whatever it is, is the same 404.',
      tags: ['Purchases'],
      body: Body,
      response: { 200: Token, ...appErrors(400, 401, 403, 404, 410, 413, 429, 503) },
    },
    handler: async (request, reply) => {
      const scope = must(request.app, 'the route is authenticated')
      const { distinctId, journeyId, experienceVersionId, legId, descriptorSha256, placementId, transactionId } =
        request.body
      const { customerId: id } = await options.whose({ scope, distinctId })
      if (scope.platform !== 'ios' || id === undefined) throw refuse('not_found')
      const asked = { scope, customerId: id, journeyId, legId, placementId }
      const place = { appId: scope.appId, versionId: experienceVersionId, descriptorSha256 }
      const offer = await options.introOffer({ ...asked, ...place })
      if (!offer) throw refuse('not_found')
      const token = await options.introToken({ ...asked, ...offer, transactionId })
      return reply.header('cache-control', 'no-store').send({ token } satisfies Static<typeof Token>)
    },
  })
}
