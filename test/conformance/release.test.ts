import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Mode } from './check.ts'
import { envelopeBytesMax, type VerificationStep, verifyRelease } from './release.ts'
import type { Runtime } from './requirements.ts'
import { offer } from './samples/offer.ts'
import { altered, demo, descriptorBytes, publish, type Sample, sha256, signer, trusted } from './samples/publish.ts'
import { welcome } from './samples/welcome.ts'

const reader = { namespace: 'service', mode: 'clients' as Mode, keys: trusted }
const stepOf = (release: Sample, more: object = {}): VerificationStep | 'verified' => {
  const outcome = verifyRelease(release, { ...reader, ...more })
  return 'verified' in outcome ? 'verified' : outcome.refused.step
}
const release = publish(welcome())
const envelope = (path: string, to: Sample) => stepOf(altered(release, `envelope.${path}`, to))

test('a signed release is verified, and its content is what was signed', () => {
  for (const descriptor of [welcome(), offer()]) {
    const outcome = verifyRelease(publish(descriptor), reader)
    assert.ok('verified' in outcome)
    assert.deepEqual(outcome.verified.descriptor, descriptor)
  }
})

describe('a release is refused at the first step that fails', () => {
  const bytes = descriptorBytes(welcome())
  const resigned = (changed: Buffer) => publish(welcome(), demo, changed)

  test('1: its envelope has a key more or less, or is too big', () => {
    assert.equal(envelope('more', 1), 'envelope')
    assert.equal(envelope('encoding', undefined), 'envelope')
    assert.equal(stepOf({ ...release, more: 1 }), 'envelope')
    assert.equal(stepOf(altered(release, 'locator.legId', undefined)), 'envelope')
    assert.equal(envelope('descriptorBytesBase64', 'A'.repeat(envelopeBytesMax)), 'envelope')
    assert.notEqual(envelope('descriptorBytesBase64', 'A'.repeat(envelopeBytesMax - 600)), 'envelope')
  })

  test('2 and 3: another media type, another encoding', () => {
    assert.equal(envelope('mediaType', 'application/vnd.acme.journey+json'), 'mediaType')
    assert.equal(envelope('encoding', 'base64url'), 'encoding')
  })

  test('4: a signature of another shape, version or algorithm', () => {
    assert.equal(envelope('signature.more', 1), 'signature')
    assert.equal(envelope('signature.version', 2), 'signature')
    assert.equal(envelope('signature.algorithm', 'Ed25519'), 'signature')
    assert.equal(envelope('signature.keyId', ''), 'signature')
    assert.equal(envelope('signature.keyId', 'k'.repeat(257)), 'signature')
    assert.equal(envelope('signature.keyId', 'k'.repeat(256)), 'keyId')
  })

  test('5: bytes that are not written in the one way of base64', () => {
    const text = bytes.toString('base64')
    for (const other of [
      '',
      text.replace(/=+$/, ''),
      `${text}\n`,
      ` ${text}`,
      bytes.toString('base64url'),
      `${text}====`,
    ]) {
      if (other !== text)
        assert.equal(envelope('descriptorBytesBase64', other), 'base64', JSON.stringify(other.slice(-9)))
    }
    assert.equal(stepOf(publish(welcome(), demo, Buffer.alloc(4 * 2 ** 20 + 1, 32))), 'base64')
    assert.equal(stepOf(publish(welcome(), demo, Buffer.alloc(4 * 2 ** 20, 32))), 'parse')
  })

  test('6 and 7: another size, another digest', () => {
    assert.equal(envelope('descriptorSizeBytes', bytes.length + 1), 'descriptorSizeBytes')
    assert.equal(envelope('descriptorSizeBytes', String(bytes.length)), 'descriptorSizeBytes')
    assert.equal(envelope('descriptorSha256', sha256('')), 'descriptorSha256')
    assert.equal(envelope('descriptorSha256', sha256(bytes).toUpperCase()), 'descriptorSha256')
  })

  test('8 and 9: no signature of 64 bytes, no key of the reader', () => {
    assert.equal(envelope('signature.signatureBase64', Buffer.alloc(63).toString('base64')), 'signatureBase64')
    assert.equal(envelope('signature.signatureBase64', null), 'signatureBase64')
    assert.equal(stepOf(publish(welcome(), signer('unknown'))), 'keyId')
    assert.equal(stepOf(release, { keys: new Map([['demo-2026', new Uint8Array(31)]]) }), 'keyId')
  })

  test('10: a signature by another key under that id, or under another domain', () => {
    assert.equal(stepOf(publish(welcome(), { ...signer('other'), keyId: demo.keyId })), 'ed25519')
    assert.equal(envelope('signature.signatureBase64', demo.sign(bytes).toString('base64')), 'ed25519')
    const domain = { ...welcome(), schemaVersion: 'acme.journey-release.v3' }
    assert.equal(stepOf(publish(domain)), 'ed25519')
  })

  test('11: bytes that are no strict JSON', () => {
    assert.equal(stepOf(resigned(Buffer.concat([bytes, Buffer.from('1')]))), 'parse')
    assert.equal(
      stepOf(resigned(Buffer.from(bytes.toString().replace('"state":{}', '"state":{},"state":{}')))),
      'parse',
    )
    assert.equal(stepOf(resigned(Buffer.concat([Buffer.from('efbbbf', 'hex'), bytes]))), 'parse')
  })

  test('12: content of another shape, or not written canonically', () => {
    assert.equal(stepOf(publish(altered(welcome(), 'provenance.more', 1))), 'schema')
    assert.equal(stepOf(resigned(Buffer.from(JSON.stringify(welcome())))), 'schema')
    assert.equal(stepOf(resigned(Buffer.from(`${bytes.toString()} `))), 'schema')
    assert.equal(stepOf(resigned(Buffer.from(bytes.toString().replace(':42,', ':42.0,')))), 'schema')
  })

  test('13: a locator that is not the signed identity, key by key', () => {
    const others: Sample = {
      appId: 'other',
      environment: 'live',
      experienceId: 'other',
      experienceVersionId: 'other',
      versionNumber: 4,
      buildId: 'other',
      publishedAt: '2026-11-20T09:00:00Z',
      publishedAtSeq: 43,
      legId: 'b'.repeat(64),
    }
    for (const [key, other] of Object.entries(others)) {
      assert.equal(stepOf(altered(release, `locator.${key}`, other)), 'identity', key)
    }
  })

  test('14: a device that it asks too much of', () => {
    const needed = offer().requirements
    const runtime: Runtime = {
      version: '2.1.0',
      revisions: ['r0', 'r1'],
      luau: { l1: [4, 5, 6] },
      sceneFormat: { major: 1, minor: 2 },
      timezoneData: needed.timezoneData,
      capabilities: [...needed.requiredCapabilities, 'more'],
    }
    const on = (more: Partial<Runtime>) => stepOf(publish(offer()), { runtime: { ...runtime, ...more } })
    for (const version of ['2.1.0', '2.1.0-beta.2', '2.1.0-beta.10', '2.1.0-rc', '10.0.0', '2.2.0-alpha']) {
      assert.equal(on({ version }), 'verified', version)
    }
    for (const version of ['2.1.0-beta', '2.1.0-beta.1', '2.1.0-alpha.9', '2.1.0-9', '2.0.9', '1.99.0']) {
      assert.equal(on({ version }), 'requirements', version)
    }
    assert.equal(on({ revisions: ['r0'] }), 'requirements')
    assert.equal(on({ luau: { l1: [5] } }), 'requirements')
    assert.equal(on({ luau: { l0: [5, 6] } }), 'requirements')
    assert.equal(on({ sceneFormat: { major: 2, minor: 2 } }), 'requirements')
    assert.equal(on({ sceneFormat: { major: 1, minor: 1 } }), 'requirements')
    assert.equal(on({ sceneFormat: { major: 1, minor: 3 } }), 'verified')
    assert.equal(on({ timezoneData: { ...needed.timezoneData, revision: '2026b' } }), 'requirements')
    assert.equal(on({ capabilities: ['system-fonts'] }), 'requirements')
    assert.equal(stepOf(release, { runtime: { ...runtime, version: '0.0.1' } }), 'verified')
  })
})

test('any single bit that changes in a release has it refused', () => {
  const flips = (path: string, bytes: Buffer, write: (changed: Buffer) => Sample) => {
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const changed = Buffer.from(bytes)
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      assert.notEqual(stepOf(altered(release, path, write(changed))), 'verified', `bit ${bit} of ${path}`)
    }
  }
  const base64 = (bytes: Buffer) => bytes.toString('base64')
  const text = (bytes: Buffer) => bytes.toString('latin1')
  const { descriptorBytesBase64, descriptorSha256, signature } = release.envelope
  flips('envelope.descriptorBytesBase64', Buffer.from(descriptorBytesBase64, 'base64'), base64)
  flips('envelope.descriptorBytesBase64', Buffer.from(descriptorBytesBase64), text)
  flips('envelope.descriptorSha256', Buffer.from(descriptorSha256), text)
  flips('envelope.signature.signatureBase64', Buffer.from(signature.signatureBase64, 'base64'), base64)
  flips('envelope.signature.signatureBase64', Buffer.from(signature.signatureBase64), text)
  for (let bit = 0; bit < 31; bit += 1) {
    const size = release.envelope.descriptorSizeBytes ^ (1 << bit)
    assert.notEqual(stepOf(altered(release, 'envelope.descriptorSizeBytes', size)), 'verified')
  }
})

test('any single bit that changes under a signature has it refused, size and digest being put right', () => {
  const bytes = descriptorBytes(welcome())
  const { signature } = release.envelope
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const changed = Buffer.from(bytes)
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    const forged = altered(release, 'envelope', (old: Sample) => {
      return { ...old, descriptorBytesBase64: changed.toString('base64'), descriptorSha256: sha256(changed), signature }
    })
    assert.equal(stepOf(forged), 'ed25519', `bit ${bit}`)
  }
})
