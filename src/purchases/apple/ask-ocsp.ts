import { X509Certificate } from 'node:crypto'
import { ocspAnswerBytesMax, ocspMsMax } from '../../kernel/limits.ts'
import { fingerprintOf } from './chain.ts'
import type { AskedLeaf } from './leaf-store.ts'
import { type OcspAnswer, ocspRequestFor, ocspUrlOf, readOcsp } from './ocsp.ts'
import { appleRoot } from './roots.ts'

/** Asks whoever made a certificate whether it was revoked. Of Apple's own only Apple's host is asked. */
export async function askOcsp(
  { certificate, issuer, rootFingerprint }: AskedLeaf,
  { now, signal }: { now: number; signal: AbortSignal },
): Promise<OcspAnswer> {
  const [asked, by] = [new X509Certificate(certificate), new X509Certificate(issuer)]
  const url = ocspUrlOf(asked)
  if (url === undefined) return { kind: 'unusable', why: 'it names no responder' }
  const isApples = rootFingerprint === fingerprintOf(appleRoot)
  if (isApples && URL.parse(url)?.hostname !== 'ocsp.apple.com')
    return { kind: 'unusable', why: 'it names another host' }
  const body = await post(url, ocspRequestFor(asked, by), signal)
  return body === null
    ? { kind: 'unusable', why: 'nobody answers' }
    : readOcsp(body, { certificate: asked, issuer: by, now })
}

async function post(url: string, body: Buffer, signal: AbortSignal): Promise<Buffer | null> {
  try {
    const response = await fetch(url, {
      ...{ method: 'POST', headers: { 'content-type': 'application/ocsp-request' }, body: new Uint8Array(body) },
      ...{ redirect: 'manual', signal: AbortSignal.any([signal, AbortSignal.timeout(ocspMsMax)]) },
    })
    if (response.status !== 200) return null
    const parts: Uint8Array[] = []
    let bytes = 0
    for await (const part of response.body ?? []) {
      bytes += part.byteLength
      if (bytes > ocspAnswerBytesMax) return null
      parts.push(part)
    }
    return Buffer.concat(parts)
  } catch {
    return null
  }
}
