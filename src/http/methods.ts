import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods, RouteOptions } from 'fastify'
import { refuse } from '../kernel/errors.ts'
import { sendRefusal, styleOf } from './errors.ts'

const methods: HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']

/**
 * Notes every route added from here on. The returned function, called when all are there, answers the other methods of
 * each path with 405 and `Allow`.
 */
export function refuseOtherMethods(server: FastifyInstance): () => void {
  const known = new Map<string, Set<string>>()
  server.addHook('onRoute', (route: RouteOptions) => {
    const allowed = known.get(route.url) ?? new Set()
    for (const method of [route.method].flat()) allowed.add(method)
    known.set(route.url, allowed)
  })
  return () => {
    for (const [url, allowed] of [...known]) {
      const missing = methods.filter((method) => !allowed.has(method))
      if (url.includes('*') || missing.length === 0) continue
      const allow = [...allowed].filter((method) => method !== 'OPTIONS').join(', ')
      const answer = (request: FastifyRequest, reply: FastifyReply) => {
        reply.header('allow', allow)
        sendRefusal(styleOf(request), refuse('method_not_allowed'), request, reply)
      }
      // Before a body is read: whatever it is, this is the answer.
      server.route({ method: missing, url, schema: { hide: true }, onRequest: answer, handler: answer })
    }
  }
}
