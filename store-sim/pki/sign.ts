import { createPrivateKey } from 'node:crypto'
import { CompactSign, SignJWT } from 'jose'
import type { Seeded } from '../ids.ts'
import type { ChainKind } from './chain.ts'
import { chainFor, type KeyRing, x5cOf } from './keys.ts'

const encoder = new TextEncoder()

/** As the App Store signs everything: ES256, the chain in the header. No two strings are the same. */
export async function signAppleJws(
  world: Seeded & { keys: KeyRing },
  payload: object,
  at: number,
  kind: ChainKind = 'genuine',
): Promise<string> {
  const chain = await chainFor(world, world.keys, kind, at)
  return new CompactSign(encoder.encode(JSON.stringify(payload)))
    .setProtectedHeader({ alg: 'ES256', x5c: x5cOf(chain) })
    .sign(createPrivateKey(chain.leaf.key))
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
