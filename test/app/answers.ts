import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'

/** Any JSON answer. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads answers of many shapes; each is held against the published document
export type Body = any

export interface Answer {
  status: number
  /** Undefined when the answer has none. */
  body: Body
  bytes: Buffer
  headers: Headers
}

interface Operation {
  responses: Record<string, { $ref?: string; content?: unknown }>
}

const published = JSON.parse(readFileSync(new URL('../../docs/openapi/app.json', import.meta.url), 'utf8'))
const paths: Record<string, Record<string, Operation>> = published.paths
const ajv = new Ajv({ strict: false, allErrors: true })
addFormats.default(ajv)
ajv.addSchema(strict(published) as object, 'app')
const compiled = new Map<string, ValidateFunction>()

/** What every answer of the App API has in common, and its shape by the published document, without room for more fields. */
export function assertDocumented(method: string, path: string, answer: Answer): void {
  const said = `${method} ${path} answered ${answer.status} ${answer.bytes.toString('utf8', 0, 2000)}`
  const { status, headers } = answer
  assert.match(headers.get('x-request-id') ?? '', /^[!-~]{1,128}$/, said)
  assert.equal(headers.get('content-encoding'), null, said)
  if (status === 503 || status === 429) assert.match(headers.get('retry-after') ?? '', /^[1-9][0-9]*$/, said)
  if (status === 304) {
    assert.equal(answer.bytes.length, 0, said)
    return
  }
  assert.equal(headers.get('content-type'), 'application/json; charset=utf-8', said)
  assert.equal(Number(headers.get('content-length')), answer.bytes.length, said)
  const documented = paths[path]?.[method.toLowerCase()]?.responses[status]
  assert.ok(documented, `not a documented status: ${said}`)
  // A spend that its purchase does not cover is decided, not refused.
  const isDecision = path === '/ready' || (path === '/feature/consume' && status === 402)
  if (status >= 400 && !isDecision) assertError(answer)
  const fits = validator(method, path, status, documented)
  assert.ok(fits(answer.body), `${said}: ${JSON.stringify(fits.errors)}`)
}

/** `{code, message, request_id, detail?, details?, issues?}`, the id being that of the header. */
export function assertError({ body, headers, bytes }: Answer): void {
  const said = bytes.toString('utf8', 0, 2000)
  const { code, message, request_id, detail, details, issues, ...more } = body
  assert.match(code, /^[a-z_]+$/, said)
  assert.ok(typeof message === 'string' && message !== '', said)
  assert.equal(request_id, headers.get('x-request-id'), said)
  assert.ok(detail === undefined || (typeof detail === 'string' && code.endsWith('_unsupported')), said)
  assert.ok(details === undefined || (typeof details === 'object' && details !== null), said)
  for (const issue of issues ?? []) assert.deepEqual(Object.keys(issue).toSorted(), ['message', 'path'], said)
  assert.deepEqual(more, {}, said)
}

function validator(method: string, path: string, status: number, { $ref }: { $ref?: string }): ValidateFunction {
  const operation = `${path.replaceAll('/', '~1')}/${method.toLowerCase()}`
  const response = $ref?.slice(1) ?? `/paths/${operation}/responses/${status}`
  const pointer = `app#${response}/content/application~1json/schema`
  const known = compiled.get(pointer) ?? ajv.compile({ $ref: pointer })
  compiled.set(pointer, known)
  return known
}

/** The schema without room for fields it does not name. */
function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strict)
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, strict(value)]))
  return 'properties' in inner ? { additionalProperties: false, ...inner } : inner
}
