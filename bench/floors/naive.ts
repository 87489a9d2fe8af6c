/**
 * Floor (b): the straightforward server most teams would write. Fastify with schemas, a pool, one transaction for each
 * request, prepared statements, rows locked where they must be; keys are remembered, nothing else is.
 */
import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import Fastify, { type FastifyInstance } from 'fastify'
import pg from 'pg'
import { listen } from './listen.ts'
import { type Spend, spend } from './spend.ts'
import * as store from './store.ts'

const batchBytesMax = 16 * 1024 * 1024
/** What pools are usually given; more connections than this only wait for two cores. */
const connections = 20
const inflate = promisify(gunzip)

const text = { type: 'string', minLength: 1, maxLength: 256 }
const units = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER }
const eventFields = {
  event: text,
  distinct_id: text,
  uuid: { type: 'string', format: 'uuid' },
  timestamp: { type: 'string' },
  properties: { type: 'object' },
}

const pool = new pg.Pool({ connectionString: process.argv[2] ?? '', max: connections })
const keys = new Map<string, store.Key>()

const app = Fastify()
await app.register(events)
await app.register(batches)
await app.register(usage)
await app.register(profile)
await app.register(customers)
await listen(app)

async function events(routes: FastifyInstance): Promise<void> {
  routes.post<{ Body: store.NewEvent & { apiKey: string } }>(
    '/event',
    { schema: body(eventFields, ['event', 'distinct_id', 'uuid']) },
    async (request, reply) => {
      const key = await keyOf(request.body.apiKey)
      if (!key) return reply.code(401).send({ code: 'invalid_api_key' })
      const { apiKey: _, ...payload } = request.body
      await store.addEvent(pool, key.scope_id, payload)
      return { status: 'ok', eventId: payload.uuid, accepted: 1, queued: true, payload }
    },
  )
}

async function batches(routes: FastifyInstance): Promise<void> {
  routes.removeAllContentTypeParsers()
  routes.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer', bodyLimit: batchBytesMax },
    async (_: unknown, sent: Buffer) => JSON.parse((await inflate(sent)).toString()),
  )
  const item = { type: 'object', required: ['event', 'distinct_id', 'uuid'], properties: eventFields }
  const batch = { type: 'array', minItems: 1, maxItems: 1000, items: item }
  routes.post<{ Body: { apiKey: string; batch: store.NewEvent[] } }>(
    '/batch',
    { schema: body({ batch }, ['batch']) },
    async (request, reply) => {
      const { apiKey, batch } = request.body
      const key = await keyOf(apiKey)
      if (!key) return reply.code(401).send({ code: 'invalid_api_key' })
      await transaction((client) => store.addEvents(client, key.scope_id, batch))
      const eventIds = batch.map((event) => event.uuid)
      return { status: 'success', accepted: batch.length, failed: 0, total: batch.length, queued: true, eventIds }
    },
  )
}

async function usage(routes: FastifyInstance): Promise<void> {
  interface Question {
    apiKey: string
    customerId: string
    featureId: string
    requiredBalance?: number
  }
  const asked = { customerId: text, featureId: text, requiredBalance: units }
  routes.post<{ Body: Question }>(
    '/entitled',
    { schema: body(asked, ['customerId', 'featureId']) },
    async (request, reply) => {
      const { apiKey, customerId, featureId, requiredBalance = 1 } = request.body
      const key = await keyOf(apiKey)
      if (!key) return reply.code(401).send({ code: 'invalid_api_key' })
      const standing = await store.readStanding(pool, key.scope_id, customerId, featureId)
      if (!standing) return reply.code(404).send({ code: 'feature_not_found' })
      const { type, live, unlimited, balance } = standing
      const allowed = live && (type === 'boolean' || unlimited || balance >= requiredBalance)
      const shown = unlimited || type === 'boolean' ? null : balance
      return { customerId, featureId, requiredBalance, code: 'feature_found', allowed, unlimited, balance: shown, type }
    },
  )

  const spent = { customerId: text, featureId: text, operationId: text, quantity: units }
  routes.post<{ Body: Spend & { apiKey: string } }>(
    '/feature/consume',
    { schema: body(spent, ['customerId', 'featureId', 'operationId', 'quantity']) },
    async (request, reply) => {
      const key = await keyOf(request.body.apiKey)
      if (!key) return reply.code(401).send({ code: 'invalid_api_key' })
      const decision = await transaction((client) => spend(client, key.scope_id, request.body))
      return decision ?? reply.code(404).send({ code: 'feature_not_found' })
    },
  )
}

async function profile(routes: FastifyInstance): Promise<void> {
  routes.post<{ Body: { apiKey: string; distinct_id: string } }>(
    '/profile',
    { schema: body({ distinct_id: text, locale: { type: 'string' } }, ['distinct_id']) },
    async (request, reply) => {
      const key = await keyOf(request.body.apiKey)
      if (!key) return reply.code(401).send({ code: 'invalid_api_key' })
      const row = await store.readProfile(pool, key.scope_id, request.body.distinct_id)
      const text = JSON.stringify({
        schemaVersion: 'service.journey-plane-profile.v2',
        status: 'ok',
        delivery: { renderBaseUrl: 'http://127.0.0.1/render', assetBaseUrl: 'http://127.0.0.1/assets' },
        features: (row?.features ?? []).map((feature) => ({ ...feature, nextResetAt: null, interval: null })),
        facts: { properties: row?.properties ?? {}, memberships: {}, assignments: {} },
        armedLegs: [],
        releases: [],
      })
      const etag = `"${hash('sha256', text, 'base64url')}"`
      reply.headers({ etag, 'cache-control': 'private, no-cache' })
      if (request.headers['if-none-match'] === etag) return reply.code(304).send()
      return reply.type('application/json').send(text)
    },
  )
}

async function customers(routes: FastifyInstance): Promise<void> {
  const querystring = { type: 'object', required: ['distinct_id'], properties: { distinct_id: text } }
  routes.get<{ Querystring: { distinct_id: string } }>(
    '/v1/customers',
    { schema: { querystring } },
    async (request, reply) => {
      const key = await keyOf(request.headers.authorization?.slice('Bearer '.length) ?? '')
      if (!key) return reply.code(401).send({ code: 'invalid_api_key' })
      const rows = await store.readCustomers(pool, key.scope_id, request.query.distinct_id)
      const data = rows.map((row) => ({ object: 'customer', ...row }))
      return { object: 'list', data, has_more: false, next_cursor: null }
    },
  )
}

async function keyOf(apiKey: string): Promise<store.Key | undefined> {
  const known = keys.get(apiKey)
  if (known) return known
  const key = await store.readKey(pool, apiKey)
  if (key) keys.set(apiKey, key)
  return key
}

async function transaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const value = await work(client)
    await client.query('commit')
    return value
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

function body(properties: Record<string, object>, required: string[]) {
  return { body: { type: 'object', properties: { apiKey: text, ...properties }, required: ['apiKey', ...required] } }
}
