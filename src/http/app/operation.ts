import type { FastifyContextConfig, FastifyInstance, FastifySchema } from 'fastify'
import { must } from '../../kernel/assert.ts'
import type { AppScope } from '../../tenancy/index.ts'
import { type Answer, sendAnswer } from '../answer.ts'

/**
 * A hot operation of the App API: `POST` with a JSON body. It knows neither the framework nor the socket, since it is
 * answered through either: see ../plain.
 */
export interface Operation<Body = never> {
  path: string
  bodyLimit?: number
  config?: FastifyContextConfig
  schema: FastifySchema
  run: (call: Call<Body>) => Promise<Answer>
}

export interface Call<Body = unknown> {
  app: AppScope
  /** As `schema.body` allows; any object where the operation judges it. */
  body: Body
  requestId: string
  ifNoneMatch: string | undefined
}

/** As a route of the framework, which answers whatever is not a plain request. */
export function addOperation(server: FastifyInstance, operation: Operation): void {
  const { path, schema, run, ...options } = operation
  server.post(path, {
    ...options,
    schema,
    handler: async (request, reply) => {
      const answer = await run({
        app: must(request.app, 'the route is authenticated'),
        body: request.body as never, // validated, or judged by the operation
        requestId: request.id,
        ifNoneMatch: request.headers['if-none-match'],
      })
      return sendAnswer(reply, answer)
    },
  })
}
