/**
 * The OpenAPI documents of both APIs, made from the schemas of their routes. `npm run openapi` writes them to docs/openapi,
 * where the service serves them from; openapi.test.ts holds them against the routes.
 */
import { writeFileSync } from 'node:fs'
import swagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import type { FastifyContextConfig, FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import pino from 'pino'
import Type, { type TSchema } from 'typebox'
import { docsPages } from '../src/http/docs.ts'
import { createServer, type ServerOptions } from '../src/http/server.ts'
import { must } from '../src/kernel/assert.ts'
import { wireNames } from '../src/kernel/wire-names.ts'
import { version } from '../src/version.ts'
import { examples } from './openapi/examples.ts'
import { hoist, type Json } from './openapi/hoist.ts'
import { type Api, appApi, workspaceApi } from './openapi/words.ts'

export type ApiName = 'app' | 'workspace'

export interface Described {
  server: FastifyInstance
  /** What the surfaces registered, the hidden routes too. */
  routes: Record<ApiName, RouteOptions[]>
  documents: Record<ApiName, Json>
}

const words: Record<ApiName, Api> = { app: appApi, workspace: workspaceApi }

/** Where a document lies, and how its file is written. */
export const fileOf = (api: ApiName) => new URL(`../docs/openapi/${api}.json`, import.meta.url)
export const textOf = (document: Json) => `${JSON.stringify(document, null, 2)}\n`

export async function describe(): Promise<Described> {
  const scopes = new Map<ApiName, FastifyInstance>()
  const routes: Described['routes'] = { app: [], workspace: [] }
  const names = wireNames('service')
  const server = await createServer({
    log: pino({ level: 'silent' }),
    health: { version, ready: async () => [] },
    metrics: { token: undefined, metrics: [] },
    app: standIn<ServerOptions['app']>({ names }),
    workspace: standIn<ServerOptions['workspace']>({ names }),
    webhooks: standIn<ServerOptions['webhooks']>({}),
    extend: docsPages,
    describe: async (scope, api) => {
      scopes.set(api, scope)
      scope.addHook('onRoute', (route) => void routes[api].push(route))
      await scope.register(swagger, optionsOf(words[api]))
    },
  })
  await server.ready()
  const document = (api: ApiName) => hoist(must(scopes.get(api), 'every API is described').swagger() as Json)
  return { server, routes, documents: { app: document('app'), workspace: document('workspace') } }
}

function optionsOf({ info, servers, tags, securitySchemes }: Api): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: { ...info, version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
      servers,
      tags,
      components: { securitySchemes },
    },
    convertConstToEnum: false,
    stripBasePath: true,
    transform: ({ schema, url, route }) => ({ schema: { ...schema, ...unsaid(schema, route.config) }, url }),
  }
}

/** What the service judges itself, and so is not in the schema that the framework judges by; and an example. */
function unsaid(schema: FastifySchema, { documentedBody, gzip }: FastifyContextConfig = {}): Partial<FastifySchema> {
  const body = documentedBody ?? (schema.body as TSchema | undefined) // every schema here is one
  const query = schema.querystring as TSchema | undefined // as above
  const encoding = Type.String({ enum: ['gzip'] })
  return {
    ...(body === undefined ? {} : { body: { ...body, examples: [examples[schema.operationId ?? '']] } }),
    ...(query && Type.IsObject(query) && 'apiKey' in query.properties ? { security: [{ publishableKey: [] }] } : {}),
    ...(gzip === undefined
      ? {}
      : { headers: Type.Object({ 'Content-Encoding': gzip === 'required' ? encoding : Type.Optional(encoding) }) }),
  }
}

/** What a surface is built with when nobody will call it: everything is there to be held, and using it throws. */
function standIn<T extends object>(given: Partial<T>, name = 'service'): T {
  const refuse = () => {
    throw new Error(`${name} is a stand-in and can't be called`)
  }
  const get = (_: unknown, key: string | symbol): unknown =>
    Object.hasOwn(given, key) ? given[key as keyof T] : standIn({}, `${name}.${String(key)}`)
  return new Proxy(refuse, { get }) as unknown as T // true as long as it is only held, which the proxy sees to
}

if (import.meta.main) {
  const { documents, server } = await describe()
  for (const api of ['app', 'workspace'] as const) writeFileSync(fileOf(api), textOf(documents[api]))
  await server.close()
}
