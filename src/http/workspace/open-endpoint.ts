import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Static, TSchema } from 'typebox'
import { type Pool, unavailable } from '../../db/pool.ts'
import { refuse } from '../../kernel/errors.ts'
import { attemptsMax, attemptsWindowMs } from '../../kernel/limits.ts'
import { type Allowance, attempt } from '../../tenancy/index.ts'
import { closed } from '../schema.ts'
import { workspaceErrors } from './responses.ts'
import type { Answer } from './route.ts'

/** An operation for people who have no session yet. */
export interface OpenEndpoint<Body extends TSchema> {
  path: string
  operationId: string
  tag: string
  summary: string
  description?: string
  body: Body
  answers: Record<number, TSchema>
  errors?: number[]
}

export type OpenPost = <Body extends TSchema>(
  endpoint: OpenEndpoint<Body>,
  handler: (body: Static<Body>, caller: { address: string }) => Promise<Answer>,
) => void

/**
 * Registers operations that nobody has to sign in for. Each is tried at most ten times in a quarter of an hour from one
 * address, and for one e-mail where the body names one: so passwords can't be guessed, nor mailboxes filled.
 */
export function openEndpoints(server: FastifyInstance, { pool }: { pool: Pool }): OpenPost {
  return ({ path, operationId, tag, summary, description, body, answers, errors = [] }, handler) => {
    server.post(
      path,
      {
        schema: {
          operationId,
          summary,
          tags: [tag],
          security: [],
          ...(description === undefined ? {} : { description }),
          querystring: closed({}),
          body,
          response: { ...answers, ...workspaceErrors(400, 413, ...errors, 429, 503) },
        },
      },
      async (request, reply) => {
        const sent = request.body as Static<typeof body> & { email?: string } // held against its schema
        const who = { address: request.ip, email: sent.email }
        const limit = { max: attemptsMax, windowMs: attemptsWindowMs }
        const counted = await attempt(pool, operationId, who, limit)
        tell(reply, counted)
        if (!counted.allowed) throw refuse('rate_limited', { retryAfterS: counted.resetsInS })
        const answer = await handler(sent, { address: request.ip }).catch((error: unknown) => {
          throw unavailable(error, 'service_unavailable')
        })
        const text = JSON.stringify(answer.body)
        return reply.code(answer.status).header('content-type', 'application/json; charset=utf-8').send(text)
      },
    )
  }
}

function tell(reply: FastifyReply, { limit, remaining, resetsInS }: Allowance): void {
  reply
    .header('ratelimit-limit', String(limit))
    .header('ratelimit-remaining', String(remaining))
    .header('ratelimit-reset', String(resetsInS))
}
