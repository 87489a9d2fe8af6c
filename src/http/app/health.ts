import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { oneOf } from '../schema.ts'

/** One named check of readiness. */
export interface Check {
  name: string
  ok: boolean
  detail?: string
}

export interface HealthOptions {
  version: string
  /** Looks at the database, migrations and processing lag; never throws. */
  ready: () => Promise<Check[]>
}

const Ready = Type.Object(
  {
    status: oneOf('ready', 'unready'),
    checks: Type.Array(Type.Object({ name: Type.String(), ok: Type.Boolean(), detail: Type.Optional(Type.String()) })),
  },
  { title: 'Readiness' },
)

/** `GET /health`: liveness only. `GET /ready`: whether this process should get traffic. */
export function health(server: FastifyInstance, { version, ready }: HealthOptions): void {
  server.get('/health', {
    schema: {
      operationId: 'getHealth',
      summary: 'Liveness',
      tags: ['Service'],
      response: { 200: Type.Object({ status: oneOf('ok'), version: Type.String() }) },
    },
    handler: (_request, reply) => reply.send({ status: 'ok', version }),
  })
  server.get('/ready', {
    schema: {
      operationId: 'getReady',
      summary: 'Readiness with named checks',
      tags: ['Service'],
      response: { 200: Ready, 503: Ready },
    },
    handler: async (_request, reply) => {
      const checks = await ready()
      const ok = checks.every((check) => check.ok)
      if (!ok) reply.header('retry-after', '1')
      return reply.code(ok ? 200 : 503).send({ status: ok ? 'ready' : 'unready', checks })
    },
  })
}
