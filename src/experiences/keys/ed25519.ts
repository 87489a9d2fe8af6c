import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto'
import { must } from '../../kernel/assert.ts'

/** What PKCS #8 puts before the 32 bytes of an Ed25519 seed, and SPKI before those of a public key. */
const seedPrefix = Buffer.from('302e020100300506032b657004220420', 'hex')
const publicPrefix = Buffer.from('302a300506032b6570032100', 'hex')

/** Of a seed of 32 bytes. */
export function privateKeyOf(seed: Buffer): KeyObject {
  return createPrivateKey({ key: Buffer.concat([seedPrefix, seed]), format: 'der', type: 'pkcs8' })
}

/** The 32 bytes that belong to a seed. */
export function publicKeyOf(seed: Buffer): Buffer {
  const { x } = createPublicKey(privateKeyOf(seed)).export({ format: 'jwk' })
  return Buffer.from(must(x, 'an Ed25519 key has an x'), 'base64url')
}

/** RFC 7638: the SHA-256 of the key as a JWK, base64url. */
export function thumbprintOf(publicKey: Buffer): string {
  return hash('sha256', JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x: publicKey.toString('base64url') }), 'base64url')
}

/** 64 bytes. */
export function signWith(key: KeyObject, message: Buffer): Buffer {
  return sign(null, message, key)
}

export function isSignedBy(publicKey: Buffer, message: Buffer, signature: Buffer): boolean {
  const key = createPublicKey({ key: Buffer.concat([publicPrefix, publicKey]), format: 'der', type: 'spki' })
  return verify(null, message, key, signature)
}

/** Seeds that stand in public documents: RFC 8032, section 7.1, and those of one byte repeated. */
const printedSeeds = new Set([
  '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
  '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
  'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
  'f5e5767cf153319517630f226876b86c8160cc583bc013744c6bf255f5cc0ee5',
  '833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42',
  '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f',
])

/** Anybody can sign with it. */
export function isPublicSeed(seed: Buffer): boolean {
  return printedSeeds.has(seed.toString('hex')) || seed.every((byte) => byte === seed[0])
}
