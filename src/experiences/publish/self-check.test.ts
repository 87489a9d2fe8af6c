import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aDraft } from '../../../test/harness/a-draft.ts'
import fc from '../../../test/harness/random.ts'
import { must } from '../../kernel/assert.ts'
import { wireNames } from '../../kernel/wire-names.ts'
import { compile } from '../compile/leg.ts'
import { describe, envelopeOf, type Identity, signedMessage } from '../compile/release.ts'
import { validateDraft } from '../draft/validate.ts'
import { privateKeyOf, publicKeyOf, signWith } from '../keys/ed25519.ts'
import { checkRelease } from './self-check.ts'

const names = wireNames('service')
const seed = Buffer.alloc(32, 3)
const key = { keyId: 'k', publicKey: publicKeyOf(seed) }
const identity: Identity = {
  ...{ appId: 'app_1', environment: 'test', experienceId: 'exp_1', experienceVersionId: 'ver_1', versionNumber: 1 },
  ...{ buildId: 'bld_1', publishedAt: '2026-11-20T09:00:00.000Z', publishedAtSeq: 1 },
}
const known = { segments: new Set<string>(), features: new Set<string>(), experiments: new Map() }
const draft = must(validateDraft(aDraft(), known).draft, 'it is sound')
const compiler = { commit: '0', version: '1' }
const { legs } = compile({ draft, experienceId: 'exp_1', names, deliverAlways: false, compiler })
const leg = must(legs[0], 'there is one')
const locator = { ...identity, legId: leg.legId }

interface Made {
  body: (typeof leg)['body'] & Record<string, unknown>
  identity: Identity
}

/** A release that is signed and hashed as it should be, whatever its descriptor says. */
function made(change: (made: Made) => void = () => {}) {
  const what = structuredClone({ body: leg.body, identity }) as Made // the same, for changes
  change(what)
  const descriptor = describe({ ...leg, body: what.body }, what.identity)
  const signature = signWith(privateKeyOf(seed), signedMessage(names, descriptor.bytes))
  return envelopeOf(names, descriptor, { keyId: 'k', signature })
}

const check = (envelope: ReturnType<typeof made>) => checkRelease(names, locator, envelope, key)

test('a release that was made well passes', () => {
  assert.equal(check(made()), undefined)
})

const envelopeChanges: [why: RegExp, change: (envelope: ReturnType<typeof made>) => object][] = [
  [/envelope/, () => ({ mediaType: 'application/json' })],
  [/base64/, ({ descriptorBytesBase64: text }) => ({ descriptorBytesBase64: `${text}\n` })],
  [/0 bytes/, () => ({ descriptorBytesBase64: '' })],
  [/size/, ({ descriptorSizeBytes: size }) => ({ descriptorSizeBytes: size + 1 })],
  [/hash/, ({ descriptorSha256: digest }) => ({ descriptorSha256: digest.toUpperCase() })],
  [/signature/, ({ signature }) => ({ signature: { ...signature, signatureBase64: 'AAAA' } })],
  [/key/, ({ signature }) => ({ signature: { ...signature, keyId: 'other' } })],
  [
    /verify/,
    ({ signature }) => ({ signature: { ...signature, signatureBase64: Buffer.alloc(64).toString('base64') } }),
  ],
]

for (const [why, change] of envelopeChanges) {
  test(`an envelope is refused for its ${why.source}`, () => {
    const envelope = made()
    assert.match(check({ ...envelope, ...change(envelope) } as typeof envelope) ?? '', why)
  })
}

type Leg = {
  steps: { id: string; outlets: Record<string, string> }[]
  entryStepId: string
  facts: { propertyKeys: string[] }
  routes: object[]
}
const inLeg = (change: (leg: Leg) => void) => (of: Made) => change(of.body.leg as unknown as Leg)
const set = (target: object, values: object) => void Object.assign(target, values)

const bodyChanges: [why: RegExp, change: (made: Made) => void][] = [
  [/not part of/, ({ body }) => set(body, { extra: 1 })],
  [/missing/, ({ body }) => void Reflect.deleteProperty(body, 'provenance')],
  [/schemaVersion/, ({ body }) => set(body, { schemaVersion: 'other.journey-release.v3' })],
  [/identity/, (of) => set(of.identity, { publishedAtSeq: 2 })],
  [/identity/, (of) => set(of.identity, { environment: 'live' })],
  [/identity/, (of) => set(of.identity, { appId: 'app_2' })],
  [/leg is not/, ({ body }) => set(body.leg, { id: '0'.repeat(64) })],
  [/twice/, inLeg(({ steps }) => void steps.push(must(steps[0], 'there is one')))],
  [/does not exist/, inLeg((of) => set(of, { entryStepId: 'gone' }))],
  [/does not exist/, inLeg(({ steps }) => set(steps[0]?.outlets ?? {}, { next: 'gone' }))],
  [
    /does not exist/,
    inLeg(({ routes }) => void routes.push({ host: { kind: 'journey' }, eventName: 'e', entryStepId: 'gone' })),
  ],
  [/propertyKeys/, inLeg(({ facts }) => set(facts, { propertyKeys: ['plan'] }))],
  [/screens/, ({ body }) => set(body.leg, { screens: [{ id: 's' }] })],
]

for (const [n, [why, change]] of bodyChanges.entries()) {
  test(`a descriptor is refused for its ${why.source} (${n})`, () => {
    assert.match(check(made(change)) ?? '', why)
  })
}

test('no bit of the descriptor can be another', () => {
  const envelope = made()
  const bytes = Buffer.from(envelope.descriptorBytesBase64, 'base64')
  fc.assert(
    fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
      const changed = Buffer.from(bytes)
      changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      assert.notEqual(check({ ...envelope, descriptorBytesBase64: changed.toString('base64') }), undefined)
    }),
    { numRuns: 200 },
  )
})
