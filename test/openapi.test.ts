import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test, { after } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import type { RouteOptions } from 'fastify'
import type { TSchema } from 'typebox'
import { validatorCompiler } from '../src/http/validator.ts'
import { examples } from './openapi/examples.ts'
import { type ApiName, describe, fileOf, textOf } from './openapi.ts'

const { server, routes, documents } = await describe()
after(() => server.close())

for (const api of ['app', 'workspace'] as const) {
  test(`the committed document of the ${api} API is what its routes say (npm run openapi writes it)`, () => {
    assert.equal(readFileSync(fileOf(api), 'utf8'), textOf(documents[api]))
  })

  test(`the document of the ${api} API is valid OpenAPI 3.1, and every reference in it leads somewhere`, async () => {
    assert.deepEqual(await new Validator().validate(structuredClone(documents[api])), { valid: true })
    const references = [...textOf(documents[api]).matchAll(/"\$ref": "([^"]*)"/g)].map(([, to]) => to ?? '')
    assert.ok(references.length > 0)
    const leadNowhere = references.filter((to) => find(documents[api], to.split('/').slice(1)) === undefined)
    assert.deepEqual(leadNowhere, [])
  })

  test(`the document of the ${api} API names every operation it serves, and no other`, () => {
    const documented = operationsOf(api).map(({ method, path }) => `${method} ${path}`)
    const served = routes[api].filter(isPublic).flatMap((route) => {
      const path = route.url.replace(/^\/v1(?=\/)/, '').replace(/:(\w+)/g, '{$1}')
      return [route.method].flat().map((method) => `${method} ${path}`)
    })
    assert.ok(served.length > 5)
    assert.deepEqual(documented.toSorted(), served.toSorted())
  })

  test(`every operation of the ${api} API has a summary, one described tag and an operation id of its own`, () => {
    const { tags } = documents[api] as { tags: { name: string }[] }
    const operations = operationsOf(api)
    const incomplete = operations.filter(({ operation: { summary, operationId, tags: [tag, ...more] = [] } }) => {
      return !summary || !operationId || more.length > 0 || !tags.some(({ name }) => name === tag)
    })
    assert.deepEqual(incomplete, [])
    const used = operations.flatMap(({ operation }) => operation.tags ?? [])
    assert.deepEqual(new Set(tags.map(({ name }) => name)), new Set(used))
    assert.equal(new Set(operations.map(({ operation }) => operation.operationId)).size, operations.length)
  })
}

test('every schema of a route compiles, and every body has an example that fits', () => {
  const compiler = validatorCompiler()
  const bodies = new Map<string, boolean>()
  for (const route of [...routes.app, ...routes.workspace].filter(isPublic)) {
    const { body: judgedBody, querystring, params, headers, operationId = '' } = route.schema ?? {}
    const body = route.config?.documentedBody ?? judgedBody
    const of = { method: String(route.method), url: route.url }
    for (const [httpPart, schema] of Object.entries({ querystring, params, headers })) {
      if (schema) compiler({ schema: schema as TSchema, httpPart, ...of })({})
    }
    if (body)
      bodies.set(
        operationId,
        compiler({ schema: body as TSchema, httpPart: 'body', ...of })(examples[operationId]) === true,
      )
  }
  assert.deepEqual(
    [...bodies].filter(([, fits]) => !fits),
    [],
  )
  assert.deepEqual(new Set(Object.keys(examples)), new Set(bodies.keys()))
})

test('the reference page and everything it loads comes from the service itself', async () => {
  const page = await server.inject('/docs')
  assert.equal(page.statusCode, 200)
  assert.match(page.headers['content-type'] ?? '', /^text\/html/)
  assert.match(String(page.headers['content-security-policy']), /^default-src 'none'; script-src 'self';/)
  const addresses = [...page.body.matchAll(/(?:src|href)="([^"?]+)"/g)].map(([, address]) => address ?? '')
  const loaded = addresses.filter((address) => address !== 'data:,')
  assert.ok(loaded.length >= 4)
  for (const address of loaded) {
    assert.match(address, /^docs\//)
    assert.equal((await server.inject(`/${address}`)).statusCode, 200, address)
  }
})

test('the reference serves the committed documents, and says when they are unchanged', async () => {
  for (const api of ['app', 'workspace'] as const) {
    const answer = await server.inject(`/docs/${api}.json`)
    assert.equal(answer.body, readFileSync(fileOf(api), 'utf8'))
    const again = await server.inject({
      url: `/docs/${api}.json`,
      headers: { 'if-none-match': String(answer.headers.etag) },
    })
    assert.equal(again.statusCode, 304)
    assert.equal(again.body, '')
  }
})

test('the reference is found with a slash at its end too, also below a path of a proxy', async () => {
  const answer = await server.inject('/docs/')
  assert.equal(answer.statusCode, 308)
  assert.equal(new URL(String(answer.headers.location), 'https://example.test/below/docs/').pathname, '/below/docs')
})

interface Operation {
  operationId?: string
  summary?: string
  tags?: string[]
}

function operationsOf(api: ApiName): { method: string; path: string; operation: Operation }[] {
  const { paths } = documents[api] as { paths: Record<string, Record<string, Operation>> }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
}

/** HEAD comes with every GET; hidden are preflights and the refusals of other methods. */
function isPublic({ method, schema }: RouteOptions): boolean {
  return method !== 'HEAD' && !(schema && 'hide' in schema && schema.hide === true)
}

function find(value: unknown, [key, ...rest]: string[]): unknown {
  if (key === undefined) return value
  return typeof value === 'object' && value !== null ? find((value as Record<string, unknown>)[key], rest) : undefined
}
