import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { type EventLog, takeBatch } from '../../events/index.ts'
import { must } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'
import { batchBodyBytesMax, batchItemsMax } from '../../kernel/limits.ts'
import { oneOf } from '../schema.ts'
import { eventFields } from './event-fields.ts'
import { appErrors } from './responses.ts'

export interface BatchOptions {
  clock: Clock
  appendBatch: EventLog['appendBatch']
}

export const BatchReply = Type.Object(
  {
    status: oneOf('success', 'partial', 'error'),
    accepted: Type.Integer(),
    processed: Type.Integer({ description: 'Alias of `accepted`.' }),
    failed: Type.Integer(),
    total: Type.Integer(),
    queued: Type.Boolean(),
    validationFailed: Type.Integer(),
    rejectedFailed: Type.Integer(),
    enqueueFailed: Type.Optional(Type.Integer()),
    eventIds: Type.Optional(Type.Array(Type.String())),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          index: Type.Integer(),
          event: Type.String(),
          error: Type.String(),
          lane: Type.Optional(Type.String()),
          endpoint: Type.Optional(Type.String()),
        }),
      ),
    ),
  },
  { title: 'BatchResult' },
)

const documentedBody = Type.Object({
  apiKey: Type.String(),
  batch: Type.Array(Type.Object(eventFields, { title: 'Event' }), { minItems: 1, maxItems: batchItemsMax }),
  historical_migration: Type.Optional(
    Type.Boolean({ description: 'Sorts an import by timestamp; leave unset otherwise.' }),
  ),
})

/** `POST /batch`: 1 to 1,000 gzip-compressed events; each is judged by itself, the valid ones are stored together. */
export function batch(server: FastifyInstance, { clock, appendBatch }: BatchOptions): void {
  server.post<{ Body: Record<string, unknown> }>('/batch', {
    bodyLimit: batchBodyBytesMax,
    config: { gzip: 'required', documentedBody },
    schema: {
      operationId: 'recordBatch',
      summary: 'Record a batch of events',
      description:
        'Body compressed with gzip. Accepted items are stored even when others fail: read `errors`. Retry with the same UUIDs.',
      tags: ['Events'],
      response: { 200: BatchReply, ...appErrors(400, 401, 403, 413, 503) },
    },
    handler: async (request, reply) => {
      const scope = must(request.app, 'the route is authenticated')
      const { items, historical } = read(request.body)
      const receipt = { receivedAt: clock.now(), trust: 'device', stream: historical ? 'historical' : 'live' } as const
      return reply.send(await takeBatch(appendBatch, scope, items, receipt))
    },
  })
}

function read(body: Record<string, unknown>): { items: unknown[]; historical: boolean } {
  const { batch: items, historical_migration: historical = null } = body
  if (!Array.isArray(items) || items.length < 1 || items.length > batchItemsMax) {
    throw wrong('batch', `must be an array of 1 to ${batchItemsMax} events`)
  }
  if (historical !== null && typeof historical !== 'boolean') throw wrong('historical_migration', 'must be a boolean')
  return { items, historical: historical === true }
}

function wrong(path: string, message: string) {
  return refuse('invalid_request', { message: `${path} ${message}`, issues: [{ path, message }] })
}
