import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { createFirstWorkspace, setPassword } from '../../src/tenancy/index.ts'
import { somebodyWaits } from '../harness/waits.ts'
import { type Api, assertRefused, caller, startApi } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())
const anyone = caller(api.url, null)
const post = (path: string, body: unknown) => anyone('POST', path, { body })
const password = 'correct horse'

/** Every test calls from one address; only those about counting want to be counted. */
beforeEach(() => api.pool.query('delete from attempt'))

let people = 0
async function signUp(email = `person-${people++}@example.com`) {
  const answer = await post('/users', { email, password, name: 'Ada' })
  assert.equal(answer.status, 201)
  const [mail] = await api.mails()
  return { email, user: answer.body, token: tokenIn(mail?.text ?? '') }
}

async function verified() {
  const person = await signUp()
  assert.equal((await post('/email_verifications', { token: person.token })).status, 200)
  return person
}

const signIn = (email: string, word = password) => post('/tokens', { email, password: word })

function tokenIn(text: string): string {
  return /"token":"([^"]+)"/.exec(text)?.[1] ?? ''
}

describe('POST /users', () => {
  test('somebody signs up, and is mailed a token that verifies the address', async () => {
    const { email, user, token } = await signUp('Ada.Lovelace@Example.com')
    assert.deepEqual(
      { ...user, id: 'usr_…', created_at: '…' },
      { object: 'user', id: 'usr_…', email: email.toLowerCase(), name: 'Ada', email_verified: false, created_at: '…' },
    )
    assert.match(user.id, /^usr_[0-9a-z]{24}$/)
    assertRefused(await signIn(email), 403, 'email_verification_required')
    const verified = await post('/email_verifications', { token })
    assert.deepEqual(verified.body, { object: 'email_verification', verified: true })
    assert.equal((await signIn(email)).status, 201)
  })

  test('an address that has an account is answered like any other, and its owner is told', async () => {
    const { email, user } = await verified()
    const again = await post('/users', { email: email.toUpperCase(), password: 'another one', name: 'Eve' })
    assert.equal(again.status, 201)
    assert.deepEqual(Object.keys(again.body), Object.keys(user))
    assert.notEqual(again.body.id, user.id)
    const [mail] = await api.mails()
    assert.equal(mail?.to, email)
    assert.match(mail?.text ?? '', /has an account already/)
    assertRefused(await signIn(email, 'another one'), 401, 'invalid_credentials')
    assert.equal((await signIn(email)).status, 201)
  })

  test('who never verified the address is mailed another token', async () => {
    const { email } = await signUp()
    const { token } = await signUp(email)
    assert.equal((await post('/email_verifications', { token })).status, 200)
    assert.equal((await signIn(email)).status, 201)
  })

  test('two at the same instant become one user, and both are answered alike', async () => {
    const email = 'twice@example.com'
    const both = await Promise.all([1, 2].map(() => post('/users', { email, password, name: 'Ada' })))
    assert.deepEqual(
      both.map(({ status }) => status),
      [201, 201],
    )
    assert.equal((await api.pool.query('select 1 from users where email = $1', [email])).length, 1)
    await api.mails()
  })

  test('what is no address, password or name is refused at its bounds', async () => {
    const good = { email: 'good@example.com', password, name: 'Ada' }
    const bad = [
      { email: 'no address' },
      { email: `${'a'.repeat(243)}@example.com` },
      { email: '' },
      { password: 'seven77' },
      { password: 'x'.repeat(257) },
      { password: 'has\0nul-in-it' },
      { name: ' ' },
      { name: 'x'.repeat(201) },
      { extra: 1 },
    ]
    for (const change of bad) {
      const answer = await post('/users', { ...good, ...change })
      assert.equal(answer.status, 400, JSON.stringify(change))
    }
    for (const change of [
      { email: `${'a'.repeat(242)}@example.com`, password: 'x'.repeat(256), name: 'x'.repeat(200) },
      { password: 'eight888' },
    ]) {
      assert.equal((await post('/users', { ...good, ...change })).status, 201)
    }
    await api.mails()
  })
})

describe('POST /email_verifications', () => {
  test('a made-up, changed or expired token is refused', async () => {
    const { token } = await signUp()
    const [head, body, signature] = token.split('.')
    for (const wrong of ['x', `${head}.${body}.${signature?.slice(1)}`, `${head}.${body}.`, 'a.b.c']) {
      assertRefused(await post('/email_verifications', { token: wrong }), 400, 'invalid_request', 'token')
    }
  })
})

describe('POST /tokens', () => {
  test('a session token, whose hash alone is stored', async () => {
    const { email, user } = await verified()
    const { status, body } = await signIn(email)
    assert.equal(status, 201)
    assert.deepEqual(
      { ...body, token: '…', expires_at: '…' },
      {
        object: 'token',
        token: '…',
        expires_at: '…',
        user: { id: user.id, email, name: 'Ada' },
      },
    )
    const days = (Date.parse(body.expires_at) - Date.now()) / 86_400_000
    assert.ok(days > 29.9 && days < 30.1)
    const stored = await api.pool.query<{ token: string }>('select token from user_session where user_id = $1', [
      user.id,
    ])
    assert.equal(stored.length, 1)
    assert.notEqual(stored[0]?.token, body.token)
    assert.deepEqual((await caller(api.url, body.token)('GET', '/workspaces')).body.data, [])
  })

  test('the first owner signs in, whatever the address looks like, with the password of the first run', async () => {
    const owner = { email: 'Owner@localhost', password: 'of the first run' }
    await api.pool.transaction(async (tx) => createFirstWorkspace(tx, owner))
    const { body } = await post('/tokens', owner)
    const { data } = (await caller(api.url, body.token)('GET', '/workspaces')).body
    assert.deepEqual(
      data.map(({ slug }: { slug: string }) => slug),
      ['my-workspace'],
    )
  })

  test('a wrong password and an unknown address are one answer, after the same work', async () => {
    const { email } = await verified()
    const wrong = await signIn(email, 'wrong password')
    const unknown = await signIn('nobody@example.com')
    assertRefused(wrong, 401, 'invalid_credentials')
    const { request_id: _1, ...first } = wrong.body.error
    const { request_id: _2, ...second } = unknown.body.error
    assert.deepEqual(first, second)
  })

  test('the tenth attempt is judged and the eleventh refused, with what is left in the headers', async () => {
    const { email } = await verified()
    await api.pool.query('delete from attempt')
    for (let n = 1; n <= 10; n++) {
      const answer = await signIn(email, 'wrong password')
      assertRefused(answer, 401, 'invalid_credentials')
      assert.equal(answer.headers.get('ratelimit-limit'), '10')
      assert.equal(answer.headers.get('ratelimit-remaining'), String(10 - n))
    }
    const refused = await signIn(email)
    assertRefused(refused, 429, 'rate_limited')
    assert.equal(refused.headers.get('ratelimit-remaining'), '0')
    const wait = Number(refused.headers.get('retry-after'))
    assert.ok(wait > 800 && wait <= 900)
    assert.equal(refused.headers.get('ratelimit-reset'), String(wait))
    assertRefused(await signIn('nobody-else@example.com'), 429, 'rate_limited')
  })
})

describe('DELETE /tokens/current', () => {
  test('ends this session and no other', async () => {
    const { email } = await verified()
    const [one, other] = [await signIn(email), await signIn(email)].map(({ body }) => caller(api.url, body.token))
    const ended = await one?.('DELETE', '/tokens/current')
    assert.deepEqual(ended?.body, { object: 'token', revoked: true })
    assertRefused(await caller(api.url, 'none')('DELETE', '/tokens/current'), 401, 'invalid_credentials')
    assertRefused((await one?.('GET', '/workspaces')) ?? ended, 401, 'invalid_credentials')
    assert.equal((await other?.('GET', '/workspaces'))?.status, 200)
  })

  test('a session whose time is over is none', async () => {
    const person = await api.person()
    assert.equal((await person.call('GET', '/workspaces')).status, 200)
    await api.pool.query('update user_session set expires_at = now() where user_id = $1', [person.id])
    assertRefused(await person.call('GET', '/workspaces'), 401, 'invalid_credentials')
  })
})

describe('password resets', () => {
  test('a new password is set once, and ends every session', async () => {
    const { email } = await verified()
    const { body } = await signIn(email)
    const asked = await post('/password_resets', { email: email.toUpperCase() })
    assert.equal(asked.status, 202)
    const token = tokenIn((await nextMail()).text)
    const stored = JSON.stringify(await api.pool.query('select * from user_verification'))
    assert.ok(!stored.includes(token))
    const confirm = () => post('/password_resets/confirm', { token, password: 'a new password' })
    const both = await Promise.all([confirm(), confirm()])
    assert.deepEqual(
      both.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 400],
    )
    assertRefused(await confirm(), 400, 'invalid_request', 'token')
    assertRefused(await caller(api.url, body.token)('GET', '/workspaces'), 401, 'invalid_credentials')
    assertRefused(await signIn(email), 401, 'invalid_credentials')
    assert.equal((await signIn(email, 'a new password')).status, 201)
  })

  test('who signs in with the old password while it is changed gets no session', async () => {
    const { email, user } = await verified()
    const { signing } = await api.pool.transaction(async (tx) => {
      // The old password is verified while nobody sees the new one yet.
      await tx.query('lock table user_session in share mode')
      const going = signIn(email)
      await Promise.race([somebodyWaits(api.pool), going])
      await setPassword(tx, email, 'a new password')
      return { signing: going }
    })
    assertRefused(await signing, 401, 'invalid_credentials')
    assert.deepEqual(await api.pool.query('select id from user_session where user_id = $1', [user.id]), [])
    assert.equal((await signIn(email, 'a new password')).status, 201)
  })

  test('an unknown address is answered alike and mailed nothing; a made-up and a late token are refused', async () => {
    const { email } = await verified()
    const [known, unknown] = [
      await post('/password_resets', { email }),
      await post('/password_resets', { email: 'x@y.z' }),
    ]
    assert.deepEqual([known.status, known.body], [unknown.status, unknown.body])
    const mail = await nextMail()
    assert.equal(mail.to, email)
    assert.deepEqual(await api.mails(), [])
    await api.pool.query('update user_verification set expires_at = now()')
    for (const token of ['made up', tokenIn(mail.text)]) {
      assertRefused(await post('/password_resets/confirm', { token, password }), 400, 'invalid_request', 'token')
    }
  })
})

/** The work goes on after the answer. */
async function nextMail() {
  for (;;) {
    const [mail] = await api.mails()
    if (mail) return mail
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
