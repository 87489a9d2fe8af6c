import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import { inflateWhole } from '../events/index.ts'
import { refuse } from '../kernel/errors.ts'
import {
  batchInflatedBytesMax,
  bodyBytesMax,
  eventBodyBytesMax,
  jsonDepthMax,
  jsonValuesMax,
} from '../kernel/limits.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Which content encoding the route takes; absent: none. */
    gzip?: 'allowed' | 'required'
    /** Decompressed, where it is not the single event's or the batch's. */
    inflatedBytesMax?: number
    /** The body as the published document shows it, where the route judges it without a schema. */
    documentedBody?: TSchema
  }
}

/**
 * JSON objects only, strict UTF-8, bounded depth and number of values; inflated first where the route takes gzip. A body
 * that is too large is refused as that, whatever it claims to be.
 */
export function addJsonBodyParser(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  server.addHook('preParsing', (request, _reply, _payload, done) => {
    const bytes = Number(request.headers['content-length'])
    // No route takes less: most requests are not asked for theirs.
    if (bytes > bodyBytesMax && bytes > request.routeOptions.bodyLimit) done(refuse('payload_too_large'))
    else done()
  })
  server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, _body, done) => {
    done(refuse('invalid_request', { message: 'Content-Type must be application/json.' }))
  })
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    const encoding = contentEncoding(request)
    const gzip = request.routeOptions.config.gzip
    if (gzip !== 'required' && encoding === undefined) return settle(() => parseJsonObject(body), done)
    if (gzip === undefined || encoding !== 'gzip') return done(refuse('unsupported_encoding'))
    const { inflatedBytesMax = gzip === 'required' ? batchInflatedBytesMax : eventBodyBytesMax } =
      request.routeOptions.config
    return inflateWhole(body, inflatedBytesMax).then(parseJsonObject)
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

export function parseJsonObject(bytes: Buffer): Record<string, unknown> {
  if (!isUtf8(bytes)) throw refuse('invalid_json', { message: 'The body is not UTF-8.' })
  refuseHostile(bytes)
  let value: unknown
  try {
    value = JSON.parse(bytes.toString())
  } catch {
    throw refuse('invalid_json')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw refuse('invalid_json', { message: 'The body must be a JSON object.' })
  }
  return value as Record<string, unknown> // an object by the test above
}

const byteOf = { quote: 0x22, comma: 0x2c, openArray: 0x5b, backslash: 0x5c, closeArray: 0x5d, open: 0x7b, close: 0x7d }

/**
 * Counts depth and values before anything is parsed: a few bytes of gzip can inflate to text that takes the parser half a
 * minute and five gigabytes. Right up to the first syntax error, where parsing ends.
 */
function refuseHostile(bytes: Buffer): void {
  let depth = 0
  let values = 1
  let inText = false
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (inText) {
      if (byte === byteOf.backslash) i++
      else if (byte === byteOf.quote) inText = false
    } else if (byte === byteOf.quote) {
      inText = true
    } else if (byte === byteOf.comma) {
      values++
    } else if (byte === byteOf.open || byte === byteOf.openArray) {
      values++
      if (++depth > jsonDepthMax) {
        throw refuse('invalid_json', { message: `The body is nested deeper than ${jsonDepthMax}.` })
      }
    } else if (byte === byteOf.close || byte === byteOf.closeArray) {
      depth--
    }
  }
  if (values > jsonValuesMax) {
    throw refuse('payload_too_large', { message: `The body has more than ${jsonValuesMax} values.` })
  }
}
