import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import test from 'node:test'
import { compactVerify, decodeJwt, decodeProtectedHeader, importX509 } from 'jose'
import { appleBearer, appleLabels, bundle, noon, openReceiver, openSim } from './sim.ts'

const monthly = 'com.example.demo.pro_monthly'
const leafMarker = '1.2.840.113635.100.6.11.1'

test('a device holds a JWS that its own chain verifies, up to the root of the configuration', async () => {
  await using sim = await openSim()
  const held = await sim.buyApple({ productId: monthly, accountToken: '6fb1ad86-0cd7-50ef-ae89-d540395a860a' })
  const { alg, x5c = [] } = decodeProtectedHeader(held.signedTransaction)
  assert.equal(alg, 'ES256')
  assert.equal(x5c.length, 3)
  const [leaf, intermediate, root] = x5c.map((der) => new X509Certificate(Buffer.from(der, 'base64')))
  assert.ok(leaf && intermediate && root)
  assert.ok(leaf.verify(intermediate.publicKey) && intermediate.verify(root.publicKey))
  assert.equal(leaf.issuer, intermediate.subject)
  assert.ok(intermediate.ca && root.ca && !leaf.ca)
  assert.equal(root.fingerprint256.replaceAll(':', '').toLowerCase(), sim.config.appstore.root_sha256)
  assert.match(leaf.subject, /simulator/)
  const { payload } = await compactVerify(held.signedTransaction, await importX509(leaf.toString(), 'ES256'))
  const claims = JSON.parse(new TextDecoder().decode(payload))
  assert.deepEqual(
    { ...claims, transactionId: '', originalTransactionId: '', webOrderLineItemId: '', appTransactionId: '' },
    {
      transactionId: '',
      originalTransactionId: '',
      webOrderLineItemId: '',
      appTransactionId: '',
      bundleId: bundle,
      productId: monthly,
      subscriptionGroupIdentifier: 'pro',
      purchaseDate: noon,
      originalPurchaseDate: noon,
      expiresDate: Date.parse('2027-02-15T12:00:00Z'),
      quantity: 1,
      type: 'Auto-Renewable Subscription',
      appAccountToken: '6fb1ad86-0cd7-50ef-ae89-d540395a860a',
      inAppOwnershipType: 'PURCHASED',
      environment: 'Sandbox',
      transactionReason: 'PURCHASE',
      storefront: 'USA',
      storefrontId: '143441',
      price: 9990,
      currency: 'USD',
      signedDate: noon,
    },
  )
  assert.deepEqual(held.purchase, { type: 'appstore', transaction_jwt: held.signedTransaction })
})

test('on request it signs with a chain that is wrong in one way', async () => {
  await using sim = await openSim()
  const held = await sim.buyApple({ productId: monthly })
  const chainOf = async (signing: string) => {
    const { signedTransaction } = await sim.verb(held, 're-sign', { signing })
    const { x5c = [] } = decodeProtectedHeader(signedTransaction)
    const [leaf, intermediate, root] = x5c.map((der) => new X509Certificate(Buffer.from(der, 'base64')))
    assert.ok(leaf && intermediate && root)
    assert.ok(leaf.verify(intermediate.publicKey), 'the chain itself holds')
    return { leaf, intermediate, root, rootSha256: root.fingerprint256.replaceAll(':', '').toLowerCase() }
  }
  const has = ({ raw }: X509Certificate, oid: string) => raw.includes(encodeOid(oid))
  const genuine = await chainOf('genuine')
  assert.ok(has(genuine.leaf, leafMarker) && has(genuine.intermediate, '1.2.840.113635.100.6.2.1'))
  assert.ok(new Date((await chainOf('expired_leaf')).leaf.validTo).getTime() < noon)
  assert.ok(!has((await chainOf('no_leaf_marker')).leaf, leafMarker))
  assert.ok(!has((await chainOf('no_intermediate_marker')).intermediate, '1.2.840.113635.100.6.2.1'))
  assert.notEqual((await chainOf('foreign_root')).rootSha256, sim.config.appstore.root_sha256)
  assert.equal((await chainOf('no_ca')).intermediate.ca, false)
  assert.equal((await chainOf('p384_leaf')).leaf.publicKey.asymmetricKeyDetails?.namedCurve, 'secp384r1')
  const { leaf: stray, intermediate: between } = await chainOf('other_issuer')
  assert.notEqual(stray.issuer, between.subject)
  const unknown = await sim.call('POST', `/sim/appstore/purchases/${held.id}/re-sign`, { signing: 'sideways' })
  assert.equal(unknown.status, 400)
})

test('every reading signs again, and rotating gives another leaf under the same root', async () => {
  await using sim = await openSim()
  const { transactionId, signedTransaction: first } = await sim.buyApple({ productId: monthly })
  const path = `/inApps/v1/transactions/${transactionId}`
  const second = (await sim.apple('GET', path)).body.signedTransactionInfo
  assert.notEqual(first, second)
  assert.deepEqual(decodeJwt(first), decodeJwt(second))
  await sim.control('POST', '/sim/certificates/rotate')
  const third = (await sim.apple('GET', path)).body.signedTransactionInfo
  const leafOf = (jws: string) => decodeProtectedHeader(jws).x5c?.[0]
  assert.equal(leafOf(first), leafOf(second))
  assert.notEqual(leafOf(second), leafOf(third))
  assert.equal(decodeProtectedHeader(first).x5c?.[2], decodeProtectedHeader(third).x5c?.[2])
})

test('a bearer has to be right in every part', async () => {
  await using sim = await openSim()
  const { transactionId } = await sim.buyApple({ productId: monthly })
  const status = async (bearer: string) =>
    (await sim.call('GET', `/appstore/inApps/v1/transactions/${transactionId}`, undefined, { authorization: bearer }))
      .status
  const now = Math.floor(Date.now() / 1000)
  const wrong = [
    { kid: 'OTHER' },
    { iss: 'somebody' },
    { aud: 'elsewhere' },
    { bid: 'com.example.other' },
    { exp: now - 10 },
    { iat: now - 4000, exp: now + 300 },
    { exp: now + 4000 },
  ]
  assert.equal(await status(`Bearer ${await appleBearer(sim.config)}`), 200)
  for (const changes of wrong)
    assert.equal(await status(`Bearer ${await appleBearer(sim.config, changes)}`), 401, JSON.stringify(changes))
  assert.equal(await status(''), 401)
  assert.equal(await status('Bearer x.y.z'), 401)
})

test('subscriptions are read with their status, by any transaction of the account', async () => {
  await using sim = await openSim()
  const held = await sim.buyApple({ productId: monthly })
  const coins = await sim.buyApple({ productId: 'com.example.demo.coins_100' })
  const { status, body } = await sim.apple('GET', `/inApps/v1/subscriptions/${coins.transactionId}`)
  assert.equal(status, 200)
  assert.equal(body.bundleId, bundle)
  assert.equal(body.environment, 'Sandbox')
  const [{ subscriptionGroupIdentifier, lastTransactions }] = body.data
  assert.equal(subscriptionGroupIdentifier, 'pro')
  assert.equal(lastTransactions[0].originalTransactionId, held.id)
  assert.equal(lastTransactions[0].status, 1)
  assert.equal(decodeJwt(lastTransactions[0].signedTransactionInfo).transactionId, held.transactionId)
  const renewal = decodeJwt(lastTransactions[0].signedRenewalInfo)
  assert.equal(renewal.autoRenewStatus, 1)
  assert.equal(renewal.autoRenewProductId, monthly)
  const expired = await sim.apple('GET', `/inApps/v1/subscriptions/${held.id}?status=2`)
  assert.deepEqual(expired.body.data[0].lastTransactions, [])
})

test('what is unknown or malformed is refused in the store’s words', async () => {
  await using sim = await openSim()
  const unknown = await sim.apple('GET', '/inApps/v1/transactions/123456')
  assert.equal(unknown.status, 404)
  assert.deepEqual(unknown.body, { errorCode: 4040010, errorMessage: 'Transaction id not found.' })
  const malformed = await sim.apple('GET', '/inApps/v1/transactions/abc')
  assert.deepEqual([malformed.status, malformed.body.errorCode], [400, 4000006])
})

test('history comes 20 a page, by revision', async () => {
  await using sim = await openSim()
  const held = await sim.buyApple({ productId: monthly })
  for (let i = 0; i < 24; i++) await sim.move('P1M')
  const first = await sim.apple('GET', `/inApps/v2/history/${held.id}`)
  assert.equal(first.body.signedTransactions.length, 20)
  assert.equal(first.body.hasMore, true)
  const second = await sim.apple('GET', `/inApps/v2/history/${held.id}?revision=${first.body.revision}`)
  assert.equal(second.body.signedTransactions.length, 5)
  assert.equal(second.body.hasMore, false)
  const newest = await sim.apple('GET', `/inApps/v2/history/${held.id}?sort=DESCENDING`)
  assert.equal(newest.body.signedTransactions[0].length > 0, true)
  assert.equal(
    decodeJwt(newest.body.signedTransactions[0]).transactionId,
    decodeJwt(second.body.signedTransactions[4]).transactionId,
  )
  assert.equal((await sim.apple('GET', `/inApps/v2/history/${held.id}?revision=other`)).status, 400)
})

test('refunds, orders and app transactions can be looked up', async () => {
  await using sim = await openSim()
  const held = await sim.buyApple({ productId: monthly })
  const lookup = async () => (await sim.apple('GET', `/inApps/v2/refund/lookup/${held.id}`)).body.signedTransactions
  assert.deepEqual(await lookup(), [])
  await sim.verb(held, 'refund', { mode: 'percent', percent: 50 })
  const [refunded] = await lookup()
  assert.equal(decodeJwt(refunded).revocationPercentage, 50_000)
  assert.equal(decodeJwt(refunded).revocationDate, noon)
  const { lineages } = (await sim.control('GET', '/sim/state')).apps[0]
  const order = await sim.apple('GET', `/inApps/v1/lookup/${lineages[0].transactions[0].orderId}`)
  assert.equal(order.body.status, 0)
  assert.equal(order.body.signedTransactions.length, 1)
  assert.equal((await sim.apple('GET', '/inApps/v1/lookup/NOTHING')).body.status, 1)
  const { body } = await sim.apple('GET', `/inApps/v1/transactions/appTransactions/${held.id}`)
  const app = decodeJwt(body.signedAppTransactionInfo)
  assert.equal(app.receiptType, 'Sandbox')
  assert.equal(app.appTransactionId, held.appTransactionId)
})

test('the account token is written to a whole purchase, by its original id only', async () => {
  await using sim = await openSim()
  const held = await sim.buyApple({ productId: monthly, family: ['cleo'] })
  const put = (id: string, appAccountToken: unknown) =>
    sim.apple('PUT', `/inApps/v1/transactions/${id}/appAccountToken`, { appAccountToken })
  const token = '00000000-0000-4000-8000-000000000001'
  assert.equal((await put(held.id, token)).status, 200)
  await sim.move('P1M')
  const renewed = await sim.verb(held, 're-sign')
  assert.equal(decodeJwt(renewed.signedTransaction).appAccountToken, token)
  assert.equal((await put(renewed.transactionId, token)).body.errorCode, 4000187)
  assert.equal((await put(held.id, 'no uuid')).body.errorCode, 4000183)
  assert.equal((await put(held.family[0].id, token)).body.errorCode, 4000185)
})

test('a subscription is extended twice at most', async () => {
  await using sim = await openSim()
  const held = await sim.buyApple({ productId: monthly })
  const extend = (body: object) => sim.apple('PUT', `/inApps/v1/subscriptions/extend/${held.id}`, body)
  const request = { extendByDays: 90, extendReasonCode: 1, requestIdentifier: 'r-1' }
  const { body } = await extend(request)
  assert.equal(body.effectiveDate, Date.parse('2027-05-16T12:00:00Z'))
  assert.equal((await extend({ ...request, extendByDays: 91 })).body.errorCode, 4000009)
  assert.equal((await extend(request)).status, 200)
  assert.equal((await extend(request)).body.errorCode, 4030005)
})

test('consumption is answered when the customer agreed, and transactions can be finished', async () => {
  await using sim = await openSim()
  const held = await sim.buyApple({ productId: 'com.example.demo.coins_100' })
  const send = (body: object) => sim.apple('PUT', `/inApps/v2/transactions/consumption/${held.id}`, body)
  const report = { customerConsented: true, sampleContentProvided: false, deliveryStatus: 'DELIVERED' }
  assert.equal((await send(report)).status, 202)
  assert.equal((await send({ ...report, customerConsented: false })).body.errorCode, 4000035)
  assert.equal((await sim.apple('POST', `/inApps/v1/transactions/${held.id}/finish`)).status, 200)
})

function encodeOid(oid: string): Buffer {
  const [a = 0, b = 0, ...rest] = oid.split('.').map(Number)
  const bytes = rest.flatMap((part) => {
    const groups: number[] = []
    for (let left = part; ; left = Math.floor(left / 128)) {
      groups.unshift((left % 128) + (groups.length > 0 ? 128 : 0))
      if (left < 128) return groups
    }
  })
  return Buffer.from([a * 40 + b, ...bytes])
}

test('on request the string itself is wrong, or says something else', async () => {
  await using sim = await openSim()
  const held = await sim.buyApple({ productId: monthly })
  const made = async (body: object): Promise<string> => (await sim.verb(held, 're-sign', body)).signedTransaction
  const isSigned = async (jws: string) => {
    const [leaf = ''] = decodeProtectedHeader(jws).x5c ?? []
    const key = await importX509(new X509Certificate(Buffer.from(leaf, 'base64')).toString(), 'ES256')
    return compactVerify(jws, key).then(
      () => true,
      () => false,
    )
  }
  assert.ok(await isSigned(await made({ signing: 'genuine' })))
  for (const signing of ['forged_signature', 'tampered_payload', 'truncated_jws']) {
    assert.equal(await isSigned(await made({ signing })), false, signing)
  }
  const told = await made({ claims: { productId: 'other', currency: null }, header: { kid: 'K', x: 1 } })
  assert.ok(await isSigned(told))
  assert.deepEqual([decodeJwt(told).productId, decodeJwt(told).currency], ['other', undefined])
  assert.deepEqual([decodeProtectedHeader(told).kid, decodeProtectedHeader(told).x], ['K', 1])
})

test('what is bought in an app that Xcode runs is signed by one certificate, and nobody else hears of it', async () => {
  await using sim = await openSim()
  await using receiver = await openReceiver()
  await sim.control('PUT', '/sim/targets', { store: 'appstore', app: bundle, url: receiver.url })
  for (const environment of ['Xcode', 'LocalTesting']) {
    const held = await sim.buyApple({ productId: monthly, account: environment, environment })
    const { kid, x5c = [] } = decodeProtectedHeader(held.signedTransaction)
    assert.deepEqual([kid, x5c.length], ['Apple_Xcode_Key', 1])
    const certificate = new X509Certificate(Buffer.from(x5c[0] ?? '', 'base64'))
    assert.equal(
      certificate.fingerprint256,
      new X509Certificate(sim.config.appstore.xcode_certificates[0]).fingerprint256,
    )
    await compactVerify(held.signedTransaction, await importX509(certificate.toString(), 'ES256'))
    const claims = decodeJwt<{ environment: string; purchaseDate: number }>(held.signedTransaction)
    assert.deepEqual([claims.environment, claims.purchaseDate], [environment, noon + 0.25])
    const { status, body } = await sim.apple('GET', `/inApps/v1/transactions/${held.transactionId}`)
    assert.deepEqual([status, body.errorCode], [404, 4040010])
  }
  assert.deepEqual(receiver.received, [])
})

test('a notification of any type, with the part that it has', async () => {
  await using sim = await openSim()
  await using receiver = await openReceiver()
  const held = await sim.buyApple({ productId: monthly })
  await sim.control('PUT', '/sim/targets', { store: 'appstore', app: bundle, url: receiver.url })
  const told: [object, string][] = [
    [{ type: 'OF_TOMORROW' }, 'data'],
    [{ type: 'REFUND_DECLINED' }, 'data'],
    [{ type: 'RENEWAL_EXTENSION', subtype: 'FAILURE' }, 'data'],
    [{ type: 'RENEWAL_EXTENSION', subtype: 'SUMMARY' }, 'summary'],
    [{ type: 'EXTERNAL_PURCHASE_TOKEN' }, 'externalPurchaseToken'],
    [{ type: 'RESCIND_CONSENT' }, 'appData'],
  ]
  for (const [body] of told) await sim.verb(held, 'notify', body)
  const parts = ['data', 'summary', 'externalPurchaseToken', 'appData']
  assert.deepEqual(
    receiver.received.map(({ body }) => parts.filter((name) => Object.hasOwn(decodeJwt(body.signedPayload), name))),
    told.map(([, part]) => [part]),
  )
  assert.equal((await sim.call('POST', `/sim/appstore/purchases/${held.id}/notify`, {})).status, 400)
})

test('a downgrade can be taken back before it comes', async () => {
  await using sim = await openSim()
  await using receiver = await openReceiver()
  const held = await sim.buyApple({ productId: monthly })
  await sim.control('PUT', '/sim/targets', { store: 'appstore', app: bundle, url: receiver.url })
  await sim.verb(held, 'downgrade', { productId: 'com.example.demo.basic_monthly' })
  await sim.verb(held, 'downgrade', { productId: monthly })
  assert.deepEqual(appleLabels(receiver), ['DID_CHANGE_RENEWAL_PREF DOWNGRADE', 'DID_CHANGE_RENEWAL_PREF'])
  await sim.move('P1M')
  assert.equal((await sim.verb(held, 're-sign')).productId, monthly)
})
