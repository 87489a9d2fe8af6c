import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileDraft } from '../../src/experiences/compile/compile-draft.ts'
import { describe, envelopeOf, type Identity, signedMessage } from '../../src/experiences/compile/release.ts'
import { Findings } from '../../src/experiences/draft/findings.ts'
import { validateDraft } from '../../src/experiences/draft/validate.ts'
import { privateKeyOf, publicKeyOf, signWith } from '../../src/experiences/keys/ed25519.ts'
import { checkRelease } from '../../src/experiences/publish/self-check.ts'
import { wireNames } from '../../src/kernel/wire-names.ts'
import { verifyRelease } from '../conformance/release.ts'
import { aContent, aManifest, aScreenDraft, digest, knownWith } from '../harness/a-screen-draft.ts'
import fc from '../harness/random.ts'

const names = wireNames('service')
const seed = Buffer.alloc(32, 3)
const key = { keyId: 'k', publicKey: publicKeyOf(seed) }
const reader = { namespace: 'service', mode: 'clients' as const, keys: new Map([['k', key.publicKey]]) }
const identity: Identity = {
  ...{ appId: 'app_1', environment: 'test', experienceId: 'exp_1', experienceVersionId: 'ver_1', versionNumber: 1 },
  ...{ buildId: 'bld_1', publishedAt: '2026-11-20T09:00:00.000Z', publishedAtSeq: 1 },
}

/** What the two verifiers, written apart, say of a body; `bare` is what a client would be sent. */
function verified(legId: string, body: object) {
  const descriptor = describe({ legId, sectionKey: '', locales: [], body: body as never }, identity) // any body, for changes
  const signature = signWith(privateKeyOf(seed), signedMessage(names, descriptor.bytes))
  const envelope = envelopeOf(names, descriptor, { keyId: 'k', signature })
  const locator = { ...identity, legId }
  const outcome = verifyRelease({ locator, envelope }, reader)
  return {
    ours: checkRelease(names, locator, envelope, key),
    theirs: 'refused' in outcome ? outcome.refused : undefined,
  }
}

/** Every leg of a draft on both platforms; nothing for a draft that is not valid. */
function legsOf(draft: unknown, known = knownWith()) {
  const valid = validateDraft(draft, known).draft
  if (valid === null) return []
  const experience = { publicId: 'exp_1' }
  return (['ios', 'android'] as const).flatMap((platform) => {
    return valid.platforms.includes(platform)
      ? (compileDraft({ draft: valid, experience, known, platform }, new Findings())?.legs ?? [])
      : []
  })
}

const passes = { ours: undefined, theirs: undefined }

test('what screens compile to passes the strict validator, in every locale and on both platforms', () => {
  const legs = legsOf(aScreenDraft())
  assert.equal(legs.length, 6)
  for (const { legId, body } of legs) assert.deepEqual(verified(legId, body), passes)
})

function placesIn(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([name, member]) => placesIn(member, [...path, name]))]
}

const oddities = fc.constantFrom<unknown>(
  ...[
    '',
    ' ',
    'x'.repeat(128),
    'x'.repeat(129),
    'x'.repeat(257),
    'ß'.repeat(100),
    'ß'.repeat(150),
    '$odd',
    '\0',
    'a\ud800',
  ],
  ...['show', 'offer', 'thanks', 'main', 'why', 'image', 'font', 'system', 'enum', 'script', digest(1), digest(11)],
  ...[0, 1, -1, 1.5, 65_536, 1e15, 2 ** 60, -0, true, false, null, [], {}, [null], ['a', 'a'], { type: 'string' }],
)

/** Changes one place of a JSON value in one way. */
function changed(of: unknown, path: string[], odd: unknown, how: string): unknown {
  const copy = structuredClone(of) as Record<string, unknown>
  const last = path.at(-1)
  const parent = path.slice(0, -1).reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], copy) // one of its places
  if (last === undefined) return copy
  if (how === 'drop' && Array.isArray(parent)) parent.splice(Number(last), 1)
  else if (how === 'drop') Reflect.deleteProperty(parent as object, last)
  else if (how === 'twice' && Array.isArray(parent)) parent.push(parent[Number(last)])
  else Object.assign(parent as object, { [last]: odd })
  return copy
}
const hows = fc.constantFrom('set', 'drop', 'twice')

test('whatever is changed in a draft with screens: what validation lets through, every client takes', () => {
  let valid = 0
  const places = placesIn(aScreenDraft())
  fc.assert(
    fc.property(fc.constantFrom(...places), oddities, hows, (path, odd, how) => {
      const legs = legsOf(changed(aScreenDraft(), path, odd, how))
      if (legs.length > 0) valid++
      for (const { legId, body } of legs) assert.deepEqual(verified(legId, body), passes)
    }),
    { numRuns: 1000 },
  )
  assert.ok(valid > 50, `${valid} changed drafts were valid`)
})

test('whatever is changed in a manifest: what validation lets through, every client takes', () => {
  let valid = 0
  const places = placesIn(aManifest())
  fc.assert(
    fc.property(fc.constantFrom(...places), oddities, hows, (path, odd, how) => {
      const manifest = changed(aManifest(), path, odd, how)
      const manifests = new Map([digest(1), digest(2)].map((name) => [name, manifest]))
      const legs = legsOf(aScreenDraft(), knownWith(aContent({ manifests })))
      if (legs.length > 0) valid++
      for (const { legId, body } of legs) assert.deepEqual(verified(legId, body), passes)
    }),
    { numRuns: 1000 },
  )
  assert.ok(valid > 50, `${valid} changed manifests were valid`)
})

test('whatever is changed in a descriptor: what our own check lets through, the strict validator does too', () => {
  const leg = legsOf(aScreenDraft())[1]
  const body = leg?.body ?? {}
  // The other parts come from drafts as they are: the tests above change them there.
  const judged =
    /^(products|placements|viewModelValues|screenBehaviors|render|requirements|state|responses|ruleGroups|leg,(screens|routes|offers))\b/
  const places = placesIn(body).filter((path) => judged.test(path.join()))
  let refused = 0
  fc.assert(
    fc.property(fc.constantFrom(...places), oddities, hows, (path, odd, how) => {
      const { ours, theirs } = verified(leg?.legId ?? '', changed(body, path, odd, how) as object)
      if (theirs !== undefined) refused++
      if (ours === undefined) assert.deepEqual(theirs, undefined)
    }),
    { numRuns: 1500 },
  )
  assert.ok(refused > 500, `${refused} changed descriptors were refused`)
})
