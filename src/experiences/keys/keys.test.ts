import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import { isPublicSeed, isSignedBy, privateKeyOf, publicKeyOf, signWith, thumbprintOf } from './ed25519.ts'
import { weaknessOf } from './point.ts'

const bytes = (length: number) =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((array) => Buffer.from(array))

test('seeds and public keys are those of RFC 8032, section 7.1', () => {
  const seed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex')
  const publicKey = publicKeyOf(seed)
  assert.equal(publicKey.toString('hex'), 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a')
  assert.equal(
    signWith(privateKeyOf(seed), Buffer.alloc(0)).toString('hex'),
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  )
  assert.equal(thumbprintOf(publicKey), 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k') // RFC 8037, appendix A.3
  assert.ok(isPublicSeed(seed))
  assert.ok(isPublicSeed(Buffer.alloc(32, 7)))
})

test('the public key of any seed is sound, and what its seed signs verifies, unless one bit is another', () => {
  fc.assert(
    fc.property(bytes(32), bytes(40), fc.nat(40 * 8 - 1), (seed, message, bit) => {
      const publicKey = publicKeyOf(seed)
      assert.equal(weaknessOf(publicKey), undefined)
      const signature = signWith(privateKeyOf(seed), message)
      assert.ok(isSignedBy(publicKey, message, signature))
      message.writeUInt8(message.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      assert.ok(!isSignedBy(publicKey, message, signature))
    }),
    { numRuns: 20 },
  )
})

test('points of small order, coordinates that are not canonical and bytes off the curve are refused', () => {
  const smallOrder = [
    '0100000000000000000000000000000000000000000000000000000000000000',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    '0000000000000000000000000000000000000000000000000000000000000000',
    '0000000000000000000000000000000000000000000000000000000000000080',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
  ]
  for (const hex of smallOrder) assert.match(weaknessOf(Buffer.from(hex, 'hex')) ?? '', /small order/, hex)
  const notCanonical = ['edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f', `ee${'ff'.repeat(30)}7f`]
  for (const hex of notCanonical) assert.match(weaknessOf(Buffer.from(hex, 'hex')) ?? '', /canonical/, hex)
  assert.match(weaknessOf(Buffer.from(`02${'00'.repeat(31)}`, 'hex')) ?? '', /no point/)
  for (const length of [0, 31, 33]) assert.match(weaknessOf(Buffer.alloc(length)) ?? '', /32 bytes/)
})

test('a point with a part of small order is refused', () => {
  // The base point plus the point of order 2: (-x, -y).
  const base = Buffer.from(`58${'66'.repeat(31)}`, 'hex')
  assert.equal(weaknessOf(base), undefined)
  const p = 2n ** 255n - 19n
  const y = BigInt(`0x${Buffer.from(base).reverse().toString('hex')}`)
  const mixed = Buffer.from((p - y).toString(16).padStart(64, '0'), 'hex').reverse()
  assert.match(weaknessOf(mixed) ?? '', /prime order/)
})

test('keys made elsewhere are sound', () => {
  const { x } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
  assert.equal(weaknessOf(Buffer.from(x ?? '', 'base64url')), undefined)
})
