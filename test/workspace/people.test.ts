import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { membersMax, secretKeysMax, workspacesPerUserMax } from '../../src/kernel/limits.ts'
import { type Api, assertRefused, auditOf, caller, type Person, startApi } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

/** A workspace with an owner, an admin and a member, and somebody outside. */
async function people() {
  const ws = await api.workspace()
  const [owner, admin, member] = [
    await api.person({ of: ws, role: 'owner' }),
    await api.person({ of: ws, role: 'admin' }),
    await api.person({ of: ws, role: 'member' }),
  ]
  return { ws, owner, admin, member, stranger: await api.person(), path: `/workspaces/${ws.id}` }
}

const roleOf = async ({ call }: Person, path: string, userId: string) => {
  const { data } = (await call('GET', `${path}/members`)).body
  return data.find(({ id }: { id: string }) => id === userId)?.role
}

describe('workspaces', () => {
  test('somebody makes one, owns it, sees it and changes it', async () => {
    const person = await api.person()
    const made = await person.call('POST', '/workspaces', { body: { name: 'Zoë & Söhne' } })
    assert.equal(made.status, 201)
    const { id, created_at } = made.body
    assert.match(id, /^ws_/)
    assert.deepEqual(made.body, {
      object: 'workspace',
      id,
      name: 'Zoë & Söhne',
      slug: 'zoe-sohne',
      logo: null,
      created_at,
    })
    const listed = await person.call('GET', '/workspaces')
    assert.deepEqual(listed.body, { object: 'list', data: [made.body], has_more: false, next_cursor: null })
    const change = { slug: 'zoe', logo: 'https://example.com/a.png' }
    const changed = await person.call('PATCH', `/workspaces/${id}`, { body: change })
    assert.deepEqual(changed.body, { ...made.body, ...change })
    assert.deepEqual((await person.call('GET', `/workspaces/${id}`)).body, changed.body)
    assert.deepEqual(
      (await auditOf(api.pool, id)).map(({ action }) => action),
      ['create', 'update'],
    )
    const [row] = await api.pool.query<object>('select actor_type, actor_id from audit_log where object_id = $1', [id])
    assert.deepEqual(row, { actor_type: 'user', actor_id: person.id })
  })

  test('a slug belongs to one workspace: a made one steps aside, a wanted one is a conflict', async () => {
    const { call } = await api.person()
    const make = (body: object) => call('POST', '/workspaces', { body })
    assert.equal((await make({ name: 'Same name' })).body.slug, 'same-name')
    assert.match((await make({ name: 'same NAME!' })).body.slug, /^same-name-[0-9a-z]{6}$/)
    const { body } = await make({ name: 'Other' })
    assertRefused(await make({ name: 'A', slug: 'same-name' }), 409, 'conflict', 'slug')
    const change = await call('PATCH', `/workspaces/${body.id}`, { body: { slug: 'same-name' } })
    assertRefused(change, 409, 'conflict', 'slug')
    for (const slug of ['a', 'x'.repeat(64), 'Upper', '-a', 'a--b', 'ä'])
      assertRefused(await make({ name: 'A', slug }), 400, 'invalid_request', 'slug')
    assert.equal((await make({ name: 'A', slug: 'x'.repeat(63) })).status, 201)
    assert.equal((await make({ name: '…' })).body.slug, 'workspace')
  })

  test('a user is in at most so many', async () => {
    const person = await api.person()
    await api.pool.query(
      `with made as (insert into workspace (id, name, slug) select 'ws_' || $1 || n, 'W', $1 || n from generate_series(2, $2) n returning id)
       insert into member (workspace_id, user_id, role) select id, $3, 'member' from made`,
      [person.id.slice(4), workspacesPerUserMax, person.id],
    )
    assert.equal((await person.call('POST', '/workspaces', { body: { name: 'The last' } })).status, 201)
    assertRefused(await person.call('POST', '/workspaces', { body: { name: 'One more' } }), 409, 'conflict')
    assert.equal((await person.call('GET', '/workspaces')).body.data.length, workspacesPerUserMax)
  })

  test('the same Idempotency-Key makes one, and belongs to the user', async () => {
    const [one, other] = [await api.person(), await api.person()]
    const options = { body: { name: 'Once' }, idempotencyKey: 'once' }
    const [first, again] = [
      await one.call('POST', '/workspaces', options),
      await one.call('POST', '/workspaces', options),
    ]
    assert.deepEqual(again.body, first.body)
    assert.equal(again.headers.get('idempotent-replayed'), 'true')
    assert.notEqual((await other.call('POST', '/workspaces', options)).body.id, first.body.id)
  })
})

describe('members', () => {
  test('everybody in it sees who else is, page by page', async () => {
    const { owner, admin, member, path } = await people()
    const { data, next_cursor } = (await member.call('GET', `${path}/members?limit=2`)).body
    const rest = (await member.call('GET', `${path}/members?limit=2&cursor=${next_cursor}`)).body
    const all = [...data, ...rest.data]
    assert.deepEqual(new Set(all.map(({ id }) => id)), new Set([owner.id, admin.id, member.id]))
    assert.deepEqual(Object.keys(all[0]), ['object', 'id', 'email', 'name', 'role', 'created_at'])
  })

  test('roles are changed by admins, and those of owners by owners', async () => {
    const { owner, admin, member, path } = await people()
    const change = (by: Person, of: Person, role: string) =>
      by.call('PATCH', `${path}/members/${of.id}`, { body: { role } })
    assertRefused(await change(member, member, 'admin'), 403, 'workspace_admin_required')
    assertRefused(await change(admin, member, 'owner'), 403, 'workspace_admin_required')
    assertRefused(await change(admin, owner, 'member'), 403, 'workspace_admin_required')
    assert.equal((await change(admin, member, 'admin')).body.role, 'admin')
    assert.equal(await roleOf(owner, path, member.id), 'admin')
    assertRefused(await change(owner, owner, 'admin'), 409, 'conflict')
    assert.equal((await change(owner, member, 'owner')).status, 200)
    assert.equal((await change(owner, owner, 'member')).status, 200)
    assertRefused(await change(owner, member, 'member'), 403, 'workspace_admin_required')
    assertRefused(await change(member, { ...member, id: 'usr_nobody' }, 'admin'), 404, 'not_found')
  })

  test('everybody may leave but the last owner; who is gone is refused from the next request on', async () => {
    const { owner, admin, member, path } = await people()
    const remove = (by: Person, of: Person) => by.call('DELETE', `${path}/members/${of.id}`)
    assertRefused(await remove(member, admin), 403, 'workspace_admin_required')
    assertRefused(await remove(admin, owner), 403, 'workspace_admin_required')
    assertRefused(await remove(owner, owner), 409, 'conflict')
    assert.deepEqual((await remove(member, member)).body, { object: 'member', id: member.id, deleted: true })
    assertRefused(await member.call('GET', '/customers'), 403, 'workspace_access_denied')
    assertRefused(await member.call('GET', `${path}/members`), 403, 'workspace_access_denied')
    assert.equal((await remove(owner, admin)).status, 200)
    assertRefused(await remove(owner, admin), 404, 'not_found')
  })

  test('two owners who leave at the same instant leave one behind', async () => {
    for (let n = 0; n < 5; n++) {
      const { owner, admin, path } = await people()
      await owner.call('PATCH', `${path}/members/${admin.id}`, { body: { role: 'owner' } })
      const left = await Promise.all([owner, admin].map((who) => who.call('DELETE', `${path}/members/${who.id}`)))
      assert.deepEqual(
        left.map(({ status }) => status).toSorted((a, b) => a - b),
        [200, 409],
      )
    }
  })
})

describe('invitations', () => {
  test('the invited address is mailed, and its user becomes a member', async () => {
    const { ws, admin, path } = await people()
    const guest = await api.person({ email: `guest-${ws.id}@example.com` })
    const body = { email: guest.email.toUpperCase(), role: 'member' }
    const invited = await admin.call('POST', `${path}/invitations`, { body })
    assert.equal(invited.status, 201)
    const { id } = invited.body
    const [mail] = await api.mails()
    assert.equal(mail?.to, guest.email)
    assert.ok(mail?.text.includes(`https://turnpike.example/v1/invitations/${id}/accept`))
    assert.deepEqual((await admin.call('GET', `${path}/invitations`)).body.data, [invited.body])

    assertRefused(await admin.call('POST', `/invitations/${id}/accept`), 404, 'not_found')
    const unverified = await api.person({ email: `${guest.email}.other`, verified: false })
    assertRefused(await unverified.call('POST', `/invitations/${id}/accept`), 403, 'email_verification_required')
    const accepted = await guest.call('POST', `/invitations/${id}/accept`)
    assert.equal(accepted.status, 201)
    assert.deepEqual([accepted.body.id, accepted.body.role], [guest.id, 'member'])
    assertRefused(await guest.call('POST', `/invitations/${id}/accept`), 404, 'not_found')
    const headers = { 'service-workspace-id': ws.id }
    assert.equal((await guest.call('GET', '/customers', { headers })).status, 200)
    assertRefused(await admin.call('POST', `${path}/invitations`, { body }), 409, 'conflict', 'email')
    assert.deepEqual(
      (await auditOf(api.pool, id)).map(({ action }) => action),
      ['create', 'accept'],
    )
  })

  test('a newer one replaces the last, one taken back or too old is gone', async () => {
    const { ws, owner, path } = await people()
    const guest = await api.person({ email: `again-${ws.id}@example.com` })
    const invite = async () =>
      (await owner.call('POST', `${path}/invitations`, { body: { email: guest.email, role: 'admin' } })).body.id
    const accept = (id: string) => guest.call('POST', `/invitations/${id}/accept`)
    const [first, second] = [await invite(), await invite()]
    assertRefused(await accept(first), 404, 'not_found')
    assert.equal((await owner.call('DELETE', `${path}/invitations/${second}`)).status, 200)
    assertRefused(await owner.call('DELETE', `${path}/invitations/${second}`), 404, 'not_found')
    assertRefused(await accept(second), 404, 'not_found')
    const third = await invite()
    await api.pool.query('update invitation set expires_at = now() where id = $1', [third])
    assertRefused(await accept(third), 404, 'not_found')
    assert.equal((await accept(await invite())).status, 201)
    await api.mails()
  })

  test('nobody invites above their own role, and a workspace has at most so many', async () => {
    const { ws, owner, admin, member, path } = await people()
    const invite = (by: Person, email: string, role: string) =>
      by.call('POST', `${path}/invitations`, { body: { email, role } })
    assertRefused(await invite(member, 'a@example.com', 'member'), 403, 'workspace_admin_required')
    assertRefused(await invite(admin, 'a@example.com', 'owner'), 403, 'workspace_admin_required')
    await api.pool.query(
      `insert into invitation (id, workspace_id, email, role, invited_by, expires_at)
       select 'inv_' || $1 || n, $1, n || '@full', 'member', $2, now() + interval '1 day' from generate_series(5, $3) n`,
      [ws.id, owner.id, membersMax],
    )
    assert.equal((await invite(owner, 'last@example.com', 'owner')).status, 201)
    assertRefused(await invite(owner, 'more@example.com', 'member'), 409, 'conflict')
    await api.mails()
  })
})

describe('API keys', () => {
  test('an admin makes a key, uses it, sees it, and revokes it', async () => {
    const { ws, admin, path } = await people()
    const made = await admin.call('POST', `${path}/api-keys`, { body: { name: 'Backend' } })
    assert.equal(made.status, 201)
    const { key, ...shown } = made.body
    const { id, created_at, expires_at } = shown
    assert.match(key, /^sk_[0-9a-z]{40}$/)
    assert.deepEqual(shown, {
      object: 'api_key',
      id,
      name: 'Backend',
      prefix: 'sk_',
      created_by_user_id: admin.id,
      created_at,
      expires_at,
      last_used_at: null,
      enabled: true,
    })
    assert.equal(Date.parse(expires_at) - Date.parse(created_at), 90 * 86_400_000)
    const backend = caller(api.url, key)
    assert.equal((await backend('GET', '/projects')).body.data[0].id, ws.projectId)
    const listed = (await admin.call('GET', `${path}/api-keys`)).body.data
    assert.deepEqual(Object.keys(listed[0]), Object.keys(shown))
    assert.ok(!JSON.stringify(listed).includes(key))
    const revoked = await admin.call('DELETE', `${path}/api-keys/${id}`)
    assert.deepEqual(revoked.body, { object: 'api_key', id, deleted: true })
    assertRefused(await backend('GET', '/projects'), 401, 'invalid_api_key')
    assertRefused(await admin.call('DELETE', `${path}/api-keys/${id}`), 404, 'not_found')
    assert.ok((await admin.call('GET', `${path}/api-keys`)).body.data.every((each: { id: string }) => each.id !== id))
  })

  test('it lives from a day to a year, ninety days unless said otherwise, or for ever', async () => {
    const { owner, path } = await people()
    const make = (body: object) => owner.call('POST', `${path}/api-keys`, { body: { name: 'K', ...body } })
    for (const expiresInDays of [1, 365]) {
      const { created_at, expires_at } = (await make({ expiresInDays })).body
      assert.equal(Date.parse(expires_at) - Date.parse(created_at), expiresInDays * 86_400_000)
    }
    assert.equal((await make({ expiresInDays: null })).body.expires_at, null)
    for (const expiresInDays of [0, 366, 1.5, '7']) {
      assertRefused(await make({ expiresInDays }), 400, 'invalid_request', 'expiresInDays')
    }
    for (const name of ['', ' ', 'x'.repeat(101)]) assertRefused(await make({ name }), 400, 'invalid_request', 'name')
    assert.equal((await make({ name: 'x'.repeat(100) })).status, 201)
    assertRefused(await make({ expires_in_days: 1 }), 400, 'unknown_field', 'expires_in_days')
  })

  test('an expired one is refused and shown as such', async () => {
    const { owner, path } = await people()
    const { body } = await owner.call('POST', `${path}/api-keys`, { body: { name: 'Short', expiresInDays: 1 } })
    await api.pool.query(`update secret_key set expires_at = now() where id = $1`, [body.id])
    await api.pool.query('update instance set revision = revision + 1')
    await api.directory.refresh()
    assertRefused(await caller(api.url, body.key)('GET', '/projects'), 401, 'invalid_api_key')
    const [shown] = (await owner.call('GET', `${path}/api-keys?limit=1`)).body.data
    assert.deepEqual([shown.id, shown.enabled], [body.id, false])
  })

  test('a repeated request gets the same secret, which is sealed where it is kept', async () => {
    const { ws, owner, path } = await people()
    const options = { body: { name: 'Once' }, idempotencyKey: 'key-1' }
    const [first, again] = [
      await owner.call('POST', `${path}/api-keys`, options),
      await owner.call('POST', `${path}/api-keys`, options),
    ]
    assert.deepEqual(again.body, first.body)
    const kept = JSON.stringify(await api.pool.query('select * from idempotency where workspace_id = $1', [ws.id]))
    assert.ok(kept.length > 50 && !kept.includes(first.body.key) && !kept.includes(first.body.id))
  })

  test('a workspace has at most so many', async () => {
    const { ws, owner, path } = await people()
    await api.pool.query(
      `insert into secret_key (id, workspace_id, hash)
       select 'key_' || $1 || n, $1, sha256(convert_to($1 || n, 'UTF8')) from generate_series(3, $2) n`,
      [ws.id, secretKeysMax],
    )
    assert.equal((await owner.call('POST', `${path}/api-keys`, { body: { name: 'Last' } })).status, 201)
    assertRefused(await owner.call('POST', `${path}/api-keys`, { body: { name: 'More' } }), 409, 'conflict')
  })

  test('without the plan nobody makes keys, but leaked ones are revoked and people managed', async () => {
    const { ws, owner, path } = await people()
    const { body } = await owner.call('POST', `${path}/api-keys`, { body: { name: 'Leaked' } })
    for (const [access, code] of [
      ['api_disabled', 'api_access_required'],
      ['payment_required', 'billing_payment_required'],
    ] as const) {
      await api.pool.query('update workspace set access = $2 where id = $1', [ws.id, access])
      assertRefused(await owner.call('POST', `${path}/api-keys`, { body: { name: 'No' } }), 402, code)
      assertRefused(await owner.call('GET', '/customers'), 402, code)
      assert.equal((await owner.call('GET', `${path}/members`)).status, 200)
    }
    assert.equal((await owner.call('DELETE', `${path}/api-keys/${body.id}`)).status, 200)
  })
})

describe('sessions on the resources', () => {
  test('the workspace is named in a header; one of others and one that is not are the same', async () => {
    const { member, stranger, path } = await people()
    const other = await api.workspace()
    const named = (id: string) => ({ headers: { 'service-workspace-id': id } })
    assertRefused(await stranger.call('GET', '/customers'), 400, 'invalid_request', 'Service-Workspace-Id')
    for (const id of [other.id, 'ws_nobody', 'nonsense', '']) {
      assertRefused(await member.call('GET', '/customers', named(id)), 403, 'workspace_access_denied')
    }
    assertRefused(await stranger.call('GET', path), 403, 'workspace_access_denied')
    assertRefused(await stranger.call('GET', '/workspaces/ws_nobody'), 403, 'workspace_access_denied')
  })

  test('a member edits catalogue and customers; keys, apps and deletions need an admin', async () => {
    const { ws, admin, member } = await people()
    const feature = { key: 'exports', name: 'Exports', type: 'metered' }
    assert.equal((await member.call('POST', '/features', { body: feature })).status, 201)
    assert.equal((await member.call('PATCH', '/features/exports', { body: { name: 'E' } })).status, 200)
    const product = { key: 'pro', name: 'Pro', type: 'subscription', grants: [{ feature: 'exports', allowance: 5 }] }
    assert.equal((await member.call('POST', '/products', { body: product })).status, 201)
    const customer = await member.call('POST', '/customers', { body: { distinct_id: 'ada' } })
    assert.equal(customer.status, 201)
    const grant = await member.call('POST', `/customers/${customer.body.id}/grants`, {
      body: { feature: 'exports', allowance: 1 },
    })
    assert.equal(grant.status, 201)
    const [entry] = (await member.call('GET', `/customers/${customer.body.id}/ledger`)).body.data
    assert.equal(entry.actor, member.id)

    const project = { body: { name: 'P' } }
    assertRefused(await member.call('POST', '/projects', project), 403, 'workspace_admin_required')
    const made = await admin.call('POST', '/projects', project)
    assert.equal(made.status, 201)
    const app = { body: { project_id: ws.projectId, platform: 'ios', name: 'A' } }
    assertRefused(await member.call('POST', '/apps', app), 403, 'workspace_admin_required')
    const { body } = await admin.call('POST', '/apps', app)
    const keys = `/apps/${body.id}/publishable_keys`
    assertRefused(await member.call('POST', keys), 403, 'workspace_admin_required')
    const key = await admin.call('POST', keys)
    assert.equal((await member.call('GET', keys)).status, 200)
    assertRefused(await member.call('DELETE', `${keys}/${key.body.id}`), 403, 'workspace_admin_required')
    assertRefused(await member.call('DELETE', `/projects/${made.body.id}`), 403, 'workspace_admin_required')
    assert.equal((await admin.call('DELETE', `/projects/${made.body.id}`)).status, 200)
    const [row] = await api.pool.query<object>(
      `select actor_type, actor_id from audit_log where object_id = $1 and action = 'create'`,
      [made.body.id],
    )
    assert.deepEqual(row, { actor_type: 'user', actor_id: admin.id })
  })
})
