import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { compileDraft } from '../../src/experiences/compile/compile-draft.ts'
import { describe as describeLeg, type Identity, signedMessage } from '../../src/experiences/compile/release.ts'
import { Findings } from '../../src/experiences/draft/findings.ts'
import { validateDraft } from '../../src/experiences/draft/validate.ts'
import { privateKeyOf, publicKeyOf, signWith } from '../../src/experiences/keys/ed25519.ts'
import { createReleaseCheck } from '../../src/experiences/publish/self-check.ts'
import { type Trial, trialOf } from '../../src/experiences/publish/trial.ts'
import { must } from '../../src/kernel/assert.ts'
import { checkProfile } from '../../src/profiles/check-profile.ts'
import { createTryProfiles, profileOf } from '../../src/profiles/trial.ts'
import type { Body } from '../app/answers.ts'
import { readProfile } from '../conformance/profile.ts'
import { aDraft, device, field } from '../harness/a-draft.ts'
import { aScreenDraft, knownWith } from '../harness/a-screen-draft.ts'

const seed = Buffer.alloc(32, 3)
const key = { keyId: 'k', publicKey: publicKeyOf(seed) }
const variants = [
  { id: 'a', isHoldout: false },
  { id: 'h', isHoldout: true },
]
const known = {
  ...knownWith(),
  segments: new Set(['seg_1', 'seg_2']),
  experiments: new Map([
    ['xp_1', { kind: 'ab' as const, isArchived: false, variants }],
    ['xp_h', { kind: 'holdout' as const, isArchived: false, variants }],
  ]),
}
const { names } = known.content
const wire = { names, renderBaseUrl: 'https://cdn.example/r/', assetBaseUrl: 'https://cdn.example/a/' }
const tryProfiles = createTryProfiles(wire)

/** A publication of the draft, before anybody sees it. */
function trialFor(value: object): Trial {
  const { draft, findings } = validateDraft(value, known)
  assert.deepEqual(findings.issues, [])
  const compilation = {
    draft: must(draft, 'it is valid'),
    experience: { publicId: 'exp_1' },
    known,
    platform: 'ios' as const,
  }
  const { legs, plan } = must(compileDraft(compilation, new Findings()), 'it is small')
  const identity: Identity = {
    ...{ appId: 'app_1', environment: 'test', experienceId: 'exp_1', experienceVersionId: 'ver_1', versionNumber: 1 },
    ...{ buildId: 'bld_1', publishedAt: '2026-11-20T09:00:00.000Z', publishedAtSeq: 3 },
  }
  const signed = legs.map((leg) => {
    const descriptor = describeLeg(leg, identity)
    return { ...descriptor, signature: signWith(privateKeyOf(seed), signedMessage(names, descriptor.bytes)) }
  })
  const row = {
    ...{ experience_row_id: 1, experience_id: 'exp_1', app_id: 'app_1', seq: 3n, version_id: 'ver_1' },
    ...{ version_number: 1, build_id: 'bld_1', draft: JSON.stringify(value), plan: JSON.stringify(plan) },
    status: 'live' as const,
  }
  const check = createReleaseCheck(names, key)
  return trialOf(names, { app: { id: 'app_1', platform: 'ios' }, environment: 'test', row, signed, key, check })
}

/** Facts of every kind, required inputs, a goal, a holdout, two legs in two locales. */
function aWideDraft() {
  const draft = aDraft()
  const member = { type: 'Segment', op: 'is_member', id: 'seg_2' }
  const plan = { type: 'User', op: 'eq', key: 'plan', value: { type: 'String', value: 'pro' } }
  const condition = { ir_version: 1, expr: { type: 'And', args: [member, plan] } }
  draft.policy = {
    entry: {
      trigger: { type: 'event', eventName: 'signup_done', condition },
      frequency: { type: 'one_time' },
      eligibility: { ir_version: 1, expr: { type: 'Bool', value: false } },
    },
    goal: {
      criterion: { type: 'event', eventName: 'paid' },
      attribution: { basis: 'entry', window: { amount: 3, unit: 'day' } },
    },
    exitWhenAny: [],
    holdout: 'xp_h',
  }
  draft.fields.event = {
    source: { type: 'string', required: true, enum: ['ads', 'friends'] },
    price: { type: 'number', required: false, min: 3, max: 10 },
  }
  const fork = { type: 'experiment', experimentId: 'xp_1', variants, fallbackVariantId: 'a' }
  const payload = { was: field('price'), from: field('source') }
  draft.graph.steps = [
    ...draft.graph.steps.filter(({ id }) => id !== 'again'),
    device('again', fork, { a: 'say', h: 'bye' }),
    device('say', { type: 'send_event', eventName: 'said', payload }, { next: 'bye' }),
  ]
  return draft
}

const onSegment = (type: string) => {
  const draft = aWideDraft()
  Object.assign(draft.policy.entry as object, { trigger: { type, segmentId: 'seg_1' } })
  draft.fields.event = {}
  const emptied: Record<string, object> = { note: { properties: {} }, say: { payload: {} } }
  draft.graph.steps = draft.graph.steps.map((one) => ({ ...one, action: { ...one.action, ...emptied[one.id] } }))
  return draft
}

describe('profiles of a publication', () => {
  test('that was made well pass, here and by the strict validator, whatever is known of the customer', () => {
    const begun = aDraft()
    Object.assign(begun.policy.entry as object, { trigger: { type: 'api' } })
    for (const draft of [aDraft(), aWideDraft(), begun, aScreenDraft()]) {
      const trial = trialFor(draft)
      assert.equal(tryProfiles(trial), undefined)
      for (const locale of trial.locales) {
        for (const isKnown of [false, true]) {
          const bytes = profileOf(wire, trial, { locale, isKnown })
          assert.ok(typeof bytes !== 'string')
          assert.deepEqual(problemsIn(bytes), [])
        }
      }
    }
  })

  test('hold the first leg as new and every leg as continue, in each locale that differs', () => {
    const trial = trialFor(aWideDraft())
    assert.deepEqual([trial.locales, trialFor(aScreenDraft()).locales], [['en'], ['en', 'de']])
    const { armedLegs, facts } = bodyOf(trial)
    assert.deepEqual(armedLegs.map(({ binding }: Body) => binding.type).toSorted(), ['continue', 'continue', 'new'])
    assert.deepEqual(Object.keys(facts.assignments), ['xp_1', 'xp_h'])
    assert.deepEqual(facts.assignments.xp_1, { variantId: 'a', isHoldout: false })
    assert.ok(armedLegs.some(({ context, conversion }: Body) => context.event.price === 3 && conversion?.conversion))
  })

  test('find whoever enters or leaves the Segment of the trigger', () => {
    for (const type of ['segment_enter', 'segment_leave']) {
      const trial = trialFor(onSegment(type))
      assert.equal(tryProfiles(trial), undefined)
      const news = bodyOf(trial).armedLegs.filter(({ binding }: Body) => binding.type === 'new')
      assert.equal(news.length, 1, type)
    }
  })

  test('tell of a leg that could never be armed, and of addresses that no client takes', () => {
    const trial = trialFor(aWideDraft())
    const stranger = { keyId: 'other', publicKey: publicKeyOf(Buffer.alloc(32, 4)) }
    assert.match(tryProfiles({ ...trial, check: createReleaseCheck(names, stranger) }) ?? '', /the key is unknown/)
    const unverified = { ...trial, delivery: { ...trial.delivery, release: () => null } }
    assert.match(tryProfiles(unverified) ?? '', /a leg is left out: release_unverified/)
    const unread = { ...trial, delivery: { ...trial.delivery, release: () => undefined } }
    assert.match(tryProfiles(unread) ?? '', /asks for more than was published/)
    const plain = createTryProfiles({ ...wire, renderBaseUrl: 'http://cdn.example/r/' })
    assert.match(plain(trial) ?? '', /its delivery/)
  })
})

describe('a profile that is changed', () => {
  const trial = trialFor(aWideDraft())
  const arm = (body: Body, type = 'continue') => body.armedLegs.find(({ binding }: Body) => binding.type === type)
  const typed = (body: Body) => body.armedLegs.find(({ context }: Body) => context.event.price !== undefined)
  const changes: [rule: RegExp, change: (body: Body) => unknown][] = [
    [/its keys/, (body) => Object.assign(body, { more: 1 })],
    [/its keys/, (body) => Reflect.deleteProperty(body, 'features')],
    [/schema/, (body) => Object.assign(body, { schemaVersion: 'other.journey-plane-profile.v2' })],
    [/schema/, (body) => Object.assign(body, { status: 'fine' })],
    [/delivery/, (body) => Object.assign(body.delivery, { assetBaseUrl: 'https://cdn.example/a' })],
    [/delivery/, (body) => Object.assign(body.delivery, { assetBaseUrl: 'https://cdn.example/a/?v=1' })],
    [/features/, (body) => Object.assign(body, { features: null })],
    [/release is there twice/, (body) => body.releases.push(body.releases[0])],
    [/belongs to no arm/, (body) => body.armedLegs.splice(0, 3)],
    [/has no release/, (body) => body.releases.splice(0, 1)],
    [/order of its releases/, (body) => body.releases.reverse()],
    [/of another app/, (body) => Object.assign(body.releases[0].locator, { appId: 'app_2' })],
    [/of another app/, (body) => Object.assign(body.releases[0].locator, { environment: 'live' })],
    [/identity is not that/, (body) => Object.assign(body.releases[0].locator, { publishedAtSeq: 4 })],
    [
      /does not verify/,
      (body) => Object.assign(body.releases[0].envelope.signature, { signatureBase64: `${'A'.repeat(86)}==` }),
    ],
    [/arm is there twice/, (body) => body.armedLegs.push(body.armedLegs[0])],
    [/order of its arms/, (body) => body.armedLegs.reverse()],
    [/its keys/, (body) => Object.assign(arm(body), { more: 1 })],
    [/its reference/, (body) => Object.assign(arm(body).reference, { versionId: 'ver_2' })],
    [/its reference/, (body) => Object.assign(arm(body).reference, { legId: 'f'.repeat(64) })],
    [/its binding/, (body) => Object.assign(arm(body).binding, { journeyId: '6f1d3a52-7c0e-5b84-9a41-2f6c8d0b3e97' })],
    [/its binding/, (body) => Object.assign(arm(body).binding, { generation: 1.5 })],
    [/its binding/, (body) => Object.assign(arm(body, 'new').binding, { generation: 1 })],
    [/not the signed one/, (body) => Object.assign(arm(body, 'new').entryCondition, { eventName: 'other' })],
    [/its context/, (body) => Reflect.deleteProperty(arm(body).context, 'responses')],
    [/a new arm has a context/, (body) => Object.assign(arm(body, 'new').context.event, { source: 'ads' })],
    [/does not fit/, (body) => Object.assign(typed(body).context.event, { price: 2 })],
    [/does not fit/, (body) => Object.assign(typed(body).context.event, { source: 'press' })],
    [/does not fit/, (body) => Object.assign(typed(body).context.event, { undeclared: 1 })],
    [/does not fit/, (body) => Reflect.deleteProperty(typed(body).context.event, 'source')],
    [/its conversion/, (body) => Reflect.deleteProperty(arm(body), 'conversion')],
    [/its conversion/, (body) => Object.assign(arm(body, 'new'), { conversion: arm(body).conversion })],
    [/its conversion/, (body) => Object.assign(arm(body).conversion, { revision: '1' })],
    [/its conversion/, (body) => Object.assign(arm(body).conversion.basis, { occurredAt: 0 })],
    [/its conversion/, (body) => Reflect.deleteProperty(arm(body).conversion, 'basis')],
    [/its conversion/, (body) => Object.assign(arm(body).conversion.basis, { eventId: 'another' })],
    [/its conversion/, (body) => Object.assign(arm(body).conversion.conversion, { occurredAt: 4e12 })],
    [/its facts/, (body) => Object.assign(body.facts, { more: {} })],
    [/properties are not those/, (body) => Object.assign(body.facts.properties, { more: { present: false } })],
    [/memberships are not those/, (body) => Object.assign(body.facts, { memberships: {} })],
    [/assignments are not those/, (body) => Reflect.deleteProperty(body.facts.assignments, 'xp_1')],
    [/shape of its properties/, (body) => Object.assign(body.facts.properties, { plan: { present: true } })],
    [/shape of its memberships/, (body) => Object.assign(body.facts.memberships, { seg_2: null })],
    [/shape of its assignments/, (body) => Object.assign(body.facts.assignments, { xp_1: { variantId: 'a' } })],
  ]

  test('in any way that a client refuses is refused, here and by the strict validator', () => {
    const sound = bodyOf(trial)
    for (const [rule, change] of changes) {
      const body = structuredClone(sound)
      change(body)
      const bytes = Buffer.from(JSON.stringify(body))
      const reception = { wire, app: { appId: 'app_1' }, environment: 'test', check: trial.check } as const
      assert.match(checkProfile(bytes, reception) ?? 'sound', rule)
      assert.notDeepEqual(problemsIn(bytes), [], String(rule))
    }
  })
})

/** Of somebody of whom everything is known. */
function bodyOf(trial: Trial): Body {
  const bytes = profileOf(wire, trial, { locale: 'en', isKnown: true })
  assert.ok(typeof bytes !== 'string', String(bytes))
  return JSON.parse(bytes.toString())
}

function problemsIn(bytes: Buffer): unknown[] {
  const judged = readProfile(bytes, {
    ...{ namespace: 'service', mode: 'clients', keys: new Map([['k', key.publicKey]]), highest: new Map() },
    authority: { appId: 'app_1', environment: 'test' },
  })
  return 'problems' in judged ? judged.problems : []
}
