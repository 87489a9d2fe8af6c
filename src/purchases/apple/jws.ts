import { verify } from 'node:crypto'
import type { JsonObject } from '../../events/index.ts'
import { type Chain, chainOf, fingerprintOf, type TrustSet } from './chain.ts'
import { claimsFault, type JwsKind } from './claims.ts'
import { type Compact, readCompact } from './compact.ts'

export interface JwsContext {
  trust: TrustSet
  /** Unix milliseconds: of the app, and of the wall, which differ where a test clock runs ahead. */
  now: number
  wallNow: number
  /** Hex SHA-256 of certificates that were revoked. */
  revoked: ReadonlySet<string>
}

export type JwsVerdict =
  | { ok: true; payload: JsonObject; signer: { kind: 'apple'; chain: Chain } | { kind: 'xcode'; fingerprint: string } }
  /** For the log: callers hear only that the evidence is not valid. */
  | { ok: false; reason: string }

const skewMs = 60_000

/**
 * Verifies any signed string of Apple's. It takes no environment: what is signed and by whom comes first, then the verified
 * claim is held against the rules. A known chain spares only the checks of the two certificates against the root.
 */
export async function verifyAppleJws(text: string, kind: JwsKind, context: JwsContext): Promise<JwsVerdict> {
  const compact = readCompact(text)
  if (typeof compact === 'string') return no(compact)
  const signedAt = compact.payload[kind === 'app_transaction' ? 'receiptCreationDate' : 'signedDate']
  if (typeof signedAt !== 'number' || !Number.isFinite(signedAt)) return no('no instant of signing')
  if (signedAt > context.now + skewMs) return no('signed in the future')
  return compact.x5c.length === 1
    ? verifyXcode(compact, kind, signedAt, context)
    : verifyChain(compact, kind, signedAt, context)
}

async function verifyChain(
  compact: Compact,
  kind: JwsKind,
  signedAt: number,
  context: JwsContext,
): Promise<JwsVerdict> {
  const chain = await chainOf(context.trust, compact.x5c, signedAt)
  if (typeof chain === 'string') return no(chain)
  // Not today's date: leaves are replaced every other year, and what they signed stays true.
  if (signedAt < chain.notBefore - skewMs || signedAt > chain.notAfter + skewMs) return no('signed outside of validity')
  if (chain.fingerprints.some((each) => context.revoked.has(each))) return no('a certificate was revoked')
  if (!isSigned(compact, chain.publicKey)) return no('the signature is wrong')
  return judged(compact, kind, context, { kind: 'apple', chain })
}

/** Xcode signs with one certificate, which an app in `test` has pinned. */
function verifyXcode(compact: Compact, kind: JwsKind, signedAt: number, context: JwsContext): JwsVerdict {
  if (compact.header.kid !== 'Apple_Xcode_Key') return no('one certificate')
  const pinned = context.trust.xcode.find((each) => each.raw.toString('base64') === compact.x5c[0])
  if (!pinned) return no('signed by no pinned certificate')
  if (pinned.publicKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1') return no('the certificate is not P-256')
  const [from, to] = [pinned.validFromDate.getTime(), pinned.validToDate.getTime()]
  if (signedAt < from - skewMs || signedAt > to + skewMs) return no('signed outside of validity')
  if (!isSigned(compact, pinned.publicKey)) return no('the signature is wrong')
  return judged(compact, kind, context, { kind: 'xcode', fingerprint: fingerprintOf(pinned) })
}

function isSigned({ signed, signature }: Compact, publicKey: Chain['publicKey']): boolean {
  return verify('sha256', Buffer.from(signed), { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)
}

function judged(
  { payload }: Compact,
  kind: JwsKind,
  { wallNow }: JwsContext,
  signer: Extract<JwsVerdict, { ok: true }>['signer'],
): JwsVerdict {
  const fault = claimsFault(kind, payload) ?? timeFault(payload, wallNow / 1000)
  if (fault !== undefined) return no(fault)
  const { environment } = payload
  if ((environment === 'Xcode' || environment === 'LocalTesting') !== (signer.kind === 'xcode')) {
    return no('the environment is not that of the signer')
  }
  return { ok: true, payload, signer }
}

/** Seconds, as JWTs have them. */
function timeFault({ exp, nbf }: JsonObject, nowS: number): string | undefined {
  if (exp !== undefined && !(typeof exp === 'number' && nowS < exp)) return 'exp has passed'
  if (nbf !== undefined && !(typeof nbf === 'number' && nowS >= nbf)) return 'nbf lies ahead'
  return undefined
}

function no(reason: string): JwsVerdict {
  return { ok: false, reason }
}
