import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { matchingTag } from './app/if-none-match.ts'

const html = 'text/html; charset=utf-8'
const css = 'text/css; charset=utf-8'
const javascript = 'text/javascript; charset=utf-8'
const json = 'application/json; charset=utf-8'

/** Each path, what it is, and the file it comes from. Nothing is fetched from elsewhere, by us or by the browser. */
const files = [
  ['/docs', html, ours('docs/page.html')],
  ['/docs/page.css', css, ours('docs/page.css')],
  ['/docs/page.js', javascript, ours('docs/page.js')],
  ['/docs/swagger-ui.css', css, new URL(import.meta.resolve('swagger-ui-dist/swagger-ui.css'))],
  ['/docs/swagger-ui.js', javascript, new URL(import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js'))],
  ['/docs/app.json', json, ours('../../docs/openapi/app.json')],
  ['/docs/workspace.json', json, ours('../../docs/openapi/workspace.json')],
] as const

/** Styles inline: the reference component sets them while it renders. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** `GET /docs`: the reference of both APIs. `GET /docs/app.json`, `/docs/workspace.json`: their OpenAPI documents. */
export function docsPages(server: FastifyInstance): void {
  for (const [path, type, file] of files) serveFile(server, path, type, file)
  server.get('/docs/', { schema: { hide: true } }, (_request, reply) => reply.redirect('../docs', 308))
}

/** Read when it is first asked for: a process nobody reads the reference from keeps none of it in memory. */
function serveFile(server: FastifyInstance, path: string, type: string, file: URL): void {
  let loaded: { bytes: Buffer; tag: string } | undefined
  server.get(path, { schema: { hide: true } }, async (request, reply) => {
    loaded ??= await load(file)
    const { bytes, tag } = loaded
    reply
      .header('etag', tag)
      .header('cache-control', 'no-cache')
      .header('content-security-policy', contentSecurityPolicy)
      .header('x-content-type-options', 'nosniff')
      .header('referrer-policy', 'no-referrer')
    if (matchingTag(request.headers['if-none-match'], tag) !== undefined) return reply.code(304).send()
    return reply.type(type).send(bytes)
  })
}

async function load(file: URL): Promise<{ bytes: Buffer; tag: string }> {
  const bytes = await readFile(file)
  return { bytes, tag: `"${hash('sha256', bytes, 'base64url')}"` }
}

function ours(path: string): URL {
  return new URL(path, import.meta.url)
}
