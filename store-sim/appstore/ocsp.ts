import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import {
  BasicOCSPResponse,
  type CertID,
  CertStatus,
  id_pkix_ocsp_basic,
  OCSPRequest,
  OCSPResponse,
  OCSPResponseStatus,
  ResponderID,
  ResponseBytes,
  ResponseData,
  RevokedInfo,
  SingleResponse,
} from '@peculiar/asn1-ocsp'
import { AsnConvert, OctetString } from '@peculiar/asn1-schema'
import { AlgorithmIdentifier, Certificate } from '@peculiar/asn1-x509'
import { AsnEcSignatureFormatter, X509Certificate } from '@peculiar/x509'
import { strike } from '../faults.ts'
import type { Handler, Routes } from '../http/router.ts'
import { hourMs } from '../period.ts'
import { type Issued, privateOf } from '../pki/certificate.ts'
import { type Chain, newResponder } from '../pki/chain.ts'
import { Refusal } from '../refusal.ts'
import type { Sim } from '../world.ts'

const ecdsaWithSha256 = '1.2.840.10045.4.3.2'
const signing = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const validMs = 12 * hourMs
const path = '/appstore/ocsp'

const answer: Handler = async (sim, { bytes }) => {
  if (strike(sim.world, path, ['ocsp_down']) !== undefined) throw new Refusal(503, 'the responder is down\n')
  const [asked] = readRequest(bytes)
  const found = asked === undefined ? undefined : issuerOf(sim, asked)
  const response =
    asked === undefined
      ? new OCSPResponse({ responseStatus: OCSPResponseStatus.malformedRequest })
      : found === undefined
        ? new OCSPResponse({ responseStatus: OCSPResponseStatus.unauthorized })
        : await signedResponse(sim, asked, found)
  return { headers: { 'content-type': 'application/ocsp-response' }, body: Buffer.from(AsnConvert.serialize(response)) }
}

/** The responder that the certificates name: one certificate a request, signed in the name of whoever issued it. */
export const ocsp: Routes = { 'POST /appstore/ocsp': answer }

type Issuer = { issued: Issued; of: 'root' | 'intermediate' }

function readRequest(bytes: Buffer): CertID[] {
  try {
    return AsnConvert.parse(bytes, OCSPRequest).tbsRequest.requestList.map(({ reqCert }) => reqCert)
  } catch {
    return []
  }
}

function issuerOf({ world }: Sim, { serialNumber }: CertID): Issuer | undefined {
  const serial = Buffer.from(serialNumber).toString('hex')
  const has = ({ certificate }: Issued) => new X509Certificate(certificate).serialNumber === serial
  const chains: Chain[] = Object.values(world.keys.chains)
  const byIntermediate = chains.find(({ leaf }) => has(leaf))
  if (byIntermediate !== undefined) return { issued: byIntermediate.intermediate, of: 'intermediate' }
  const byRoot = chains.find(({ intermediate }) => has(intermediate))
  return byRoot === undefined ? undefined : { issued: byRoot.root, of: 'root' }
}

async function signedResponse(sim: Sim, certID: CertID, { issued, of }: Issuer): Promise<OCSPResponse> {
  const now = sim.wall()
  const responder = await newResponder(sim.world, issued, of, now)
  const certificate = new X509Certificate(responder.certificate)
  const isRevoked = strike(sim.world, path, ['ocsp_revoked']) !== undefined
  const tbsResponseData = new ResponseData({
    responderID: new ResponderID({ byKey: new OctetString(await certificate.publicKey.getKeyIdentifier()) }),
    producedAt: new Date(now),
    responses: [
      new SingleResponse({
        certID,
        certStatus: isRevoked
          ? new CertStatus({ revoked: new RevokedInfo({ revocationTime: new Date(now) }) })
          : new CertStatus({ good: null }),
        thisUpdate: new Date(now),
        nextUpdate: new Date(now + validMs),
      }),
    ],
  })
  const signed = await webcrypto.subtle.sign(
    signing,
    await privateOf(responder.key),
    AsnConvert.serialize(tbsResponseData),
  )
  const signature = new AsnEcSignatureFormatter().toAsnSignature(signing, signed)
  if (signature === null) throw new Error('ECDSA signatures have a form in ASN.1')
  const basic = new BasicOCSPResponse({
    tbsResponseData,
    signatureAlgorithm: new AlgorithmIdentifier({ algorithm: ecdsaWithSha256 }),
    signature,
    certs: [AsnConvert.parse(certificate.rawData, Certificate)],
  })
  const response = new OctetString(AsnConvert.serialize(basic))
  return new OCSPResponse({
    responseStatus: OCSPResponseStatus.successful,
    responseBytes: new ResponseBytes({ responseType: id_pkix_ocsp_basic, response }),
  })
}
