import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import Type from 'typebox'
import { must } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Directory } from '../../tenancy/index.ts'
import { instant, oneOf } from '../schema.ts'
import { appErrors } from './responses.ts'

export const KeyQuery = Type.Object({ apiKey: Type.String({ description: 'Publishable key.' }) })

const Status = Type.Object(
  {
    status: oneOf('ok'),
    app: Type.Object({
      id: Type.String(),
      name: Type.String(),
      appId: Type.String({ description: 'Parent App: the project.' }),
      appPlatformId: Type.String({ description: 'The app of this platform.' }),
      environment: oneOf('test', 'live'),
    }),
    timestamp: instant,
  },
  { title: 'AppStatus' },
)

/** `GET /status`: which app and environment a key belongs to. */
export function status(server: FastifyInstance, { directory, clock }: { directory: Directory; clock: Clock }): void {
  server.get('/status', {
    schema: {
      operationId: 'getStatus',
      summary: 'Check the app configuration of a key',
      tags: ['Service'],
      querystring: KeyQuery,
      response: { 200: Status, ...appErrors(401, 403, 503) },
    },
    handler: async (request, reply) => {
      if (!directory.fresh) throw refuse('service_unavailable', { message: 'The app configuration cannot be checked.' })
      const app = must(request.app, 'the route is authenticated')
      return reply.send({
        status: 'ok',
        app: {
          id: app.appId,
          name: app.appName,
          appId: app.projectId,
          appPlatformId: app.appId,
          environment: app.environment,
        },
        timestamp: new Date(clock.now()).toISOString(),
      } satisfies Static<typeof Status>)
    },
  })
}
