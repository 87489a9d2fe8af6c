import { createPrivateKey, sign, X509Certificate } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Seeded } from '../ids.ts'
import { type Issued, newKey } from './certificate.ts'
import { type ChainKind, chainKinds } from './chain.ts'
import { chainFor, type KeyRing, x5cOf } from './keys.ts'

/** What is wrong with the string itself, under a chain that is all right. */
const wrongStrings = ['forged_signature', 'tampered_payload', 'truncated_jws'] as const

/** How a string is signed. `xcode`: by its one certificate, as for an app that is run from Xcode. */
export const signings = [...chainKinds, ...wrongStrings, 'xcode'] as const
export type Signing = (typeof signings)[number]

/** All that no service should take. */
export const wrongSignings = [...chainKinds.filter((kind) => kind !== 'genuine'), ...wrongStrings] as const

export interface SignOptions {
  signing?: Signing | undefined
  /** Fields of the header beside the usual ones, or instead of them; null leaves one out. */
  header?: Record<string, unknown> | undefined
  /** The same for the payload. */
  claims?: Record<string, unknown> | undefined
}

/** As the App Store signs everything: ES256, the chain in the header. No two strings are the same. */
export async function signAppleJws(
  world: Seeded & { keys: KeyRing },
  payload: object,
  at: number,
  { signing = 'genuine', header = {}, claims = {} }: SignOptions = {},
): Promise<string> {
  const { x5c, key, kid } = await signerFor(world, signing, at)
  const usual = { alg: 'ES256', ...(kid === undefined ? {} : { kid }), x5c }
  const signed = `${encode(changed(usual, header))}.${encode(changed(payload, claims))}`
  const signature = sign('sha256', Buffer.from(signed), {
    key: createPrivateKey(signing === 'forged_signature' ? newKey() : key),
    dsaEncoding: 'ieee-p1363',
  })
  const jws = `${signed}.${signature.toString('base64url')}`
  if (signing === 'truncated_jws') return jws.slice(0, -20)
  return signing === 'tampered_payload' ? tampered(jws) : jws
}

interface Signer {
  x5c: string[]
  key: string
  kid?: string
}

async function signerFor(world: Seeded & { keys: KeyRing }, signing: Signing, at: number): Promise<Signer> {
  if (signing === 'xcode') {
    const { xcode } = world.keys
    return { x5c: [derOf(xcode)], key: xcode.key, kid: 'Apple_Xcode_Key' }
  }
  const chain = await chainFor(world, world.keys, chainKindOf(signing), at)
  return { x5c: x5cOf(chain), key: chain.leaf.key }
}

function chainKindOf(signing: Signing): ChainKind {
  return chainKinds.find((kind) => kind === signing) ?? 'genuine'
}

/** Ten years more than were paid: the payload was changed after it was signed. */
function tampered(jws: string): string {
  const [header = '', payload = '', signature = ''] = jws.split('.')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
  return [header, encode({ ...claims, expiresDate: Number(claims.signedDate) + tenYearsMs }), signature].join('.')
}
const tenYearsMs = 3650 * 24 * 3600_000

function changed(usual: object, changes: Record<string, unknown>): object {
  return Object.fromEntries(Object.entries({ ...usual, ...changes }).filter(([, value]) => value !== null))
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function derOf({ certificate }: Issued): string {
  return new X509Certificate(certificate).raw.toString('base64')
}

/** As Pub/Sub authenticates a push. Tokens live by the wall clock, whatever the simulated time. */
export function signPushToken({ oidc }: KeyRing, audience: string, email: string, wall: number): Promise<string> {
  const iat = Math.floor(wall / 1000)
  return new SignJWT({ email, email_verified: true, azp: '100000000000000000002' })
    .setProtectedHeader({ alg: 'RS256', kid: oidc.keyId, typ: 'JWT' })
    .setIssuer('https://accounts.google.com')
    .setSubject('100000000000000000002')
    .setAudience(audience)
    .setIssuedAt(iat)
    .setExpirationTime(iat + 3600)
    .sign(createPrivateKey(oidc.privateKey))
}
