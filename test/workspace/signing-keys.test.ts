import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { signingKeyIdCharsMax, signingKeysMax } from '../../src/kernel/limits.ts'
import { type Api, assertRefused, auditOf, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

const printed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex').toString(
  'base64',
)
const seed = (n: number) =>
  Buffer.from(`a seed of thirty-two bytes: no ${n}!`.padEnd(32, '.').slice(0, 32)).toString('base64')

async function anApp(ws: Workspace): Promise<string> {
  return (await ws.post('/apps', { project_id: ws.projectId, platform: 'ios', name: 'A' })).body.id
}

describe('200 and 201', () => {
  test('a key is created under its thumbprint, listed, and no answer has its secret', async () => {
    const ws = await api.workspace()
    const made = await ws.post('/signing_keys', {})
    assert.equal(made.status, 201, JSON.stringify(made.body))
    const { id, key_id, public_key, created_at, ...rest } = made.body
    assert.match(id, /^skey_/)
    assert.match(key_id, /^[\w-]{43}$/)
    assert.equal(Buffer.from(public_key, 'base64').length, 32)
    assert.ok(created_at)
    assert.deepEqual(rest, {
      object: 'signing_key',
      project_id: ws.projectId,
      environment: 'test',
      status: 'staged',
      can_sign: true,
      signs_for: [],
    })
    assert.deepEqual((await ws.get(`/signing_keys/${id}`)).body, made.body)
    const second = await ws.post('/signing_keys', { key_id: 'named' })
    const { data } = (await ws.get('/signing_keys')).body
    assert.deepEqual(data, [second.body, made.body])
    assert.deepEqual((await ws.get('/signing_keys', { environment: 'live' })).body.data, [])
    assert.deepEqual(
      (await auditOf(api.pool, id)).map(({ action }) => action),
      ['create'],
    )
    const [row] = await api.pool.query<{ sealed_seed: string }>(
      'select sealed_seed from signing_key where public_id = $1',
      [id],
    )
    assert.equal(Buffer.from(row?.sealed_seed ?? '', 'base64').length, 12 + 16 + 44)
  })

  test('a key is imported with its seed, with both, or to verify only', async () => {
    const ws = await api.workspace()
    const signing = await ws.post('/signing_keys/import', { key_id: 'a', seed: seed(1) })
    assert.equal(signing.status, 201, JSON.stringify(signing.body))
    assert.equal(signing.body.can_sign, true)
    const { public_key } = signing.body
    const both = await ws.post('/signing_keys/import', { key_id: 'b', seed: seed(1), public_key })
    assert.equal(both.status, 201)
    const verifying = await ws.post('/signing_keys/import', { key_id: 'c', public_key })
    assert.deepEqual([verifying.body.can_sign, verifying.body.public_key], [false, public_key])
    assert.equal((await ws.post('/signing_keys/import', { key_id: 'd', seed: printed })).status, 201)
  })

  test('keys are rotated for all apps, or app by app: one signs for each, what signs nowhere is retired', async () => {
    const ws = await api.workspace()
    const [one, two] = [await anApp(ws), await anApp(ws)]
    const [{ body: old }, { body: next }] = [await ws.post('/signing_keys', {}), await ws.post('/signing_keys', {})]
    const state = async (id: string) => {
      const { body } = await ws.get(`/signing_keys/${id}`)
      return [body.status, body.signs_for]
    }
    await ws.post(`/signing_keys/${old.id}/activate`, {})
    assert.deepEqual(await state(old.id), ['active', ['*']])
    await ws.post(`/signing_keys/${next.id}/activate`, { app_ids: [one] })
    assert.deepEqual(
      [await state(old.id), await state(next.id)],
      [
        ['active', ['*']],
        ['active', [one]],
      ],
    )
    await ws.post(`/signing_keys/${old.id}/activate`, { app_ids: [one, two] })
    assert.deepEqual(await state(next.id), ['retired', []])
    const activated = await ws.post(`/signing_keys/${next.id}/activate`, {})
    assert.deepEqual([activated.body.status, activated.body.signs_for], ['active', ['*']])
    assert.deepEqual(await state(old.id), ['retired', []])
    assert.equal((await ws.post(`/signing_keys/${old.id}/revoke`)).body.status, 'revoked')
    assert.equal((await ws.post(`/signing_keys/${old.id}/revoke`)).status, 200)
  })

  test('two activations at once leave one key that signs', async () => {
    const ws = await api.workspace()
    const keys = await Promise.all(Array.from({ length: 4 }, () => ws.post('/signing_keys', {})))
    await Promise.all(keys.map(({ body }) => ws.post(`/signing_keys/${body.id}/activate`, {})))
    const { data } = (await ws.get('/signing_keys')).body
    const states = data.map(({ status }: { status: string }) => status).toSorted()
    assert.deepEqual(states, ['active', 'retired', 'retired', 'retired'])
  })
})

describe('400', () => {
  test('material that is none, of another length, weak or of two keys', async () => {
    const ws = await api.workspace()
    const tryIt = (body: object) => ws.post('/signing_keys/import', { key_id: 'k', ...body })
    assertRefused(await tryIt({}), 400, 'invalid_request')
    for (const length of [0, 31, 33]) {
      const short = Buffer.alloc(length, 5).toString('base64')
      assertRefused(await tryIt({ seed: short }), 400, 'key_weak', 'seed')
      assertRefused(await tryIt({ public_key: short }), 400, 'key_weak', 'public_key')
    }
    const identity = Buffer.from(`01${'00'.repeat(31)}`, 'hex').toString('base64')
    assertRefused(await tryIt({ public_key: identity }), 400, 'key_weak', 'public_key')
    assertRefused(await tryIt({ seed: 'not base64!' }), 400, 'invalid_request')
    const { body: other } = await ws.post('/signing_keys', {})
    assertRefused(await tryIt({ seed: seed(2), public_key: other.public_key }), 400, 'invalid_request', 'public_key')
  })

  test('a seed that is printed somewhere signs in test only', async () => {
    const ws = await api.workspace()
    const body = { key_id: 'k', seed: printed }
    assertRefused(await ws.post('/signing_keys/import', body, { environment: 'live' }), 400, 'key_is_public')
  })

  test(`a key id has 1 to ${signingKeyIdCharsMax} characters`, async () => {
    const ws = await api.workspace()
    assert.equal((await ws.post('/signing_keys', { key_id: 'k'.repeat(signingKeyIdCharsMax) })).status, 201)
    for (const key_id of ['', ' k', 'k'.repeat(signingKeyIdCharsMax + 1)]) {
      assertRefused(await ws.post('/signing_keys', { key_id }), 400, 'invalid_request')
    }
  })
})

describe('403, 404 and 409', () => {
  test('a member may look at keys, not change them', async () => {
    const ws = await api.workspace()
    const { body: key } = await ws.post('/signing_keys', {})
    const member = await api.person({ of: ws, role: 'member' })
    assert.equal((await member.call('GET', `/signing_keys/${key.id}`)).status, 200)
    for (const path of ['', '/import', `/${key.id}/activate`, `/${key.id}/revoke`]) {
      const answer = await member.call('POST', `/signing_keys${path}`, { body: { key_id: 'k' } })
      assertRefused(answer, 403, 'workspace_admin_required')
    }
  })

  test('keys and apps of others are not found', async () => {
    const [ws, other] = [await api.workspace(), await api.workspace()]
    const { body: key } = await ws.post('/signing_keys', {})
    assertRefused(await other.get(`/signing_keys/${key.id}`), 404, 'not_found')
    assertRefused(await other.post(`/signing_keys/${key.id}/activate`, {}), 404, 'not_found')
    assertRefused(await ws.get(`/signing_keys/${key.id}`, { environment: 'live' }), 404, 'not_found')
    const app_ids = [await anApp(other)]
    assertRefused(await ws.post(`/signing_keys/${key.id}/activate`, { app_ids }), 404, 'not_found')
  })

  test('a key id stays with its key, a revoked one included', async () => {
    const ws = await api.workspace()
    const { body: key } = await ws.post('/signing_keys', { key_id: 'k' })
    await ws.post(`/signing_keys/${key.id}/revoke`)
    assertRefused(await ws.post('/signing_keys', { key_id: 'k' }), 409, 'key_id_in_use', 'key_id')
    assertRefused(await ws.post('/signing_keys/import', { key_id: 'k', seed: seed(3) }), 409, 'key_id_in_use')
    assert.equal((await ws.post('/signing_keys', { key_id: 'k' }, { environment: 'live' })).status, 201)
  })

  test('the key that signs needs a successor first; one that cannot sign or was revoked never signs', async () => {
    const ws = await api.workspace()
    const { body: key } = await ws.post('/signing_keys', {})
    await ws.post(`/signing_keys/${key.id}/activate`, {})
    for (const verb of ['retire', 'revoke']) {
      assertRefused(await ws.post(`/signing_keys/${key.id}/${verb}`), 409, 'conflict')
    }
    const { public_key } = key
    const { body: verifying } = await ws.post('/signing_keys/import', { key_id: 'v', public_key })
    assertRefused(await ws.post(`/signing_keys/${verifying.id}/activate`, {}), 409, 'conflict')
    await ws.post(`/signing_keys/${verifying.id}/revoke`)
    for (const verb of ['activate', 'retire']) {
      assertRefused(await ws.post(`/signing_keys/${verifying.id}/${verb}`), 409, 'conflict')
    }
  })

  test(`an environment has at most ${signingKeysMax} keys`, async () => {
    const ws = await api.workspace()
    await Promise.all(Array.from({ length: signingKeysMax }, () => ws.post('/signing_keys', {})))
    assertRefused(await ws.post('/signing_keys', {}), 409, 'conflict')
    assert.equal((await ws.post('/signing_keys', {}, { environment: 'live' })).status, 201)
  })
})
