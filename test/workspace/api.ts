import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { pino } from 'pino'
import { createFindCustomer } from '../../src/customers/index.ts'
import type { Pool as DatabasePool } from '../../src/db/pool.ts'
import { Pool } from '../../src/db/pool.ts'
import {
  Catalogues,
  type ConsumeAnswer,
  createConsume,
  createStanding,
  ensureEntryPartitions,
  ledgerSettings,
} from '../../src/entitlements/index.ts'
import { createLog, ensurePartitions, laneSettings, openEventReads } from '../../src/events/index.ts'
import { createDeliveries } from '../../src/experiences/index.ts'
import { addJsonBodyParser } from '../../src/http/body.ts'
import { sendRefusal, styleOf } from '../../src/http/errors.ts'
import { requestId } from '../../src/http/request-id.ts'
import { validatorCompiler } from '../../src/http/validator.ts'
import { workspaceApi } from '../../src/http/workspace/index.ts'
import { createStart } from '../../src/journeys/index.ts'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import { refuse } from '../../src/kernel/errors.ts'
import { randomText } from '../../src/kernel/ids.ts'
import { wireNames } from '../../src/kernel/wire-names.ts'
import { participantsOf } from '../../src/participants.ts'
import { createProfiles, createTryProfiles } from '../../src/profiles/index.ts'
import { createCheckCredential, createLoadStoreApp, createReverify } from '../../src/purchases/index.ts'
import {
  createProject,
  Directory,
  type Environment,
  type Mail,
  Marks,
  mintSecretKey,
  openSignIn,
  type Scope,
  sendDueMails,
} from '../../src/tenancy/index.ts'
import { testDatabase } from '../harness/database.ts'

/** Any JSON answer. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads answers of many shapes; the server's schemas are checked for each
export type Body = any

export interface Answer {
  status: number
  body: Body
  headers: Headers
}

export interface CallOptions {
  body?: unknown
  environment?: string
  idempotencyKey?: string
  headers?: Record<string, string>
}

/** A caller with a secret key of a workspace of its own, which has one project. */
export interface Workspace {
  id: string
  key: string
  projectId: string
  scopes: Record<Environment, Scope>
  call: (method: string, path: string, options?: CallOptions) => Promise<Answer>
  get: (path: string, options?: CallOptions) => Promise<Answer>
  post: (path: string, body?: unknown, options?: CallOptions) => Promise<Answer>
  patch: (path: string, body: unknown, options?: CallOptions) => Promise<Answer>
  delete: (path: string, options?: CallOptions) => Promise<Answer>
}

export interface Api extends AsyncDisposable {
  url: string
  databaseUrl: string
  pool: DatabasePool
  directory: Directory
  tombstoneKey: Buffer
  sealingKey: Buffer
  workspace: () => Promise<Workspace>
  /** Somebody with a session, a member of nothing unless named. */
  person: (person?: PersonOptions) => Promise<Person>
  /** The mails that wait, taken as a mail server would. */
  mails: () => Promise<Mail[]>
  /** Spends units as an app of the scope would; without an operation id under a new one. */
  spend: (scope: Scope, usage: Usage) => Promise<ConsumeAnswer>
}

export interface PersonOptions {
  email?: string
  verified?: boolean
  role?: 'owner' | 'admin' | 'member'
  /** Of which workspace. */
  of?: { id: string }
}

export interface Person {
  id: string
  email: string
  token: string
  /** Calls with the session, naming the workspace that it is a member of. */
  call: Workspace['call']
}

export interface Usage {
  distinctId: string
  feature: string
  quantity: number
  entityId?: string | null
  operationId?: string
}

/** A database, and what the instance in it seals by. */
export interface Ground extends Pick<Api, 'databaseUrl' | 'pool' | 'tombstoneKey' | 'sealingKey'> {
  /** By which the API does what it is asked for; the pool unless given. */
  by?: DatabasePool
}

/**
 * The Workspace API alone, over a database of its own, or as one more process over one that is there. Every answer is held
 * against its documented shape.
 */
export async function startApi(over?: Ground): Promise<Api> {
  await using stack = new AsyncDisposableStack()
  const { databaseUrl: url, pool, tombstoneKey, sealingKey, by = pool } = over ?? (await newGround(stack))
  const log = pino({ level: 'silent' })
  const directory = stack.use(await Directory.open({ pool, url, clock, log }))
  const ledgerPool = stack.use(new Pool(url, { name: 'test reads', max: 2, pipeline: true, settings: ledgerSettings }))
  const journeys = { tombstoneKey, log }
  const startPool = stack.use(new Pool(url, { name: 'test starts', max: 3, settings: laneSettings }))
  const publicUrl = 'https://turnpike.example'
  const signIn = stack.use(openSignIn({ pool, sealingKey, publicUrl, log }))
  const eventLog = stack.use(createLog({ url, tombstoneKey, clock }))
  const eventReads = stack.use(openEventReads({ url, clock, secret: tombstoneKey }))
  const catalogues = new Catalogues(pool, directory)
  const consume = createConsume({
    pool: ledgerPool,
    holdupPool: ledgerPool,
    catalogues,
    directory,
    tombstoneKey,
    clock,
  })
  const names = wireNames('service')
  const cdn = 'https://cdn.example/'
  const profiles = createProfiles({
    ...{ pool: ledgerPool, tombstoneKey, clock, catalogues, writePool: pool },
    deliveries: createDeliveries({ pool, directory, names }),
    wire: { names, renderBaseUrl: cdn, assetBaseUrl: cdn },
  })
  const loadStoreApp = createLoadStoreApp(sealingKey)
  const server = serverWith(async (scope) =>
    workspaceApi(scope, {
      pool: by,
      find: createFindCustomer({ pool: ledgerPool, clock }),
      eventRetentionDays: 400,
      directory,
      marks: new Marks(pool, clock, log),
      names,
      profiles,
      deliverAlways: true,
      tryProfiles: createTryProfiles({ names, renderBaseUrl: cdn, assetBaseUrl: cdn }),
      clock,
      tombstoneKey,
      catalogues,
      standing: createStanding({ pool: ledgerPool, tombstoneKey, clock }),
      participants: participantsOf(clock, journeys),
      journeys,
      start: createStart({ pool: startPool, clock, tombstoneKey, services: journeys }),
      appendBatch: eventLog.appendBatch,
      ...eventReads,
      log,
      sealingKey,
      publicUrl,
      requestsPerMinute: 0,
      signIn,
      loadStoreApp,
      reverify: createReverify({
        ...{ pool, clock, loadStoreApp, tombstoneKey, sealingKey, baseUrls: [publicUrl] },
        ...{ rereads: {}, wake: () => {} },
      }),
      checkCredential: createCheckCredential({ pool, loadStoreApp, checks: {} }),
    }),
  )
  await server.listen({ host: '127.0.0.1', port: 0 })
  stack.defer(() => server.close())
  const { port } = server.server.address() as AddressInfo // a TCP address after listen
  const base = `http://127.0.0.1:${port}`
  const everything = stack.move()
  return {
    url: base,
    databaseUrl: url,
    pool,
    directory,
    tombstoneKey,
    sealingKey,
    workspace: () => openWorkspace(base, pool, directory),
    person: (options = {}) => openPerson(base, pool, options),
    mails: async () => {
      const taken: Mail[] = []
      const take = async (mail: Mail) => void taken.push(mail)
      while ((await sendDueMails(pool, sealingKey, take)).length > 0);
      return taken
    },
    spend: (scope, { distinctId, feature, quantity, entityId = null, operationId = randomText(12) }) =>
      consume({
        scope: { ...scope, keyId: 'key_test', appId: 'app_test', appName: 'Test', platform: 'ios' },
        distinctId,
        featureKey: feature,
        operationId,
        quantity: BigInt(quantity),
        mode: 'consume',
        entityId,
      }),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
}

async function newGround(stack: AsyncDisposableStack): Promise<Ground> {
  const { pool, url: databaseUrl } = stack.use(await testDatabase())
  await ensureEntryPartitions(pool)
  await ensurePartitions(pool)
  await pool.query(`insert into instance (id, sealed_secrets) values (1, '')`)
  return { databaseUrl, pool, tombstoneKey: Buffer.alloc(32, 7), sealingKey: Buffer.alloc(32, 8) }
}

function serverWith(api: (scope: FastifyInstance) => Promise<void>): FastifyInstance {
  const server = Fastify({
    genReqId: ({ headers }) => requestId(headers['x-request-id']),
    routerOptions: { maxParamLength: 2048 },
    forceCloseConnections: true,
  })
  server.setValidatorCompiler(validatorCompiler())
  server.setSerializerCompiler(() => JSON.stringify)
  server.setNotFoundHandler((request, reply) => {
    sendRefusal(styleOf(request), refuse('not_found'), request, reply)
  })
  addJsonBodyParser(server)
  server.addHook('onSend', (request, reply, payload, done) => {
    const wrong = misfit(request, reply.statusCode, payload)
    if (wrong !== undefined) reply.header('x-wrong-answer', encodeURIComponent(wrong))
    done()
  })
  server.register(api, { prefix: '/v1' })
  return server
}

/** What is wrong with an answer by the route's own documents, fields beyond them included. */
function misfit(request: FastifyRequest, status: number, payload: unknown): string | undefined {
  const documented = request.routeOptions.schema?.response as Record<number, object> | undefined
  if (!documented || typeof payload !== 'string') return undefined
  const schema = documented[status]
  if (!schema) return `status ${status} is not documented`
  const fits = request.compileValidationSchema(strict(schema) as Record<string, unknown>)
  return fits(JSON.parse(payload)) ? undefined : JSON.stringify(fits.errors)
}

/** The schema without room for fields it does not name. */
function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strict)
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, strict(value)]))
  return 'properties' in inner ? { additionalProperties: false, ...inner } : inner
}

async function openWorkspace(base: string, pool: DatabasePool, directory: Directory): Promise<Workspace> {
  const id = `ws_${randomText(12)}`
  const { key, keyHash } = mintSecretKey()
  const { project, scopes } = await pool.transaction(async (tx) => {
    await tx.query('insert into workspace (id, name, slug) values ($1, $1, $1)', [id])
    await tx.query('insert into secret_key (id, workspace_id, hash) values ($1, $2, $3)', [
      `key_${randomText(12)}`,
      id,
      keyHash,
    ])
    await tx.query('update instance set revision = revision + 1')
    return createProject(tx, id, { name: 'Main' })
  })
  await directory.refresh()
  const call = caller(base, key)
  return {
    id,
    key,
    projectId: project.id,
    scopes,
    call,
    get: (path, options) => call('GET', path, options),
    post: (path, body, options) => call('POST', path, { ...options, body }),
    patch: (path, body, options) => call('PATCH', path, { ...options, body }),
    delete: (path, options) => call('DELETE', path, options),
  }
}

/** Signing up and in, without its fifty milliseconds for each password. */
async function openPerson(base: string, pool: DatabasePool, options: PersonOptions): Promise<Person> {
  const id = `usr_${randomText(12)}`
  const { email = `${id}@example.com`, verified = true, role, of } = options
  const token = randomText(32)
  await pool.query(`insert into users (id, email, name, email_verified) values ($1, $2, 'Somebody', $3)`, [
    id,
    email,
    verified,
  ])
  await pool.query(
    `insert into user_session (id, user_id, token, expires_at) values ($1, $2, $3, now() + interval '1 hour')`,
    [`ses_${randomText(12)}`, id, hash('sha256', token, 'base64url')],
  )
  if (of) await pool.query('insert into member values ($1, $2, $3)', [of.id, id, role ?? 'member'])
  const call = caller(base, token)
  return {
    id,
    email,
    token,
    call: (method, path, more = {}) =>
      call(method, path, { ...more, headers: { ...(of ? { 'service-workspace-id': of.id } : {}), ...more.headers } }),
  }
}

export function caller(base: string, key: string | null): Workspace['call'] {
  return async (method, path, { body, environment = 'test', idempotencyKey, headers = {} } = {}) => {
    const response = await fetch(`${base}/v1${path}`, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        'x-service-env': environment,
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const wrong = response.headers.get('x-wrong-answer')
    const text = await response.text()
    assert.equal(
      wrong,
      null,
      `${method} ${path} answered ${response.status} ${text}: ${decodeURIComponent(wrong ?? '')}`,
    )
    return { status: response.status, body: JSON.parse(text), headers: response.headers }
  }
}

/** The refusal as the contract shapes it. */
export function assertRefused(answer: Answer, status: number, code: string, param?: string): void {
  assert.equal(answer.status, status, JSON.stringify(answer.body))
  assert.equal(answer.body.error.code, code, JSON.stringify(answer.body))
  assert.equal(typeof answer.body.error.message, 'string')
  assert.equal(typeof answer.body.error.request_id, 'string')
  if (param !== undefined) assert.equal(answer.body.error.param, param, JSON.stringify(answer.body))
}

/** How many audit rows tell of the object. */
export async function auditOf(pool: DatabasePool, objectId: string): Promise<{ action: string; object: string }[]> {
  return pool.query<{ action: string; object: string }>(
    'select action, object from audit_log where object_id = $1 order by id',
    [objectId],
  )
}
