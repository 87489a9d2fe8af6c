import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { unavailable } from '../db/pool.ts'
import { parseJsonObject } from './body.ts'

/** What stores send when something happened to a purchase. */
export interface WebhookServices {
  receiveAppStore: (call: { appId: string; body: unknown }) => Promise<void>
  receivePlay: (call: { appId: string; bearer: string | null; body: unknown }) => Promise<void>
  receiveCard: (call: {
    appId: string
    signature: string | null
    raw: Buffer
    body: Record<string, unknown>
  }) => Promise<void>
}

const params = Type.Object({ app_id: Type.String({ minLength: 1, maxLength: 64 }) })

/**
 * One address for each app and store, for both environments. A notification is stored and answered; what follows from it is
 * done afterwards. Stores send again whatever is answered with anything but 2xx, so our own faults are 503.
 */
export function webhooks(server: FastifyInstance, services: WebhookServices): void {
  const { receiveAppStore, receivePlay } = services
  server.post<{ Params: { app_id: string } }>('/webhooks/appstore/:app_id', {
    schema: { hide: true, params },
    handler: async (request, reply) => {
      await take(receiveAppStore({ appId: request.params.app_id, body: request.body }))
      return reply.code(200).send('{}')
    },
  })
  server.post<{ Params: { app_id: string } }>('/webhooks/playstore/:app_id', {
    schema: { hide: true, params },
    handler: async (request, reply) => {
      const [, bearer = null] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? []
      await take(receivePlay({ appId: request.params.app_id, bearer, body: request.body }))
      return reply.code(204).send()
    },
  })
  server.register(async (signed) => cardWebhook(signed, services))
}

/** Stripe signs the bytes of the body: they are kept as they came. */
function cardWebhook(server: FastifyInstance, { receiveCard }: WebhookServices): void {
  server.removeContentTypeParser('application/json')
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  server.post<{ Params: { app_id: string }; Body: Buffer | undefined }>('/webhooks/stripe/:app_id', {
    schema: { hide: true, params },
    handler: async (request, reply) => {
      const { 'stripe-signature': header } = request.headers
      const signature = typeof header === 'string' ? header : null
      const raw = request.body ?? Buffer.alloc(0)
      await take(receiveCard({ appId: request.params.app_id, signature, raw, body: parseJsonObject(raw) }))
      return reply.code(200).send('{}')
    },
  })
}

async function take(receiving: Promise<void>): Promise<void> {
  try {
    await receiving
  } catch (error) {
    throw unavailable(error, 'service_unavailable')
  }
}
