import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { eventually } from '../app/project.ts'
import { startService } from '../harness/service.ts'
import { call } from '../harness/turnpike.ts'
import { type Said, turnpike } from './command.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const settings = { DATABASE_URL: service.databaseUrl, MASTER_KEY: Buffer.alloc(32, 7).toString('base64') }
const run = (...args: string[]) => turnpike(args, settings)
const rowsOf = (said: Said) =>
  said.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
const [workspace] = rowsOf(await run('workspaces', 'list', '--json'))

const signIn = (email: string, password: string) => call(service.url, '/v1/tokens', { email, password })

describe('users', () => {
  test('one that is made can sign in at once, and owns the workspace that was named', async () => {
    const said = await run('users', 'create', 'Grace@example.com', '--name', 'Grace', '--workspace', 'Navy')
    assert.deepEqual([said.code, said.err], [0, ''])
    const [, userId, workspaceId, password] =
      /^created user (usr_\w+), verified, owner of workspace (ws_\w+)\npassword (\w{20})\n$/.exec(said.out) ?? []
    const token = await signIn('grace@example.com', password ?? '')
    assert.equal(token.status, 201, JSON.stringify(token.body))
    const listed = rowsOf(await run('users', 'list', '--json')).find(({ id }) => id === userId)
    assert.deepEqual(
      [listed.email, listed.name, listed.verified, listed.workspaces],
      ['grace@example.com', 'Grace', true, `${workspaceId} owner`],
    )
    const again = await run('users', 'create', 'GRACE@example.com')
    assert.deepEqual([again.code, again.err], [1, 'turnpike: There is a user GRACE@example.com already.\n'])
  })

  test('a new password, given on standard input, ends every session and the old password', async () => {
    assert.equal(
      (await turnpike(['users', 'create', 'linus@example.com', '--password-stdin'], settings, 'first pass\n')).code,
      0,
    )
    const token = await signIn('linus@example.com', 'first pass')
    assert.equal(token.status, 201)
    const authorization = `Bearer ${(token.body as { token: string }).token}`
    assert.equal((await call(service.url, '/v1/workspaces', undefined, { authorization })).status, 200)

    const said = await turnpike(
      ['users', 'set-password', 'linus@example.com', '--password-stdin'],
      settings,
      'other pass\n',
    )
    assert.deepEqual(
      [said.code, said.out, said.err],
      [0, 'linus@example.com has a new password, and every session has ended\n', ''],
    )
    assert.equal((await call(service.url, '/v1/workspaces', undefined, { authorization })).status, 401)
    assert.equal((await signIn('linus@example.com', 'first pass')).status, 401)
    assert.equal((await signIn('linus@example.com', 'other pass')).status, 201)
  })

  test('sessions can be ended, and an address taken as verified', async () => {
    await turnpike(['users', 'create', 'ken@example.com', '--password-stdin'], settings, 'some password')
    const { token } = (await signIn('ken@example.com', 'some password')).body as { token: string }
    assert.equal((await run('users', 'sign-out', 'ken@example.com')).code, 0)
    const headers = { authorization: `Bearer ${token}` }
    assert.equal((await call(service.url, '/v1/workspaces', undefined, headers)).status, 401)

    const made = await call(service.url, '/v1/users', {
      email: 'new@example.com',
      password: 'long enough',
      name: 'New',
    })
    assert.equal(made.status, 201)
    assert.equal((await signIn('new@example.com', 'long enough')).status, 403)
    assert.equal((await run('users', 'verify', 'new@example.com')).out, 'new@example.com is verified\n')
    assert.equal(
      (await run('users', 'verify', 'new@example.com')).out,
      'new@example.com is verified, as it was before\n',
    )
    assert.equal((await signIn('new@example.com', 'long enough')).status, 201)
  })

  test('what is wrong is one line, and changes nothing', async () => {
    for (const [args, stdin, words] of [
      [['users', 'verify', 'nobody@example.com'], '', /There is no user nobody@example\.com/],
      [['users', 'create', 'no address'], '', /is no e-mail address/],
      [['users', 'create', 'short@example.com', '--password-stdin'], 'short', /a password has 8 to 256 characters/],
      [['users', 'create'], '', /usage: turnpike users create <email>/],
    ] as const) {
      const said = await turnpike([...args], settings, stdin)
      assert.deepEqual([said.code, said.out], [1, ''])
      assert.match(said.err, words)
      assert.equal(said.err.trim().split('\n').length, 1)
    }
  })
})

describe('keys', () => {
  test('one that is made works at once and is refused within a second of its revocation', async () => {
    const said = await run('keys', 'create', workspace.id, '--name', 'Nightly job', '--expires-in-days', '7')
    assert.deepEqual([said.code, said.err], [0, ''])
    const secret = said.out.trim()
    assert.match(secret, /^sk_\w{40}$/)
    const headers = { authorization: `Bearer ${secret}` }
    const status = async () => (await call(service.url, '/v1/projects', undefined, headers)).status
    await eventually(async () => (await status()) === 200, 2000)
    const list = await run('keys', 'list', '--workspace', workspace.id, '--json')
    const key = rowsOf(list).find(({ name }) => name === 'Nightly job')
    assert.equal(Math.round((Date.parse(key.expires) - Date.parse(key.created)) / 86_400_000), 7)
    assert.ok(!list.out.includes(secret))

    assert.equal((await run('keys', 'revoke', key.id)).code, 0)
    await eventually(async () => (await status()) === 401, 2000)
    assert.equal((await run('keys', 'revoke', key.id)).code, 1)
  })

  test('an expiry is 1 to 365 days, or none if that is said', async () => {
    for (const days of ['0', '366', '1.5', 'x', '']) {
      assert.equal((await run('keys', 'create', workspace.id, `--expires-in-days=${days}`)).code, 1, days)
    }
    assert.equal((await run('keys', 'create', 'ws_none')).code, 1)
    assert.equal((await run('keys', 'create', workspace.id, '--no-expiry', '--expires-in-days', '3')).code, 1)
    assert.equal((await run('keys', 'create', workspace.id, '--no-expiry')).code, 0)
    const [newest] = rowsOf(await run('keys', 'list', '--json'))
    assert.equal(newest.expires, null)
  })
})

describe('workspaces', () => {
  test('access is taken and given back within a second, and written into the audit log', async () => {
    const status = async () => (await service.workspace('GET', '/projects')).status
    assert.equal(await status(), 200)
    const said = await run('workspaces', 'access', workspace.id, 'payment_required')
    assert.equal(said.out, `${workspace.id}: active → payment_required\n`)
    await eventually(async () => (await status()) === 402, 2000)
    assert.equal((await run('workspaces', 'access', workspace.id, 'active')).code, 0)
    await eventually(async () => (await status()) === 200, 2000)
    const rows = await service.pool.query<{ action: string; actor_type: string }>(
      `select action, actor_type from audit_log where object = 'workspace' and object_id = $1 order by id`,
      [workspace.id],
    )
    assert.deepEqual(rows, [
      { action: 'set_access_payment_required', actor_type: 'operator' },
      { action: 'set_access_active', actor_type: 'operator' },
    ])
  })

  test('a state that is none, and a workspace that is not there, are refused', async () => {
    assert.match(
      (await run('workspaces', 'access', workspace.id, 'gone')).err,
      /accepts active, api_disabled, payment_required/,
    )
    assert.match((await run('workspaces', 'access', 'ws_none', 'active')).err, /There is no workspace ws_none/)
  })
})
