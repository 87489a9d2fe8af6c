import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/**
 * Browsers of `web` apps may call the App API from any origin, without credentials. Written here rather than taken from
 * the framework's plugin, whose preflight route answers for every path, the Workspace API's too.
 */
export function allowBrowsers(
  server: FastifyInstance,
  { exposedHeaders, requestHeaders }: { exposedHeaders: string[]; requestHeaders: string[] },
): void {
  const exposed = exposedHeaders.join(', ')
  const accepted = ['Content-Type', 'Content-Encoding', 'If-None-Match', 'X-Request-Id', ...requestHeaders].join(', ')
  server.addHook('onRequest', (request, reply, done) => {
    if (request.headers.origin !== undefined) {
      reply.header('access-control-allow-origin', '*').header('access-control-expose-headers', exposed)
    }
    done()
  })
  const urls = new Set<string>()
  server.addHook('onRoute', ({ url, method }) => {
    if (method === 'OPTIONS' || urls.has(url)) return
    urls.add(url)
    // Before a body is read: there is none to this question.
    server.options(url, { schema: { hide: true }, onRequest: allow }, allow)
  })

  function allow(_request: FastifyRequest, reply: FastifyReply): void {
    reply
      .header('access-control-allow-methods', 'GET, POST')
      .header('access-control-allow-headers', accepted)
      .header('access-control-max-age', '86400')
      .code(204)
      .send()
  }
}
