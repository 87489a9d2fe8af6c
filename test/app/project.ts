import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { must } from '../../src/kernel/assert.ts'
import { randomText } from '../../src/kernel/ids.ts'
import type { Environment, Platform } from '../../src/tenancy/index.ts'
import { conformance } from '../conformance/hook.ts'
import type { TestService } from '../harness/service.ts'
import type { CallOptions } from '../workspace/api.ts'
import { type Answer, assertDocumented, type Body } from './answers.ts'

export type Headers = Record<string, string>

/** An app with a publishable key, as a device calls with it. */
export interface App {
  id: string
  name: string
  key: string
  keyId: string
  environment: Environment
  /** A JSON body gets the key unless it has one; text and bytes are sent as they are. Every answer is held against its document. */
  post: (path: string, body: Sendable, headers?: Headers) => Promise<Answer>
  /** The same, compressed as `/batch` wants it. */
  postGzip: (path: string, body: Sendable, headers?: Headers) => Promise<Answer>
}

export type Sendable = Record<string, unknown> | string | Buffer

/** A project of its own: nothing that another test does is seen in it. */
export interface Project {
  id: string
  app: (platform?: Platform, environment?: Environment) => Promise<App>
  /** The Workspace API; the project is named where it can be. */
  get: (path: string, options?: CallOptions) => Promise<Body>
  post: (path: string, body?: object, options?: CallOptions) => Promise<Body>
  patch: (path: string, body: object, options?: CallOptions) => Promise<Body>
  delete: (path: string, options?: CallOptions) => Promise<Body>
  /** A published Feature: metered unless told otherwise. */
  feature: (key: string, more?: object, options?: CallOptions) => Promise<Body>
  /** The customer's id; made when unknown. */
  customer: (distinctId: string, options?: CallOptions) => Promise<string>
  grant: (distinctId: string, grant: object, options?: CallOptions) => Promise<Body>
  /** As a deletion leaves it: no record, and a tombstone for the id. */
  tombstone: (distinctId: string, environment?: Environment) => Promise<void>
  scopeId: (environment?: Environment) => Promise<number>
}

export async function openProject(service: TestService): Promise<Project> {
  const { workspace, pool } = service
  const call = async (method: string, path: string, options: CallOptions = {}) => {
    const answer = await workspace(method, path, options)
    assert.ok(answer.status < 300, `${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const { id } = await call('POST', '/projects', { body: { name: randomText(8) } })
  const project: Project = {
    id,
    async app(platform = 'ios', environment = 'test') {
      const name = `App ${randomText(6)}`
      const { id: appId } = await call('POST', '/apps', { body: { project_id: id, platform, name } })
      const key = await call('POST', `/apps/${appId}/publishable_keys`, { body: {}, environment })
      return { id: appId, name, keyId: key.id, environment, ...clientOf(service.url, key.key) }
    },
    get: (path, options) => call('GET', path, options),
    post: (path, body, options) => call('POST', path, { ...options, body }),
    patch: (path, body, options) => call('PATCH', path, { ...options, body }),
    delete: (path, options) => call('DELETE', path, options),
    feature: (key, more = {}, options) =>
      project.post('/features', { project_id: id, key, name: key, type: 'metered', ...more }, options),
    customer: async (distinctId, options) =>
      (await project.post('/customers', { project_id: id, distinct_id: distinctId }, options)).id,
    grant: async (distinctId, grant, options) =>
      project.post(`/customers/${await project.customer(distinctId, options)}/grants`, grant, options),
    async tombstone(distinctId, environment) {
      const scopeId = await project.scopeId(environment)
      await pool.query(
        `insert into customer_rev (scope_id, customer_id, rev)
         select scope_id, customer_id, 1 from customer_alias where scope_id = $1 and distinct_id = $2
         on conflict (scope_id, customer_id) do update set rev = customer_rev.rev + 1`,
        [scopeId, distinctId],
      )
      await pool.query('delete from customer_alias where scope_id = $1 and distinct_id = $2', [scopeId, distinctId])
      await pool.query(
        `insert into customer_tombstone (scope_id, id_hash) values ($1, sha256($2::bytea || convert_to($3, 'UTF8')))`,
        [scopeId, service.tombstoneKey, distinctId],
      )
    },
    async scopeId(environment = 'test') {
      const [row] = await pool.query<{ id: number }>(
        'select id from scope where project_id = $1 and environment = $2',
        [id, environment],
      )
      return must(row, 'the project has its scopes').id
    },
  }
  return project
}

/** Calls the App API with a key. */
export function clientOf(base: string, key: string): Pick<App, 'key' | 'post' | 'postGzip'> {
  const withKey = (body: Sendable) =>
    typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify({ apiKey: key, ...body })
  const json = { 'content-type': 'application/json' }
  return {
    key,
    post: (path, body, headers = {}) => send(base, 'POST', path, withKey(body), { ...json, ...headers }),
    postGzip: (path, body, headers = {}) =>
      send(base, 'POST', path, gzipSync(withKey(body)), { ...json, 'content-encoding': 'gzip', ...headers }),
  }
}

/** One request to the App API, its answer held against its document and the contract of the clients. A header of empty text is left out. */
export async function send(
  base: string,
  method: string,
  path: string,
  body: string | Buffer | undefined,
  headers: Headers = {},
): Promise<Answer> {
  const { pathname } = new URL(path, base)
  const ifNoneMatch = headers['if-none-match']
  const assertConforming = conformance({ base, method, path: pathname, body, ifNoneMatch })
  const answer = await fetchBytes(base, method, path, body, headers)
  assertDocumented(method, pathname, answer)
  await assertConforming(answer)
  return answer
}

/** The same for what is no documented operation. */
export async function fetchBytes(
  base: string,
  method: string,
  path: string,
  body?: string | Buffer,
  headers: Headers = {},
): Promise<Answer> {
  const response = await fetch(`${base}${path}`, {
    method,
    headers: Object.entries(headers).filter(([, value]) => value !== ''),
    // A copy: the type of a Buffer's memory is not one that fetch is declared to take.
    ...(body === undefined ? {} : { body: typeof body === 'string' ? Buffer.from(body) : new Uint8Array(body) }),
    redirect: 'manual',
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, bytes, headers: response.headers, body: parsed(bytes) }
}

function parsed(bytes: Buffer): Body {
  try {
    return JSON.parse(new TextDecoder('utf8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return undefined
  }
}

/** The refusal as the contract shapes it; `path` is that of its first issue. */
export function assertRefused({ status, body }: Answer, expected: number, code: string, path?: string): void {
  assert.deepEqual([status, body.code], [expected, code], JSON.stringify(body))
  if (path !== undefined) assert.equal(body.issues?.[0]?.path, path, JSON.stringify(body))
}

/** An event that is all right, with a UUID of its own. */
export function anEvent(distinctId: string, more: object = {}): Record<string, unknown> {
  return { event: 'opened', distinct_id: distinctId, uuid: randomUUID(), ...more }
}

/** What is promised within a second, with another one for a machine that does much else. */
export const aSecondMs = 2000

/** Asks again until the answer is one to go on with; fails after `withinMs`. */
export async function eventually<T>(ask: () => Promise<T | undefined | null | false>, withinMs = 5000): Promise<T> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== null && answer !== false) return answer
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
