import assert from 'node:assert/strict'
import { hash, type X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { Environment, SignedDataVerifier } from '@apple/app-store-server-library'
import {
  aTransaction,
  base64Of,
  compact,
  dayMs,
  intermediateMarker,
  issue,
  leafMarker,
  type Pki,
  signApple,
  testPki,
} from '../../../test/harness/apple-pki.ts'
import fc from '../../../test/harness/random.ts'
import { type TrustSet, trustSet } from './chain.ts'
import type { JwsKind } from './claims.ts'
import { type JwsContext, verifyAppleJws } from './jws.ts'
import { appleRoot } from './roots.ts'

const pki = await testPki()
const foreign = await testPki()
const trusting = (...roots: X509Certificate[]) => trustSet(roots)
const trust = trusting(pki.root.certificate)
const nobody: ReadonlySet<string> = new Set()

async function look(text: string, more: Partial<JwsContext> = {}, kind: JwsKind = 'transaction') {
  const now = Date.now()
  return verifyAppleJws(text, kind, { trust, now, wallNow: now, revoked: nobody, ...more })
}

async function refused(text: string, reason: RegExp, more: Partial<JwsContext> = {}, kind?: JwsKind) {
  // Also under a set that has seen no chain yet: what is known of chains never matters.
  const given = more.trust ?? trust
  for (const set of [given, trustSet(given.roots, given.xcode)]) {
    const verdict = await look(text, { ...more, trust: set }, kind)
    assert.ok(!verdict.ok, `accepted, not ${reason}`)
    assert.match(verdict.reason, reason)
  }
}

async function accepted(text: string, more: Partial<JwsContext> = {}, kind?: JwsKind) {
  const verdict = await look(text, more, kind)
  assert.ok(verdict.ok, verdict.ok ? '' : verdict.reason)
  return verdict
}

test("Apple's root is the one it publishes", () => {
  const fingerprint = hash('sha256', appleRoot.raw)
  assert.equal(fingerprint, '63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179')
  assert.equal(appleRoot.publicKey.asymmetricKeyDetails?.namedCurve, 'secp384r1')
  assert.equal(appleRoot.validToDate.getUTCFullYear(), 2039)
})

test('a transaction under a trusted root is accepted, whatever its environment and its age', async () => {
  const { payload } = await accepted(signApple(pki, aTransaction()))
  assert.equal(payload.productId, 'com.example.pro')
  await accepted(signApple(pki, aTransaction({ environment: 'Production' })))
  await accepted(signApple(pki, aTransaction({ signedDate: Date.now() - 300 * dayMs })))
})

test('a leaf that ran out goes on verifying what it signed while it was valid, and nothing else', async () => {
  const old = await testPki({ from: Date.now() - 300 * dayMs, to: Date.now() - 100 * dayMs })
  const set = trusting(old.root.certificate)
  await accepted(signApple(old, aTransaction({ signedDate: Date.now() - 200 * dayMs })), { trust: set })
  await refused(signApple(old, aTransaction({ signedDate: Date.now() - 50 * dayMs })), /validity|own check/, {
    trust: set,
  })
  await refused(signApple(old, aTransaction({ signedDate: Date.now() - 350 * dayMs })), /validity|own check/, {
    trust: set,
  })
})

test('what is no compact JWS of three parts is refused before anything is verified', async () => {
  const good = signApple(pki, aTransaction())
  const [header = '', payload = '', signature = ''] = good.split('.')
  await refused('', /three segments/)
  await refused(`${header}.${payload}`, /three segments/)
  await refused(`${header}..${signature}`, /three segments/)
  await refused(`${good}.${signature}`, /64 bytes/)
  await refused(`${header}.${payload}.${signature.slice(0, -2)}`, /64 bytes/)
  await refused(`${header}=.${payload}.${signature}`, /base64url/)
  await refused(`${header}.${payload} .${signature}`, /base64url/)
  await refused(`${header}.${payload.slice(0, 40)}.${signature}`, /no JSON object/)
  await refused(
    compact('[1]', pki.leaf.privateKey, { alg: 'ES256', x5c: [pki.leaf, pki.intermediate, pki.root].map(base64Of) }),
    /no JSON object/,
  )
  const large = signApple(pki, aTransaction(), { pad: 'x'.repeat(64 * 1024) })
  await refused(large, /too large/)
})

test('2 MiB of garbage are refused in under 5 ms', async () => {
  const [header = '', , signature = ''] = signApple(pki, aTransaction()).split('.')
  const size = 2 * 1024 * 1024
  const garbage = {
    'no segments': 'x'.repeat(size),
    'all of them dots': '.'.repeat(size),
    'a header of it': `${'x'.repeat(size - 100)}.e.${signature}`,
    'a payload of it': `${header}.${'A'.repeat(size - header.length - 88)}.${signature}`,
  }
  for (const [name, text] of Object.entries(garbage)) {
    const times: number[] = []
    for (let n = 0; n < 7; n++) {
      const start = performance.now()
      assert.ok(!(await look(text)).ok)
      times.push(performance.now() - start)
    }
    const best = Math.min(...times)
    assert.ok(best < 5, `${name}: ${best} ms`)
  }
})

test('the header names ES256 and exactly three certificates, and no key of its own', async () => {
  const transaction = aTransaction()
  const x5c = [pki.leaf, pki.intermediate, pki.root].map(base64Of)
  for (const alg of ['ES384', 'ES512', 'none', 'HS256', 'RS256', 'es256', null]) {
    await refused(signApple(pki, transaction, { alg }), /alg/)
  }
  await refused(signApple(pki, transaction, { crit: ['exp'] }), /crit/)
  await refused(signApple(pki, transaction, { b64: false }), /crit or b64/)
  for (const wrong of [undefined, [], x5c.slice(0, 2), [...x5c, x5c[2]], 'x5c', [...x5c.slice(0, 2), 7]]) {
    await refused(signApple(pki, transaction, { x5c: wrong }), /x5c/)
  }
  await refused(signApple(pki, transaction, { x5c: [`${x5c[0]}\n`, x5c[1], x5c[2]] }), /canonical/)
  await refused(signApple(pki, transaction, { x5c: [x5c[0], x5c[1], 'AAAA'] }), /canonical/)
  await accepted(signApple(pki, transaction, { jwk: { kty: 'EC' }, kid: 'somebody', jku: 'http://example.com' }))
})

test('the third certificate is not trusted, and not needed', async () => {
  const x5c = [pki.leaf, pki.intermediate, foreign.root].map(base64Of)
  await accepted(signApple(pki, aTransaction(), { x5c }))
  await refused(signApple(foreign, aTransaction()), /no trusted root/)
  const claiming = [foreign.leaf, foreign.intermediate, pki.root].map(base64Of)
  await refused(signApple(foreign, aTransaction(), { x5c: claiming }), /no trusted root/)
})

test('each rule of the chain holds: CA, names, markers, curve, and the key of the root', async () => {
  const wrong: [Pki, RegExp][] = [
    [await testPki({}, { ca: false }), /no CA/],
    [await testPki({ markers: [] }), /leaf is not marked/],
    [await testPki({ markers: [intermediateMarker] }), /leaf is not marked/],
    [await testPki({}, { markers: [] }), /intermediate is not marked/],
    [await testPki({}, { markers: [leafMarker] }), /intermediate is not marked/],
    [await testPki({ curve: 'P-384' }), /P-256|64 bytes/],
    [await testPki({ issuerName: 'CN=Somebody' }), /not of the intermediate/],
    [await testPki({}, { issuerName: 'CN=Somebody' }), /no trusted root/],
  ]
  for (const [chain, reason] of wrong) {
    await refused(signApple(chain, aTransaction()), reason, { trust: trusting(chain.root.certificate) })
  }
  // The same name, another key.
  const twin = await issue({ ca: true, subject: pki.root.subject })
  await refused(signApple(pki, aTransaction()), /no trusted root/, { trust: trusting(twin.certificate) })
  const under = await issue({ issuer: pki.root, markers: [leafMarker] })
  await refused(signApple({ ...pki, leaf: under }, aTransaction()), /not of the intermediate/)
})

test('a revoked leaf or intermediate ends a chain that was known', async () => {
  const text = signApple(pki, aTransaction())
  await accepted(text)
  for (const { certificate } of [pki.leaf, pki.intermediate]) {
    const revoked = new Set([hash('sha256', certificate.raw)])
    await refused(text, /revoked/, { revoked })
  }
  await accepted(text, { revoked: new Set([hash('sha256', pki.root.certificate.raw)]) })
})

test('a moved border between two certificates is another chain', async () => {
  const text = signApple(pki, aTransaction())
  await accepted(text)
  const [leaf = '', intermediate = '', root = ''] = [pki.leaf, pki.intermediate, pki.root].map(base64Of)
  const both = Buffer.concat([Buffer.from(leaf, 'base64'), Buffer.from(intermediate, 'base64')])
  const cut = Buffer.from(leaf, 'base64').length - 1
  const x5c = [both.subarray(0, cut), both.subarray(cut)].map((part) => part.toString('base64'))
  await refused(signApple(pki, aTransaction(), { x5c: [...x5c, root] }), /canonical/)
})

test('the instant of signing is required, and lies no more than 60 s ahead of the app', async () => {
  const now = Date.now()
  await refused(signApple(pki, aTransaction({ signedDate: undefined })), /instant of signing/)
  await refused(signApple(pki, aTransaction({ signedDate: String(now) })), /instant of signing/)
  await accepted(signApple(pki, aTransaction({ signedDate: now + 60_000 })), { now })
  await refused(signApple(pki, aTransaction({ signedDate: now + 60_001 })), /future/, { now })
})

test('another key, another payload and a flipped bit are refused', async () => {
  const [header = '', payload = '', signature = ''] = signApple(pki, aTransaction()).split('.')
  const other = signApple(pki, aTransaction()).split('.')
  await refused(`${header}.${other[1]}.${signature}`, /signature/)
  await refused(`${header}.${payload}.${other[2]}`, /signature/)
  const x5c = [pki.leaf, pki.intermediate, pki.root].map(base64Of)
  await refused(compact(aTransaction(), foreign.leaf.privateKey, { alg: 'ES256', x5c }), /signature/)
})

test('every claim of a transaction that we rely on is required and of its type', async () => {
  const names = [
    'transactionId',
    'originalTransactionId',
    'bundleId',
    'productId',
    'type',
    'purchaseDate',
    'environment',
    'inAppOwnershipType',
  ]
  for (const name of names) {
    await refused(signApple(pki, aTransaction({ [name]: undefined })), new RegExp(`${name} is missing`))
    await refused(signApple(pki, aTransaction({ [name]: { a: 1 } })), /wrong type/)
    await refused(signApple(pki, aTransaction({ [name]: null })), /wrong type/)
  }
  const wrong = {
    quantity: '1',
    isUpgraded: 'true',
    appAccountToken: 7,
    revocationDate: '1',
    price: '3',
    offerType: [],
  }
  for (const [name, value] of Object.entries(wrong)) {
    await refused(signApple(pki, aTransaction({ [name]: value })), /wrong type/)
  }
  await accepted(signApple(pki, aTransaction({ transactionId: 'x'.repeat(64) })))
  await refused(signApple(pki, aTransaction({ transactionId: 'x'.repeat(65) })), /no id/)
  await refused(signApple(pki, aTransaction({ transactionId: '' })), /no id/)
  await refused(signApple(pki, aTransaction({ environment: 'Staging' })), /unknown/)
  await refused(signApple(pki, aTransaction({ type: 'Auto-Renewable Subscription' })), /expiresDate/)
  for (const at of [-1, 253_402_300_800_000, 1e300]) {
    await refused(signApple(pki, aTransaction({ purchaseDate: at })), /no instant/)
  }
  for (const text of ['a\0b', 'a\ud800b']) await refused(signApple(pki, aTransaction({ productId: text })), /stored/)
  await accepted(signApple(pki, aTransaction({ somethingNew: { deep: [1] } })))
})

test('exp and nbf are honoured where they are there', async () => {
  const now = Math.floor(Date.now() / 1000)
  await accepted(signApple(pki, aTransaction({ exp: now + 60, nbf: now - 60 })))
  await refused(signApple(pki, aTransaction({ exp: now - 60 })), /exp/)
  await refused(signApple(pki, aTransaction({ nbf: now + 60 })), /nbf/)
  await refused(signApple(pki, aTransaction({ exp: 'never' })), /exp/)
})

const renewal = { originalTransactionId: '1', autoRenewProductId: 'p', autoRenewStatus: 1, environment: 'Sandbox' }
const notification = { notificationType: 'TEST', notificationUUID: 'n-1', version: '2.0' }

test('kinds do not interchange', async () => {
  const signedDate = Date.now() - 1000
  const receiptCreationDate = signedDate
  const texts: Record<JwsKind, string> = {
    transaction: signApple(pki, aTransaction()),
    renewal: signApple(pki, { ...renewal, signedDate }),
    notification: signApple(pki, { ...notification, signedDate }),
    app_transaction: signApple(pki, { receiptType: 'Sandbox', bundleId: 'b', receiptCreationDate }),
  }
  for (const [made, text] of Object.entries(texts)) {
    for (const kind of Object.keys(texts) as JwsKind[]) {
      const verdict = await look(text, {}, kind)
      assert.equal(verdict.ok, made === kind, `${made} as ${kind}`)
    }
  }
})

test('Xcode signs only for those who pinned its certificate', async () => {
  const xcode = await issue({ subject: 'CN=StoreKit Testing in Xcode' })
  const header = { alg: 'ES256', kid: 'Apple_Xcode_Key', x5c: [base64Of(xcode)] }
  const transaction = aTransaction({ environment: 'Xcode', signedDate: Date.now() - 1000.5 })
  const text = compact(transaction, xcode.privateKey, header)
  const pinned: TrustSet = trustSet([pki.root.certificate], [xcode.certificate])
  assert.equal((await accepted(text, { trust: pinned })).signer.kind, 'xcode')
  await refused(text, /pinned/)
  await refused(compact(transaction, pki.leaf.privateKey, header), /signature/, {
    trust: trustSet([], [xcode.certificate]),
  })
  await refused(compact({ ...transaction, environment: 'Production' }, xcode.privateKey, header), /environment/, {
    trust: trustSet([], [xcode.certificate]),
  })
  await refused(compact(transaction, xcode.privateKey, { ...header, kid: 'other' }), /one certificate/, {
    trust: trustSet([], [xcode.certificate]),
  })
  // A chain does not make an environment that nothing signs.
  for (const environment of ['Xcode', 'LocalTesting']) {
    await refused(signApple(pki, aTransaction({ environment })), /environment/)
  }
})

const library = new SignedDataVerifier([pki.root.certificate.raw], false, Environment.SANDBOX, 'com.example.app')

/** What the library says of it, offline. */
async function libraryAccepts(text: string): Promise<boolean> {
  return library.verifyAndDecodeTransaction(text).then(
    () => true,
    () => false,
  )
}

const certificates = [
  pki.leaf,
  pki.intermediate,
  pki.root,
  foreign.leaf,
  foreign.intermediate,
  foreign.root,
  await issue({ issuer: pki.intermediate }),
  await issue({ issuer: pki.root, ca: true }),
  await issue({
    issuer: pki.intermediate,
    markers: [leafMarker],
    to: Date.now() - 300 * dayMs,
    from: Date.now() - 390 * dayMs,
  }),
]

const mutations = fc.record({
  x5c: fc.option(fc.array(fc.constantFrom(...certificates.keys()), { minLength: 1, maxLength: 4 }), { freq: 2 }),
  key: fc.constantFrom('right', 'right', 'right', 'foreign'),
  alg: fc.constantFrom('ES256', 'ES256', 'ES256', 'ES384', 'none'),
  claim: fc.option(
    fc.tuple(
      fc.constantFrom(
        'transactionId',
        'bundleId',
        'signedDate',
        'environment',
        'type',
        'purchaseDate',
        'expiresDate',
        'quantity',
        'isUpgraded',
        'exp',
        'revocationDate',
      ),
      fc.oneof(
        fc.constant(undefined),
        fc.constant(null),
        fc.string(),
        fc.double(),
        fc.boolean(),
        fc.integer({ min: Date.now() - 500 * dayMs, max: Date.now() + 500 * dayMs }),
      ),
    ),
  ),
  flip: fc.option(fc.nat(1_000_000), { freq: 2 }),
  swap: fc.constantFrom(false, false, false, true),
})

test('whatever the library refuses we refuse, and a known chain makes no difference', {
  timeout: 120_000,
}, async () => {
  const warm = trusting(pki.root.certificate)
  await accepted(signApple(pki, aTransaction()), { trust: warm })
  let both = 0
  await fc.assert(
    fc.asyncProperty(mutations, async ({ x5c, key, alg, claim, flip, swap }) => {
      const transaction = aTransaction(claim ? { [claim[0]]: claim[1] } : {})
      const chain = (x5c ?? [0, 1, 2]).map((i) => base64Of(certificates[i] ?? pki.leaf))
      const signer = key === 'right' ? (certificates[x5c?.[0] ?? 0] ?? pki.leaf) : foreign.leaf
      let text = compact(transaction, signer.privateKey, { alg, x5c: chain })
      if (swap)
        text = text
          .split('.')
          .with(1, signApple(pki, aTransaction()).split('.')[1] ?? '')
          .join('.')
      if (flip !== null) {
        const at = flip % text.length
        text = `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`
      }
      const cold = await look(text, { trust: trusting(pki.root.certificate) })
      const known = await look(text, { trust: warm })
      assert.equal(cold.ok, known.ok, text)
      if (cold.ok && cold.payload.bundleId === 'com.example.app' && cold.payload.environment === 'Sandbox') {
        assert.ok(await libraryAccepts(text), `we accept what the library refuses: ${text}`)
        both++
      }
    }),
    { numRuns: 700 },
  )
  assert.ok(both > 10, `only ${both} were accepted`)
})
