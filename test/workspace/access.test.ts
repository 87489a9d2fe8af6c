import assert from 'node:assert/strict'
import { after, before, describe as group, test } from 'node:test'
import { mintPublishableKey } from '../../src/tenancy/index.ts'
import { examples } from '../openapi/examples.ts'
import { describe } from '../openapi.ts'
import { type Answer, type Api, assertRefused, caller, startApi, type Workspace } from './api.ts'

/** Beside every DELETE, which needs an admin unless it stands below. */
const adminOnly = new Set([
  'createProject',
  'updateProject',
  'createApp',
  'updateApp',
  'createPublishableKey',
  'createApiKey',
  'listApiKeys',
  'updateWorkspace',
  'updateMember',
  'createInvitation',
  'listInvitations',
  'listAuditLog',
  'createSigningKey',
  'importSigningKey',
  'activateSigningKey',
  'retireSigningKey',
  'revokeSigningKey',
  'putStoreCredentials',
  'checkStoreCredentials',
  'updateStoreSettings',
  'transferPurchase',
  'replayDeadNotification',
  'createWebhookEndpoint',
  'updateWebhookEndpoint',
  'rotateWebhookSecret',
  'listQuarantinedInputs',
  'releaseQuarantinedInput',
])
const forEverybody = new Set(['revokeToken', 'removeMember'])
/** Needs no verified address. */
const forUnverified = new Set(['revokeToken'])

interface Operation {
  operationId: string
  security: Record<string, unknown>[]
  requestBody?: unknown
}

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())
const { server, documents } = await describe()
after(() => server.close())

const paths = documents.workspace.paths as Record<string, Record<string, Operation>>
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })),
)
type Described = (typeof operations)[number]

const kindOf = ({ security, path }: Described) => {
  if (security.length === 0) return 'open'
  if (security.some((way) => 'secretKey' in way)) return 'key'
  return path.startsWith('/workspaces/{id}') ? 'workspace' : 'session'
}
const ofKind = (...kinds: string[]) => operations.filter((operation) => kinds.includes(kindOf(operation)))
const guarded = ofKind('key', 'workspace', 'session')

let ours: Workspace
let real: Record<string, string>
before(async () => {
  ours = await api.workspace()
  const made = async (path: string, body: object) => (await ours.post(path, body)).body.id
  const projects = ours.projectId
  const apps = await made('/apps', { platform: 'ios', name: 'A' })
  const features = await made('/features', { key: 'exports', name: 'E', type: 'metered' })
  const products = await made('/products', { key: 'pro', name: 'P', type: 'subscription', grants: [] })
  const customers = await made('/customers', { distinct_id: 'ada' })
  const grants = await made(`/customers/${customers}/grants`, { feature: 'exports', allowance: 5 })
  real = { projects, apps, features, products, customers, grants }
})

/** With an id of ours where `own`, else with one that nothing has. */
function call(by: Workspace['call'], operation: Described, own = false): Promise<Answer> {
  const [, resource = ''] = operation.path.split('/')
  const id = (own && real[resource]) || 'none'
  const path = operation.path
    .replace('/workspaces/{id}', `/workspaces/${ours.id}`)
    .replace('{distinct_id}', own ? 'ada' : 'none')
    .replace(/\{\w+\}/, id)
    .replaceAll(/\{\w+\}/g, 'none')
  const body = examples[operation.operationId]
  return by(operation.method, path, operation.requestBody === undefined ? {} : { body: body ?? {} })
}

async function keyThat(state: string): Promise<string> {
  const ws = await api.workspace()
  await api.pool.query(`update secret_key set ${state} = now() - interval '1 second' where workspace_id = $1`, [ws.id])
  await api.pool.query('update instance set revision = revision + 1')
  await api.directory.refresh()
  return ws.key
}

/** Every operation gets the same answer, or what differs is told for all of them at once. */
async function all(list: Described[], check: (operation: Described) => Promise<void>): Promise<void> {
  assert.ok(list.length > 0)
  const wrong: string[] = []
  for (const operation of list) {
    await check(operation).catch((error: unknown) => wrong.push(`${operation.operationId}: ${String(error)}`))
  }
  assert.deepEqual(wrong, [])
}

const letIn = ({ status, body }: Answer) =>
  assert.ok(![401, 402, 403].includes(status) && status < 500, `${status} ${JSON.stringify(body)}`)

group('every operation', () => {
  test('without a key is refused', () =>
    all(guarded, async (operation) => {
      const code = kindOf(operation) === 'key' ? 'invalid_api_key' : 'invalid_credentials'
      assertRefused(await call(caller(api.url, null), operation), 401, code)
      assertRefused(await call(caller(api.url, 'neither-key-nor-session'), operation), 401, code)
    }))

  test('with a publishable key is refused as the wrong kind', () =>
    all(guarded, async (operation) => {
      assertRefused(await call(caller(api.url, mintPublishableKey('live')), operation), 401, 'key_kind_invalid')
    }))

  for (const [name, state] of [
    ['an expired', 'expires_at'],
    ['a revoked', 'revoked_at'],
  ] as const) {
    test(`with ${name} secret key is refused`, async () => {
      const by = caller(api.url, await keyThat(state))
      await all(guarded, async (operation) => {
        const code = kindOf(operation) === 'key' ? 'invalid_api_key' : 'key_kind_invalid'
        assertRefused(await call(by, operation), 401, code)
      })
    })
  }

  test('on people with a live secret key is refused as the wrong kind', () =>
    all(ofKind('workspace', 'session'), async (operation) => {
      assertRefused(await call(ours.call, operation), 401, 'key_kind_invalid')
    }))

  test("with another workspace's secret key finds nothing of ours", async () => {
    const theirs = await api.workspace()
    const named = ofKind('key').filter(({ path }) => path.includes('{'))
    await all(named, async (operation) => {
      const answer = await call(theirs.call, operation, true)
      assert.ok([400, 404].includes(answer.status), `${answer.status} ${JSON.stringify(answer.body)}`)
      if (real[operation.path.split('/')[1] ?? ''] !== undefined && operation.method === 'GET') {
        assertRefused(answer, 404, 'not_found')
      }
    })
    const lists = ofKind('key').filter(({ path, method }) => method === 'GET' && !path.includes('{'))
    await all(lists, async (operation) => {
      const text = JSON.stringify((await call(theirs.call, operation)).body)
      assert.ok(Object.values(real).every((id) => !text.includes(id)))
    })
  })

  test('of a workspace of others is denied to a session', async () => {
    const stranger = await api.person({ of: await api.workspace(), role: 'owner' })
    await all(ofKind('workspace'), async (operation) => {
      assertRefused(await call(stranger.call, operation, true), 403, 'workspace_access_denied')
    })
    const elsewhere: Workspace['call'] = (method, path, options) =>
      stranger.call(method, path, { ...options, headers: { 'service-workspace-id': ours.id } })
    await all(ofKind('key'), async (operation) => {
      assertRefused(await call(elsewhere, operation, true), 403, 'workspace_access_denied')
    })
  })

  test("is open to a member's session, or says that it takes an admin", async () => {
    const member = await api.person({ of: ours, role: 'member' })
    await all(guarded, async (operation) => {
      if (operation.operationId === 'revokeToken') return
      const answer = await call(member.call, operation)
      const { operationId, method } = operation
      const admin = adminOnly.has(operationId) || (method === 'DELETE' && !forEverybody.has(operationId))
      if (admin) assertRefused(answer, 403, 'workspace_admin_required')
      else letIn(answer)
    })
  })

  test("is open to an admin's session", async () => {
    const admin = await api.person({ of: ours, role: 'admin' })
    await all(guarded, async (operation) => {
      if (operation.operationId !== 'revokeToken') letIn(await call(admin.call, operation))
    })
  })

  test('is closed to the session of an unverified user', async () => {
    const unverified = await api.person({ of: ours, role: 'owner', verified: false })
    await all(guarded, async (operation) => {
      if (forUnverified.has(operation.operationId)) return
      assertRefused(await call(unverified.call, operation), 403, 'email_verification_required')
    })
  })

  test('without the plan is closed to keys and sessions alike, but managing people is not', async () => {
    const poor = await api.workspace()
    const owner = await api.person({ of: poor, role: 'owner' })
    await api.pool.query(`update workspace set access = 'payment_required' where id = $1`, [poor.id])
    await api.pool.query('update instance set revision = revision + 1')
    await api.directory.refresh()
    await all(ofKind('key'), async (operation) => {
      assertRefused(await call(poor.call, operation), 402, 'billing_payment_required')
      assertRefused(await call(owner.call, operation), 402, 'billing_payment_required')
    })
  })

  test('that leads to a session needs none, and refuses what is no body', () =>
    all(ofKind('open'), async ({ method, path }) => {
      await api.pool.query('delete from attempt')
      assertRefused(await caller(api.url, null)(method, path, { body: {} }), 400, 'invalid_request')
      assertRefused(await caller(api.url, 'sk_whatever')(method, path, { body: { more: 1 } }), 400, 'invalid_request')
    }))
})
