import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, describe, test } from 'node:test'
import { signApple, testPki } from '../harness/apple-pki.ts'
import { startService } from '../harness/service.ts'
import type { Body } from './answers.ts'
import { openCards } from './card-world.ts'
import { openPlay } from './play-world.ts'
import { eventually } from './project.ts'
import { openStore } from './store-world.ts'

/** Everything happens that can happen to a purchase, good and bad; then whatever must stay secret is looked for everywhere. */
const service = await startService({ LOG_LEVEL: 'trace' })
const apple = await openStore(service)
const play = await openPlay(service)
const cards = await openCards(service)
after(async () => {
  for (const world of [apple, play, cards]) await world[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

/** What must not be found, by what it is. Of long ones a part that is theirs alone. */
const secrets = new Map<string, string>()
const keep = (what: string, text: string) => {
  secrets.set(what, text)
  return text
}
/** Of a key the bytes in its middle; of what is signed its signature. */
const core = (pem: string) => pem.replaceAll(/-----[^-]+-----|\s/g, '').slice(40, 90)
const signatureOf = (jws: string) => jws.split('.')[2] ?? ''

keep('the key of the App Store', core(apple.store.key.private_key))
keep('the key of the service account', core(String(play.store.serviceAccount.private_key)))
keep('the secret key of Stripe', cards.store.secretKey)
keep('the secret of the webhook', cards.store.webhookSecret)

/** Answers, whatever they say, but for the token that whoever brings it hears again when it was taken. */
const said: string[] = []
async function hear<T extends { body: Body }>(asking: Promise<T>): Promise<T> {
  const answer = await asking
  const { purchase_token: echo, ...rest } = answer.body ?? {}
  said.push(JSON.stringify(rest.success === true ? rest : { ...rest, echo }))
  return answer
}
async function post(url: string, body: object, headers: Record<string, string> = {}): Promise<void> {
  const response = await fetch(url, {
    ...{ method: 'POST', body: JSON.stringify(body) },
    headers: { 'content-type': 'application/json', ...headers },
  })
  said.push(await response.text())
}

/** What a store says that fails, and repeats all that it was sent. */
const repeated = () => JSON.stringify({ error: { message: [...secrets.values()].join(' '), code: 'unknown' } })
const failures = [400, 401, 403, 404, 409, 410, 429, 500, 503]

async function useAppStore(): Promise<void> {
  let signed = 0
  const sign = (claims: Record<string, unknown>, pki = apple.pki) => {
    const text = signApple(pki, claims)
    keep(`transaction ${++signed}`, signatureOf(text))
    return text
  }
  const bring = (who: string, transaction_jwt: string, more: object = {}) =>
    hear(apple.app.post('/purchase', { type: 'appstore', distinct_id: who, transaction_jwt, ...more }))
  const bought = apple.subscription('ann')
  apple.store.tell(bought, 1)
  assert.equal((await bring('ann', sign(bought))).status, 200)
  await bring('ben', sign(bought))
  await bring('ann', sign(bought, await testPki()))
  await bring('ann', sign(apple.transaction('ann', { productId: 'com.example.unmapped' })))
  await bring('ann', sign(apple.transaction('ann', { bundleId: 'com.example.other' })))
  for (const status of failures) {
    const failing = apple.subscription('ann')
    const path = `/inApps/v1/subscriptions/${String(failing.originalTransactionId)}`
    apple.store.answers.set(path, { status, body: repeated() })
    await bring('ann', sign(failing))
  }
  const signedTransaction = sign(apple.transaction('ann', { type: 'Consumable', productId: 'com.example.pack' }))
  const spend = { customerId: 'ann', featureId: 'exports', operationId: 'op', quantity: 1 }
  const spent = { ...spend, purchase: { type: 'appstore', signedTransaction } }
  assert.equal((await hear(apple.app.post('/feature/consume', spent))).status, 200)
  for (const pki of [apple.pki, await testPki()]) {
    const data = { bundleId: 'com.example.app', environment: 'Sandbox', signedTransactionInfo: sign(bought) }
    const signedPayload = signApple(pki, {
      ...{ notificationType: 'DID_RENEW', notificationUUID: crypto.randomUUID(), version: '2.0' },
      ...{ signedDate: Date.now(), data },
    })
    keep(`notification ${++signed}`, signatureOf(signedPayload))
    await post(`${service.url}/webhooks/appstore/${apple.app.id}`, { signedPayload })
  }
}

async function usePlay(): Promise<void> {
  const sold = (token: string, nth = secrets.size) => keep(`token ${nth}`, token)
  const token = sold(play.subscribe('ann'))
  assert.equal((await hear(play.bring('ann', token))).status, 200)
  await hear(play.bring('ben', token))
  await hear(play.bring('ann', sold('token-that-nobody-sold-0123456789')))
  await hear(play.bring('ann', sold(play.buy('ann', 'unmapped'))))
  await hear(play.bring('ann', sold(play.buy('ann', 'pack')), { consume_purchase: true }))
  for (const status of failures) {
    play.store.fault = () => ({ status, body: repeated() })
    await hear(play.bring('ann', sold(play.subscribe('ann'))))
  }
  play.store.fault = undefined
  await play.notify(token)
  const bearer = await play.store.bearer('https://elsewhere.example.com')
  keep('a bearer', signatureOf(bearer))
  await play.store.push(play.webhook, { version: '1.0' }, { bearer })
}

async function useStripe(): Promise<void> {
  const { session, root } = await cards.buy('ann', ['monthly', 'pack'])
  await cards.tell('checkout.session.completed', session)
  for (const status of failures) {
    cards.store.fault = () => ({ status, body: repeated() })
    await hear(cards.checkout(`ann-${status}`, ['monthly']))
    await cards.tell('customer.subscription.updated', root)
  }
  cards.store.fault = undefined
  await cards.store.send(cards.webhook, { type: 'invoice.paid', object: 'in_1', secret: 'whsec_other' })
  await eventually(() => cards.entitled('ann'), 15_000)
}

await useAppStore()
await usePlay()
await useStripe()
const worlds = [apple, play, cards]
const ids: Record<string, string[]> = {
  apps: [],
  customers: [],
  purchases: [],
  products: [],
  features: [],
  projects: [],
}
for (const { project, app } of worlds) {
  const customer = await project.customer('ann')
  const purchases: Body[] = (await project.get(`/customers/${customer}/purchases`)).data
  assert.ok(purchases.length > 0)
  for (const { id } of purchases) {
    ids.purchases?.push(id)
    await hear(service.workspace('POST', `/purchases/${id}/reverify`))
  }
  for (const kind of ['appstore', 'playstore', 'stripe', 'endpoints', 'appstore_trust']) {
    await hear(service.workspace('POST', `/apps/${app.id}/store_credentials/${kind}/check`))
  }
  ids.apps?.push(app.id)
  ids.customers?.push(customer)
  ids.projects?.push(project.id)
}

function assertNothingIn(texts: readonly string[], where: string): void {
  for (const [what, secret] of secrets) {
    const found = texts.find((text) => text.includes(secret))
    assert.equal(found, undefined, `${what} is in ${where}`)
  }
}

describe('no key, no evidence and no token', () => {
  test('they are what was used', () => {
    assert.ok(secrets.size > 30, `${secrets.size} secrets`)
    for (const [what, secret] of secrets) assert.ok(secret.length > 20, what)
  })

  test('is in an answer', () => {
    assert.ok(said.length > 50, `${said.length} answers`)
    assertNothingIn(said, 'an answer')
  })

  test('is in a line of the log, whatever is logged', () => {
    assert.ok(service.lines.length > 10, `${service.lines.length} lines`)
    assertNothingIn(service.lines, 'the log')
  })

  test('is in anything that can be read of the workspace', async () => {
    const document = JSON.parse(readFileSync(new URL('../../docs/openapi/workspace.json', import.meta.url), 'utf8'))
    const paths = Object.entries<Body>(document.paths).flatMap(([path, { get }]) => (get ? [path] : []))
    const found: string[] = []
    for (const path of paths) {
      const [, resource = ''] = path.split('/')
      const named = /\{id\}/.test(path) ? (ids[resource] ?? []) : ids.projects
      for (const id of named ?? []) {
        const filled = path.replace('{id}', id).replace('{distinct_id}', 'ann').replace('{operation_id}', 'op')
        for (const query of path.includes('{id}') ? [''] : ['', `?project_id=${id}`]) {
          const { status, body } = await service.workspace('GET', `${filled}${query}`)
          assert.ok(status < 500, `${filled}: ${status}`)
          if (status === 200) found.push(JSON.stringify(body))
        }
      }
    }
    assert.ok(found.length > 60, `${found.length} answers`)
    assertNothingIn(found, 'a listing')
  })

  test('lies open in the database', async () => {
    const tables = await service.pool.query<{ name: string }>(
      `select format('%I', relname) as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
    )
    assert.ok(tables.length > 50)
    for (const { name } of tables) {
      const rows = await service.pool.query<{ row: string }>(`select t::text as row from ${name} t`)
      assertNothingIn(
        rows.map(({ row }) => row),
        name,
      )
    }
  })
})
