import { createHash, verify, X509Certificate } from 'node:crypto'
import { ASN1HEX, KJUR, X509 } from 'jsrsasign'

export type OcspAnswer =
  | { kind: 'good' | 'revoked'; nextUpdate: number }
  /** Signed by nobody who may, about another certificate, out of date, or no answer at all. */
  | { kind: 'unusable'; why: string }

const skewMs = 60_000
const noNextUpdateMs = 24 * 3600_000

/** Where the issuer of a certificate answers about it. */
export function ocspUrlOf({ infoAccess }: X509Certificate): string | undefined {
  return infoAccess === undefined ? undefined : /^OCSP - URI:(http:\/\/\S+)$/m.exec(infoAccess)?.[1]
}

export function ocspRequestFor(certificate: X509Certificate, issuer: X509Certificate): Buffer {
  const reqList = [{ issuerCert: issuer.toString(), subjectCert: certificate.toString(), alg: 'sha256' }]
  return Buffer.from(new KJUR.asn1.ocsp.OCSPRequest({ reqList }).getEncodedHex(), 'hex')
}

/** What an answer says of a certificate. Pure. */
export function readOcsp(
  body: Buffer,
  { certificate, issuer, now }: { certificate: X509Certificate; issuer: X509Certificate; now: number },
): OcspAnswer {
  try {
    return judge(body.toString('hex'), { certificate, issuer, now })
  } catch {
    return { kind: 'unusable', why: 'it cannot be read' }
  }
}

type CertId = Record<'alg' | 'issname' | 'isskey' | 'sbjsn', string>

/** What jsrsasign has; its declared types lack these. */
const ocsp = KJUR.asn1.ocsp as unknown as {
  OCSPParser: new () => { getOCSPResponse: (hex: string) => Parsed }
  CertID: new () => { getParamByCerts: (issuer: string, certificate: string, alg: string) => CertId }
}

interface Parsed {
  certs?: string[]
  respid: { key?: string; name?: { str: string } }
  alg: string
  sighex: string
  array: {
    certid: CertId
    status: { status: string }
    thisupdate: string
    nextupdate?: string
  }[]
}

function judge(
  hex: string,
  { certificate, issuer, now }: { certificate: X509Certificate; issuer: X509Certificate; now: number },
): OcspAnswer {
  const parsed = new ocsp.OCSPParser().getOCSPResponse(hex)
  const signer = [issuer, ...(parsed.certs ?? []).map(certificateIn)].find((each) => answersAs(each, parsed))
  if (!signer) return unusable('its signer is not there')
  if (!mayAnswer(signer, issuer, now)) return unusable('its signer may not answer')
  const algorithm = /^SHA(256|384|512)with/i.exec(parsed.alg)?.[1]
  const data = ASN1HEX.getTLVbyList(hex, 0, [1, 0, 1, 0, 0]) ?? ''
  const isSigned =
    algorithm !== undefined &&
    verify(`sha${algorithm}`, Buffer.from(data, 'hex'), signer.publicKey, Buffer.from(parsed.sighex, 'hex'))
  if (!isSigned) return unusable('its signature is wrong')

  const asked = new ocsp.CertID().getParamByCerts(issuer.toString(), certificate.toString(), 'sha256')
  const names = ['alg', 'issname', 'isskey', 'sbjsn'] as const
  const found = parsed.array.find(({ certid }) => names.every((name) => certid[name] === asked[name]))
  if (!found) return unusable('it is about another certificate')
  const since = instantOf(found.thisupdate)
  const nextUpdate = found.nextupdate === undefined ? since + noNextUpdateMs : instantOf(found.nextupdate)
  if (!(since <= now + skewMs && nextUpdate >= now - skewMs)) return unusable('it is out of date')
  const { status } = found.status
  return status === 'good' || status === 'revoked' ? { kind: status, nextUpdate } : unusable('it knows nothing')
}

function unusable(why: string): OcspAnswer {
  return { kind: 'unusable', why }
}

function certificateIn(hex: string): X509Certificate {
  return new X509Certificate(Buffer.from(hex, 'hex'))
}

/** Responders are named by the SHA-1 of their key, or by their subject. */
function answersAs(certificate: X509Certificate, { respid }: Parsed): boolean {
  const reader = readerOf(certificate)
  if (respid.key === undefined) return respid.name?.str === reader.getSubject().str
  return createHash('sha1').update(Buffer.from(reader.getSPKIValue(), 'hex')).digest('hex') === respid.key
}

/** The issuer itself, or whom it made a certificate for just that. */
function mayAnswer(signer: X509Certificate, issuer: X509Certificate, now: number): boolean {
  if (signer.raw.equals(issuer.raw)) return true
  const usage = readerOf(signer).getExtExtKeyUsage() as { array?: string[] } | undefined
  return (
    signer.issuer === issuer.subject &&
    signer.verify(issuer.publicKey) &&
    usage?.array?.includes('ocspSigning') === true &&
    signer.validFromDate.getTime() <= now + skewMs &&
    signer.validToDate.getTime() >= now - skewMs
  )
}

function readerOf(certificate: X509Certificate): X509 {
  const reader = new X509()
  reader.readCertHex(certificate.raw.toString('hex'))
  return reader
}

/** `20261120141500Z`, with a fraction or without. */
function instantOf(text: string): number {
  const [, date] = /^(\d{14})(?:\.\d+)?Z$/.exec(text) ?? []
  return date === undefined
    ? Number.NaN
    : Date.parse(date.replace(/^(....)(..)(..)(..)(..)(..)$/, '$1-$2-$3T$4:$5:$6Z'))
}
