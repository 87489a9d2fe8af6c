import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { assertRefused } from '../app/project.ts'
import { assertAnswer, type Counter, openShop, someone } from './shop.ts'
import type { Body } from './sim.ts'

/** What an App Store string has to be, each rule by a string that breaks it and no other. `rows.md` names them. */
const shop = await openShop()
const counter = await shop.open('appstore')
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

interface Check {
  row: string
  /** Signs it anew: of the simulator. */
  signed?: { signing?: string; header?: object; claims?: object }
  /** Changes the string, as anybody can. */
  changed?: (jws: string, held: Body) => string
  productId?: string
  buy?: object
  /** `invalid` unless told otherwise. */
  expected?: string
}

const parts = (jws: string): string[] => jws.split('.')
const part = (text: string) => Buffer.from(text).toString('base64url')
const withHeader = (jws: string, header: string) => [header, ...parts(jws).slice(1)].join('.')
const withPayload = (jws: string, payload: string) => parts(jws).with(1, payload).join('.')
const headerOf = (jws: string): Body => JSON.parse(Buffer.from(parts(jws)[0] ?? '', 'base64url').toString())

const form: Check[] = [
  { row: 'two segments', changed: (jws) => parts(jws).slice(0, 2).join('.') },
  { row: 'four segments', changed: (jws) => `${jws}.${parts(jws)[2]}` },
  { row: 'an empty segment', changed: (jws) => withPayload(jws, '') },
  { row: 'a character that base64url does not have', changed: (jws) => jws.replace('.ey', '.+y') },
  { row: 'padding', changed: (jws) => `${jws}==` },
  { row: 'a header that is no JSON', changed: (jws) => withHeader(jws, part('{"alg"')) },
  { row: 'a header that is no object', changed: (jws) => withHeader(jws, part('["ES256"]')) },
  { row: 'a payload that is no object', changed: (jws) => withPayload(jws, part('"paid"')) },
  { row: 'a header of more than 64 KiB', signed: { header: { more: 'x'.repeat(64 * 1024) } } },
  { row: 'noise', changed: () => 'noise' },
  { row: 'nothing', changed: () => '' },
]

const header: Check[] = [
  { row: 'alg none', signed: { header: { alg: 'none' } } },
  { row: 'alg ES384', signed: { header: { alg: 'ES384' } } },
  { row: 'alg RS256', signed: { header: { alg: 'RS256' } } },
  { row: 'no alg', signed: { header: { alg: null } } },
  { row: 'crit', signed: { header: { crit: ['exp'] } } },
  { row: 'b64', signed: { header: { b64: false } } },
  { row: 'no x5c, a jwk instead', signed: { header: { x5c: null, jwk: { kty: 'EC' } } } },
  { row: 'x5c of numbers', signed: { header: { x5c: [1, 2, 3] } } },
  {
    row: 'jku, x5u and kid are not looked at',
    signed: { header: { jku: 'x', x5u: 'x', kid: 'x' } },
    expected: 'given',
  },
]

const chains: Check[] = [
  { row: 'another root', signed: { signing: 'foreign_root' } },
  { row: 'no marker in the leaf', signed: { signing: 'no_leaf_marker' } },
  { row: 'no marker in the intermediate', signed: { signing: 'no_intermediate_marker' } },
  { row: 'an intermediate that is no CA', signed: { signing: 'no_ca' } },
  { row: 'a leaf that is not P-256', signed: { signing: 'p384_leaf' } },
  { row: 'names that do not follow each other', signed: { signing: 'other_issuer' } },
  { row: 'a leaf that had ended when it signed', signed: { signing: 'expired_leaf' } },
  { row: 'signed before its leaf began', signed: { claims: { signedDate: Date.now() - 31 * dayMs } } },
  {
    row: 'signed within its leaf, weeks ago',
    signed: { claims: { signedDate: Date.now() - 29 * dayMs } },
    expected: 'given',
  },
  { row: 'a signature by another key', signed: { signing: 'forged_signature' } },
  { row: 'a payload changed after it was signed', signed: { signing: 'tampered_payload' } },
  { row: 'a string that was cut', signed: { signing: 'truncated_jws' } },
  {
    row: 'a flipped bit of the signature',
    changed: (jws) => jws.slice(0, -10) + (jws.at(-10) === 'A' ? 'B' : 'A') + jws.slice(-9),
  },
]

const claims: Check[] = [
  { row: 'no signedDate', signed: { claims: { signedDate: null } } },
  { row: 'a signedDate that is no number', signed: { claims: { signedDate: '2026' } } },
  { row: 'signed five minutes ahead', signed: { claims: { signedDate: Date.now() + 5 * minuteMs } } },
  ...['transactionId', 'originalTransactionId', 'bundleId', 'productId', 'type'].map(missing),
  ...['purchaseDate', 'environment', 'inAppOwnershipType'].map(missing),
  { ...missing('expiresDate'), productId: 'monthly' },
  { row: 'an id of 65 characters', signed: { claims: { transactionId: '1'.repeat(65) } } },
  { row: 'an empty id', signed: { claims: { originalTransactionId: '' } } },
  { row: 'a date that is no instant', signed: { claims: { purchaseDate: -1 } } },
  { row: 'a known claim of another JSON type', signed: { claims: { isUpgraded: 'yes' } } },
  { row: 'an environment that nobody knows', signed: { claims: { environment: 'Moon' } } },
  { row: 'of another bundle', signed: { claims: { bundleId: 'com.example.other' } } },
  { row: 'of a product that leads to no Product', signed: { claims: { productId: 'nowhere' } } },
  { row: 'exp has passed', signed: { claims: { exp: Math.floor(Date.now() / 1000) - 10 } } },
  { row: 'nbf lies ahead', signed: { claims: { nbf: Math.floor(Date.now() / 1000) + 1000 } } },
  { row: 'further claims are kept and ignored', signed: { claims: { ofTomorrow: { a: 1 } } }, expected: 'given' },
]

function missing(claim: string): Check {
  return { row: `no ${claim}`, signed: { claims: { [claim]: null } } }
}

const kinds: Check[] = [
  { row: 'a renewal info is no transaction', productId: 'monthly', changed: (_, held) => held.signedRenewalInfo },
  { row: 'an app transaction is no transaction', changed: (_, held) => held.signedAppTransaction },
]

const environments: Check[] = [
  { row: 'Production under a test key', buy: { environment: 'Production' } },
  { row: 'Sandbox under a test key', buy: { environment: 'Sandbox' }, expected: 'given' },
  { row: 'Xcode with its certificate pinned', buy: { environment: 'Xcode' }, expected: 'given' },
  { row: 'LocalTesting with its certificate pinned', buy: { environment: 'LocalTesting' }, expected: 'given' },
  { row: 'Xcode, by the chain of the App Store', buy: { environment: 'Xcode' }, signed: { signing: 'genuine' } },
  { row: 'Sandbox, by the certificate of Xcode', signed: { signing: 'xcode' } },
  { row: 'Xcode without its kid', buy: { environment: 'Xcode' }, signed: { header: { kid: null } } },
]

async function stringOf(by: Counter, who: string, check: Check): Promise<{ jws: string; held: Body }> {
  const { productId = 'lifetime', buy, signed, changed = (jws: string) => jws } = check
  const held = await shop.silently(() => by.buy(who, { productId, ...buy }))
  const made = signed === undefined ? held : await by.verb(held, 're-sign', signed)
  return { jws: changed(made.signedTransaction, made), held }
}

async function assertChecked(by: Counter, check: Check): Promise<void> {
  const { row, expected = 'invalid', buy } = check
  const who = someone()
  const { jws, held } = await stringOf(by, who, check)
  const answer = await by.bring(who, held, { transaction_jwt: jws })
  if (jws === '' && answer.body.code === 'invalid_request') assertRefused(answer, 400, 'invalid_request')
  else assertAnswer(by, answer, expected, row)
  assert.deepEqual([await by.entitled(who), await by.isKnown(who)], [expected === 'given', expected === 'given'])
  // The same purchase in a string that is all right: nothing else was wrong.
  const isWelcome = buy === undefined && expected === 'invalid'
  if (isWelcome) assertAnswer(by, await by.bring(who, await by.verb(held, 're-sign')), 'given', `${row}, put right`)
}

for (const [name, checks] of Object.entries({ form, header, chains, claims, kinds, environments })) {
  describe(name, () => {
    for (const check of checks) test(check.row, () => assertChecked(counter, check))
  })
}

describe('x5c', () => {
  const rows: [string, (x5c: string[]) => string[], string][] = [
    ['x5c of two', (x5c) => x5c.slice(0, 2), 'invalid'],
    ['x5c of four', (x5c) => [...x5c, ...x5c.slice(2)], 'invalid'],
    ['x5c that is not canonical base64', ([leaf = '', ...rest]) => [`${leaf}\n`, ...rest], 'invalid'],
    ['x5c in another order', (x5c) => x5c.toReversed(), 'invalid'],
    ['the third of x5c is not needed', ([leaf = '', between = '']) => [leaf, between, leaf], 'given'],
  ]
  for (const [row, change, expected] of rows) {
    test(row, async () => {
      const who = someone()
      const held = await shop.silently(() => counter.buy(who, { productId: 'lifetime' }))
      const x5c = change(headerOf(held.signedTransaction).x5c)
      const made = await counter.verb(held, 're-sign', { header: { x5c } })
      assertAnswer(counter, await counter.bring(who, made), expected, row)
    })
  }
})

test('a notification is no transaction', async () => {
  const { sim } = shop
  const [who, { name }] = [someone(), counter]
  const held = await counter.buy(who, { productId: 'lifetime' })
  const { apps } = await sim.control('GET', '/sim/state')
  assert.ok(apps.some(({ app }: Body) => app === name))
  const now = Date.now()
  const asked = { startDate: now - dayMs, endDate: now + dayMs, transactionId: held.transactionId }
  const { status, body } = await sim.apple('POST', '/inApps/v1/notifications/history', asked, name)
  assert.equal(status, 200, JSON.stringify(body))
  const { signedPayload } = body.notificationHistory[0]
  assertAnswer(counter, await counter.bring(who, held, { transaction_jwt: signedPayload }), 'invalid')
})

test('what was signed long ago, under a leaf that ran out since', async () => {
  const [by, who] = [await shop.open('appstore'), someone()]
  const held = await shop.silently(() => by.buy(who, { productId: 'lifetime' }))
  await by.move('P715D') // leaves live for two years, of which a month had passed
  assertAnswer(by, await by.bring(who, held), 'given')
  assert.equal(await by.entitled(who), true)
})

describe('what comes before the string', () => {
  const genuine = async (who: string) => shop.silently(() => counter.buy(who, { productId: 'lifetime' }))

  test('Xcode without a pinned certificate', async () => {
    const [by, who] = [await shop.open('appstore'), someone()]
    const { roots } = shop.sim.config.appstore
    await by.credentials({ kind: 'appstore_trust', roots })
    for (const environment of ['Xcode', 'LocalTesting']) {
      const held = await by.buy(who, { productId: 'lifetime', account: `${who} ${environment}`, environment })
      assertAnswer(by, await by.bring(who, held), 'invalid')
    }
  })

  test('a root that is trusted in test only, under a live key', async () => {
    const who = someone()
    for (const environment of ['Production', 'Sandbox', 'Xcode']) {
      const held = await shop.silently(() =>
        counter.buy(who, { productId: 'lifetime', account: `${who} ${environment}`, environment }),
      )
      const answer = await counter.live.post('/purchase', { distinct_id: who, ...held.purchase })
      assertAnswer(counter, answer, 'invalid', environment)
    }
  })

  test('no bundle id', async () => {
    const who = someone()
    const bare = await counter.project.app('ios')
    const answer = await bare.post('/purchase', { distinct_id: who, ...(await genuine(who)).purchase })
    assertAnswer(counter, answer, 'unavailable')
  })

  test('a key of an Android app', async () => {
    const who = someone()
    const android = await counter.project.app('android')
    const answer = await android.post('/purchase', { distinct_id: who, ...(await genuine(who)).purchase })
    assertRefused(answer, 403, 'scope_mismatch')
  })

  test('a deleted customer', async () => {
    const who = someone()
    const held = await genuine(who)
    await counter.project.tombstone(who)
    assertRefused(await counter.bring(who, held), 410, 'customer_deleted')
  })

  test('a missing and a mistyped field', async () => {
    const who = someone()
    const held = await genuine(who)
    assertRefused(await counter.bring(who, held, { transaction_jwt: 7 }), 400, 'invalid_request')
    assertRefused(await counter.bring(who, held, { transaction_jwt: undefined }), 400, 'invalid_request')
    assertRefused(await counter.bring(who, held, { distinct_id: '' }), 400, 'invalid_request')
  })

  test('further fields are ignored by a purchase, and refused by a spend', async () => {
    const who = someone()
    const { signedTransaction } = await genuine(who)
    const spend = { customerId: who, featureId: 'pro', operationId: randomUUID(), quantity: 1 }
    const purchase = { type: 'appstore', signedTransaction, more: 1 }
    const refused = await counter.app.post('/feature/consume', { ...spend, purchase })
    assertRefused(refused, 400, 'invalid_request')
    const held = { purchase: { type: 'appstore', transaction_jwt: signedTransaction, obfuscated_account_id: 'x' } }
    assertAnswer(counter, await counter.bring(who, held), 'given')
  })

  test('the same refusals come from a spend', async () => {
    const [who, other] = [someone(), someone()]
    const held = await shop.silently(() => counter.buy(who, { productId: 'pack' }))
    const spend = (customerId: string, signedTransaction: string) =>
      counter.app.post('/feature/consume', {
        ...{ customerId, featureId: 'exports', operationId: randomUUID(), quantity: 1 },
        purchase: { type: 'appstore', signedTransaction },
      })
    const forged = await counter.verb(held, 're-sign', { signing: 'forged_signature' })
    assertAnswer(counter, await spend(who, forged.signedTransaction), 'invalid')
    assertAnswer(counter, await spend(other, held.signedTransaction), 'owner_unverified')
    assert.equal((await spend(who, held.signedTransaction)).status, 200)
    assertAnswer(counter, await spend(other, held.signedTransaction), 'conflict')
    assert.equal(await counter.balance(who), 9)
  })

  test('what was refused for good rests, and is not looked at again', async () => {
    const who = someone()
    const forged = await counter.verb(await genuine(who), 're-sign', { signing: 'forged_signature' })
    assertAnswer(counter, await counter.bring(who, forged), 'invalid')
    assertAnswer(counter, await counter.bring(who, forged), 'unavailable')
  })
})
