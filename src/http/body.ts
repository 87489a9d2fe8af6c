import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import { inflateWhole } from '../events/index.ts'
import { refuse } from '../kernel/errors.ts'
import { batchInflatedBytesMax, eventBodyBytesMax, jsonDepthMax } from '../kernel/limits.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Which content encoding the route takes; absent: none. */
    gzip?: 'allowed' | 'required'
    /** The body as the published document shows it, where the route judges it without a schema. */
    documentedBody?: TSchema
  }
}

/** JSON objects only, strict UTF-8, bounded depth; inflated first where the route takes gzip. */
export function addJsonBodyParser(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    const encoding = contentEncoding(request)
    const gzip = request.routeOptions.config.gzip
    if (gzip !== 'required' && encoding === undefined) return settle(() => parseJsonObject(body), done)
    if (gzip === undefined || encoding !== 'gzip') return done(refuse('unsupported_encoding'))
    return inflateWhole(body, gzip === 'required' ? batchInflatedBytesMax : eventBodyBytesMax).then(parseJsonObject)
  })
}

/** `undefined` for none or `identity`; `gzip` in any case, also as `x-gzip`; anything else as sent. */
function contentEncoding(request: FastifyRequest): string | undefined {
  const header = request.headers['content-encoding']
  if (header === undefined) return undefined
  const name = header.trim().toLowerCase()
  if (name === '' || name === 'identity') return undefined
  return name === 'x-gzip' ? 'gzip' : name
}

function settle(parse: () => unknown, done: (error: Error | null, body?: unknown) => void): void {
  let body: unknown
  let refusal: Error | null = null
  try {
    body = parse()
  } catch (error) {
    refusal = error as Error // parseJsonObject throws refusals only
  }
  done(refusal, body)
}

const opening = { array: 0x5b, object: 0x7b }

function parseJsonObject(bytes: Buffer): Record<string, unknown> {
  if (!isUtf8(bytes)) throw refuse('invalid_json', { message: 'The body is not UTF-8.' })
  let value: unknown
  try {
    value = JSON.parse(bytes.toString())
  } catch {
    throw refuse('invalid_json')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw refuse('invalid_json', { message: 'The body must be a JSON object.' })
  }
  if (mayBeDeep(bytes) && deeperThan(value, jsonDepthMax)) {
    throw refuse('invalid_json', { message: `The body is nested deeper than ${jsonDepthMax}.` })
  }
  return value as Record<string, unknown> // an object by the test above
}

/** Bodies with few opening brackets can't be deep: the walk is spared on every ordinary request. */
function mayBeDeep(bytes: Buffer): boolean {
  let openings = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if ((byte === opening.array || byte === opening.object) && ++openings > jsonDepthMax) return true
  }
  return false
}

function deeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  for (const inner of Array.isArray(value) ? value : Object.values(value)) {
    if (deeperThan(inner, levels - 1)) return true
  }
  return false
}
