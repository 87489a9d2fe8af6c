import type { FastifyInstance, RouteOptions } from 'fastify'

/**
 * Notes every route added from here on. The returned function gives the methods that a path without a route for the
 * request's own method has, for 405 and `Allow`; undefined where there is nothing at the path.
 */
export function noteMethods(server: FastifyInstance): (url: string) => string | undefined {
  const known = new Map<string, Set<string>>()
  server.addHook('onRoute', (route: RouteOptions) => {
    const allowed = known.get(route.url) ?? new Set()
    for (const method of [route.method].flat()) allowed.add(method)
    known.set(route.url, allowed)
  })
  return (url) => {
    const parts = partsOf(url)
    const found = [...known].filter(([pattern]) => isAt(partsOf(pattern), parts)).flatMap(([, methods]) => [...methods])
    return found.length === 0 ? undefined : [...new Set(found)].filter((method) => method !== 'OPTIONS').join(', ')
  }
}

function partsOf(url: string): string[] {
  return (url.split('?')[0] ?? '').split('/')
}

/** A part of a pattern that begins with a colon stands for any part that is not empty. */
function isAt(pattern: string[], parts: string[]): boolean {
  if (pattern.length !== parts.length) return false
  return pattern.every((part, i) => (part.startsWith(':') ? parts[i] !== '' : part === parts[i]))
}
