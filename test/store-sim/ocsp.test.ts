import 'reflect-metadata'
import assert from 'node:assert/strict'
import { hash, webcrypto } from 'node:crypto'
import test from 'node:test'
import { BasicOCSPResponse, CertID, OCSPRequest, OCSPResponse, Request, TBSRequest } from '@peculiar/asn1-ocsp'
import { AsnConvert, OctetString } from '@peculiar/asn1-schema'
import { AlgorithmIdentifier } from '@peculiar/asn1-x509'
import { AsnEcSignatureFormatter, AuthorityInfoAccessExtension, X509Certificate } from '@peculiar/x509'
import { decodeProtectedHeader } from 'jose'
import { openSim, type Simulator } from './sim.ts'

const sha1 = '1.3.14.3.2.26'
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

async function chainOf(sim: Simulator): Promise<X509Certificate[]> {
  const { signedTransaction } = await sim.buyApple({ productId: 'com.example.demo.coins_100' })
  return (decodeProtectedHeader(signedTransaction).x5c ?? []).map((der) => new X509Certificate(der))
}

/** Asks the address that the certificate itself names, or another. */
async function ask(certificate: X509Certificate, issuer: X509Certificate, address?: string) {
  const [location] = certificate.getExtension(AuthorityInfoAccessExtension)?.ocsp ?? []
  assert.ok(location)
  const reqCert = new CertID({
    hashAlgorithm: new AlgorithmIdentifier({ algorithm: sha1, parameters: null }),
    issuerNameHash: new OctetString(hash('sha1', Buffer.from(issuer.subjectName.toArrayBuffer()), 'buffer')),
    issuerKeyHash: new OctetString(await issuer.publicKey.getKeyIdentifier()),
    serialNumber: new Uint8Array(Buffer.from(certificate.serialNumber, 'hex')).buffer,
  })
  const request = new OCSPRequest({ tbsRequest: new TBSRequest({ requestList: [new Request({ reqCert })] }) })
  const response = await fetch(address ?? location.value, { method: 'POST', body: AsnConvert.serialize(request) })
  return { status: response.status, bytes: await response.arrayBuffer() }
}

async function basicOf(bytes: ArrayBuffer): Promise<BasicOCSPResponse> {
  const { responseStatus, responseBytes } = AsnConvert.parse(bytes, OCSPResponse)
  assert.equal(responseStatus, 0)
  return AsnConvert.parse(responseBytes?.response.buffer ?? new ArrayBuffer(0), BasicOCSPResponse)
}

test('leaf and intermediate are good, by a responder that their issuer delegated', async () => {
  await using sim = await openSim({ clock: 'real' })
  const [leaf, intermediate, root] = await chainOf(sim)
  assert.ok(leaf && intermediate && root)
  for (const [certificate, issuer] of [
    [leaf, intermediate],
    [intermediate, root],
  ] as const) {
    const { bytes } = await ask(certificate, issuer)
    const { tbsResponseData, signature, certs } = await basicOf(bytes)
    const [single] = tbsResponseData.responses
    assert.ok(single && single.certStatus.revoked === undefined && single.certStatus.unknown === undefined)
    assert.ok((single.nextUpdate?.getTime() ?? 0) > Date.now())
    const [delegated] = certs ?? []
    assert.ok(delegated)
    const responder = new X509Certificate(AsnConvert.serialize(delegated))
    assert.ok(await responder.verify({ publicKey: issuer.publicKey, signatureOnly: true }))
    const key = await responder.publicKey.export(algorithm, ['verify'])
    const raw = new AsnEcSignatureFormatter().toWebSignature(algorithm, signature)
    assert.ok(raw)
    assert.ok(await webcrypto.subtle.verify(algorithm, key, raw, AsnConvert.serialize(tbsResponseData)))
  }
})

test('revoked and down when told; unknown certificates and noise get no verdict', async () => {
  await using sim = await openSim({ clock: 'real' })
  const [leaf, intermediate, root] = await chainOf(sim)
  assert.ok(leaf && intermediate && root)
  await sim.control('PUT', '/sim/faults', { faults: [{ kind: 'ocsp_revoked', count: 1 }] })
  const revoked = await basicOf((await ask(leaf, intermediate)).bytes)
  assert.ok(revoked.tbsResponseData.responses[0]?.certStatus.revoked)
  await sim.control('PUT', '/sim/faults', { faults: [{ kind: 'ocsp_down', count: 1 }] })
  assert.equal((await ask(leaf, intermediate)).status, 503)
  assert.equal((await ask(leaf, intermediate)).status, 200)
  await using other = await openSim({ clock: 'real', seed: 'other' })
  const [stranger, itsIssuer] = await chainOf(other)
  assert.ok(stranger && itsIssuer)
  const statusOf = (bytes: ArrayBuffer) => AsnConvert.parse(bytes, OCSPResponse).responseStatus
  // Every simulator counts its certificates alike, from another number for each seed.
  assert.equal(statusOf((await ask(stranger, itsIssuer, `${sim.url}/appstore/ocsp`)).bytes), 6)
  const noise = await fetch(`${sim.url}/appstore/ocsp`, { method: 'POST', body: 'noise' })
  assert.equal(statusOf(await noise.arrayBuffer()), 1)
})
