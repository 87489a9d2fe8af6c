import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { Ajv, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import { must } from '../../src/kernel/assert.ts'
import fc from '../harness/random.ts'
import { startService } from '../harness/service.ts'
import { call } from '../harness/turnpike.ts'
import { arbitraryOf, type Schema } from './arbitrary-schema.ts'

/** Every operation of the committed document, with requests made from its schemas: a new route is covered by itself. */
const document = JSON.parse(readFileSync(new URL('../../docs/openapi/workspace.json', import.meta.url), 'utf8'))
const password = 'correct horse battery'
const service = await startService({ SETUP_PASSWORD: password, DEMO: '1', WORKSPACE_RATE_LIMIT: '0' })
after(() => service[Symbol.asyncDispose]())
const signedIn = await call(service.url, '/v1/tokens', { email: 'owner@localhost', password })
const session = String(signedIn.body.token)
const [{ id: workspaceId }] = (await service.pool.query<{ id: string }>('select id from workspace')) as [{ id: string }] // its first run made one

/** The first three times out of four. */
function mostly(usual: string, ...others: string[]) {
  return fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) })
}

interface Operation {
  method: string
  path: string
  pointer: string
  parameters: { name: string; in: string; required?: boolean; schema: Schema }[]
  body: Schema | undefined
  responses: Record<string, { $ref?: string }>
  bySession: boolean
}

/** What random requests do however slow the machine is; most of what is left needs a body of several parts that agree. */
const reachedMin = 15

interface Documented {
  parameters?: Operation['parameters']
  requestBody?: { content: { 'application/json': { schema: Schema } } }
  responses: Operation['responses']
  security?: object[]
}

const operations: Operation[] = Object.entries<Record<string, Documented>>(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { parameters = [], requestBody, responses, security = [] }]) => ({
    method: method.toUpperCase(),
    path,
    pointer: `#/paths/${escaped(path)}/${method}`,
    parameters,
    body: requestBody?.content['application/json'].schema,
    responses,
    bySession: security.length > 0 && security.every((way) => 'userSession' in way),
  })),
)

const ajv = new Ajv({ strict: false, logger: false })
addFormats.default(ajv)
ajv.addSchema({ ...document, $id: 'document' })
const compiled = new Map<string, ValidateFunction>()

/** Ids and cursors that answers have shown; what later requests name. Never our own key and workspace: they would be gone. */
const seen = new Set<string>(['exports', 'pro_monthly', 'demo-user'])
/** The same by the kind of object. */
const seenOf = new Map<string, string[]>()

test('no operation fails, and none answers beside its document, whatever is asked', { timeout: 120_000 }, async () => {
  const asked = new Map<string, Set<number>>()
  const json = fc.jsonValue({ maxDepth: 3 })
  let turn = 0
  const request = fc.record({
    seed: fc.integer(),
    harm: fc.option(fc.record({ field: fc.nat(), value: json, add: fc.boolean() }), { freq: 1 }),
    environment: mostly('test', 'live', 'moon'),
    way: mostly('right', 'session', 'none', 'wrong'),
    key: fc.option(
      fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme-ascii' }).filter((text) => text.trim() !== ''),
      { freq: 8 },
    ),
  })
  await fc.assert(
    fc.asyncProperty(request, async ({ seed, harm, environment, way, key }) => {
      // By turns: none is left out, however far the time allows to go.
      const operation = must(operations[turn++ % operations.length], 'there are some')
      const known = [...seen]
      const pick = (schema: Schema) => fc.sample(arbitraryOf(schema, document, known), { numRuns: 1, seed })[0]
      const url = urlOf(operation, pick, seed)
      const body = operation.body === undefined ? undefined : harmed(pick(operation.body), harm)
      const given = await fetch(`${service.url}/v1${url}`, {
        method: operation.method,
        headers: {
          'x-service-env': environment,
          ...(way === 'none' ? {} : { authorization: `Bearer ${tokenFor(operation, way)}` }),
          ...(operation.bySession || way === 'session' ? { 'service-workspace-id': workspaceId } : {}),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(key === null || operation.method !== 'POST' ? {} : { 'idempotency-key': key.trim() }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await given.text()
      const where = `${operation.method} ${url} ${JSON.stringify(body)} answered ${given.status} ${text.slice(0, 500)}`
      assert.ok(given.status < 500, where)
      holdAgainstDocument(operation, given.status, text, where)
      note(text)
      const statuses = asked.get(`${operation.method} ${operation.path}`) ?? new Set()
      asked.set(`${operation.method} ${operation.path}`, statuses.add(given.status))
    }),
    { numRuns: operations.length * 6, seed: 20_261_120, interruptAfterTimeLimit: 40_000, endOnFailure: true },
  )
  const missed = operations.filter(({ method, path }) => !asked.has(`${method} ${path}`))
  assert.deepEqual(missed, [])
  // So that it is more than refusals that were looked at.
  const reached = [...asked.values()].filter((statuses) => [...statuses].some((status) => status < 300))
  assert.ok(reached.length >= reachedMin, `only ${reached.length} of ${operations.length} were ever done`)
})

function tokenFor({ method, path, bySession }: Operation, way: string): string {
  if (way === 'wrong') return 'sk_nobody'
  // Ending our own session would leave the rest unsaid.
  if (method === 'DELETE' && path === '/tokens/current') return 'nobody'
  return bySession || way === 'session' ? session : service.secretKey
}

function urlOf({ path, parameters }: Operation, pick: (schema: Schema) => unknown, seed: number): string {
  const query = new URLSearchParams()
  let at = path
  for (const [n, { name, in: place, schema }] of parameters.entries()) {
    if (place === 'path') {
      const ofKind = seenOf.get(kindOf(path, name)) ?? []
      const isOurs = name === 'id' && path.startsWith('/workspaces/')
      const value =
        ofKind.length > 0 && (seed & 7) !== 0 ? must(ofKind.at(seed % ofKind.length), 'there are some') : pick(schema)
      at = at.replace(`{${name}}`, encodeURIComponent(isOurs ? workspaceId : String(value)))
    }
    if (place === 'query' && ((seed >> n) & 3) === 0) query.set(name, String(pick(schema)))
  }
  return query.size > 0 ? `${at}?${query.toString()}` : at
}

/** `/features/{id}` is about a feature. */
function kindOf(path: string, name: string): string {
  const before =
    path
      .slice(0, path.indexOf(`/{${name}}`))
      .split('/')
      .at(-1) ?? ''
  return before.replace(/ies$/, 'y').replace(/s$/, '')
}

/** One field replaced, or one more. */
function harmed(body: unknown, harm: { field: number; value: unknown; add: boolean } | null): unknown {
  if (harm === null || typeof body !== 'object' || body === null) return body
  const names = Object.keys(body)
  const name = harm.add || names.length === 0 ? 'stranger' : must(names[harm.field % names.length], 'it has names')
  return { ...body, [name]: harm.value }
}

function holdAgainstDocument({ pointer, responses }: Operation, status: number, text: string, where: string): void {
  const response = responses[status]
  assert.ok(response, `an undocumented status: ${where}`)
  const place = response.$ref ?? `${pointer}/responses/${status}`
  const at = `document${place}/content/application~1json/schema`
  const fits = compiled.get(at) ?? ajv.compile({ $ref: at })
  compiled.set(at, fits)
  assert.ok(fits(JSON.parse(text)), `${ajv.errorsText(fits.errors)}: ${where}`)
}

function note(text: string): void {
  for (const [, kind = '', id = ''] of text.matchAll(/"object":"(\w+)","id":"([^"\\]{1,200})"/g)) {
    if (/^(key|ws|usr)_/.test(id) && kind !== 'publishable_key') continue
    const ids = seenOf.get(kind) ?? []
    if (ids.length < 100 && !ids.includes(id)) seenOf.set(kind, [...ids, id])
  }
  if (seen.size > 400) return
  for (const [, id = ''] of text.matchAll(
    /"(?:id|next_cursor|operation_id|distinct_id|entity_id)":"([^"\\]{1,200})"/g,
  )) {
    if (!/^(key|ws|usr)_/.test(id)) seen.add(id)
  }
}

function escaped(path: string): string {
  return path.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D')
}
