import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Mode } from './check.ts'
import { raised } from './newest.ts'
import { type ProfileReader, profileBytesMax, readProfile } from './profile.ts'
import { offer } from './samples/offer.ts'
import { altered, bytesOf, emptyProfile, profileOf, type Sample, trusted } from './samples/publish.ts'
import { farewell, welcome } from './samples/welcome.ts'

const reader: ProfileReader = {
  namespace: 'service',
  mode: 'clients',
  keys: trusted,
  authority: { appId: 'app_demo_ios', environment: 'test' },
  highest: new Map(),
}
const rulesOf = (profile: Sample, more: Partial<ProfileReader> = {}): string[] => {
  const outcome = readProfile(bytesOf(profile), { ...reader, ...more })
  return 'profile' in outcome ? [] : outcome.problems.map(({ path, rule }) => `${path} ${rule}`)
}
const refuses = (profile: Sample, place: string, more?: Partial<ProfileReader>) => {
  const found = rulesOf(profile, more)
  assert.ok(
    found.some((each) => each.startsWith(`${place} `)),
    `${place}: ${found.join('; ')}`,
  )
}
const journeyId = '01936f3a-0000-7000-8000-000000000001'
const continuing = (more: Sample = {}) => ({ binding: { type: 'continue', journeyId, generation: 1 }, ...more })
const one = () => profileOf([welcome()])

describe('a profile is taken', () => {
  test('without a leg, with one, and with a leg of every part', () => {
    for (const profile of [emptyProfile(), one(), profileOf([offer()])]) assert.deepEqual(rulesOf(profile), [])
  })

  test('with Features of each kind', () => {
    const features = [
      { id: 'a', type: 'boolean', balance: null, unlimited: false, nextResetAt: null, interval: null },
      { id: 'b', type: 'creditSystem', balance: null, unlimited: true, nextResetAt: null, interval: null },
      { id: 'c', type: 'metered', balance: 0, unlimited: false, nextResetAt: null, interval: null },
    ]
    assert.deepEqual(rulesOf({ ...emptyProfile(), features }), [])
  })

  test('with one release that several arms share', () => {
    const profile = profileOf([farewell()])
    const [first] = profile.armedLegs
    profile.armedLegs = [
      first,
      { ...first, ...continuing() },
      { ...first, binding: { ...continuing().binding, generation: 2 } },
    ]
    assert.deepEqual(rulesOf(profile), [])
  })

  test('with each kind of fact', () => {
    for (const plan of [{ present: false }, { present: true, value: null }, { present: true, value: [1] }]) {
      assert.deepEqual(rulesOf(altered(one(), 'facts.properties.plan', plan)), [])
    }
    for (const assigned of [null, { variantId: 'h', isHoldout: true }]) {
      assert.deepEqual(rulesOf(altered(one(), 'facts.assignments.xp_hello', assigned)), [])
    }
  })

  test('up to its limits', () => {
    const arms = (count: number) => {
      const profile = profileOf([farewell()])
      const binding = (generation: number) => ({ type: 'continue', journeyId, generation })
      const [arm] = profile.armedLegs
      profile.armedLegs = Array.from({ length: count }, (_, index) => ({ ...arm, binding: binding(index) }))
      return profile
    }
    assert.deepEqual(rulesOf(arms(1024)), [])
    refuses(arms(1025), '$.armedLegs')
    const padded = (bytes: number) => Buffer.from(JSON.stringify(emptyProfile()).padEnd(bytes))
    assert.ok('profile' in readProfile(padded(profileBytesMax), reader))
    assert.ok('problems' in readProfile(padded(profileBytesMax + 1), reader))
  })
})

describe('a profile is refused for', () => {
  const breaches: [title: string, path: string, to: Sample, place: string][] = [
    ['a schema of another namespace', 'schemaVersion', 'acme.journey-plane-profile.v2', '$.schemaVersion'],
    ['a status other than ok', 'status', 'okay', '$.status'],
    ['a key more', 'more', 1, '$.more'],
    ['a key less', 'facts', undefined, '$.facts'],
    ['an address without https', 'delivery.renderBaseUrl', 'http://cdn.example.com/r/', '$.delivery.renderBaseUrl'],
    [
      'an address without a slash at its end',
      'delivery.assetBaseUrl',
      'https://cdn.example.com/a',
      '$.delivery.assetBaseUrl',
    ],
    ['an address with a query', 'delivery.assetBaseUrl', 'https://cdn.example.com/?/', '$.delivery.assetBaseUrl'],
    ['an address with a fragment', 'delivery.assetBaseUrl', 'https://cdn.example.com/#/', '$.delivery.assetBaseUrl'],
    ['an address with a user', 'delivery.assetBaseUrl', 'https://me@cdn.example.com/', '$.delivery.assetBaseUrl'],
    ['a third kind of binding', 'armedLegs.0.binding', { type: 'resume' }, '$.armedLegs[0].binding.type'],
    ['a new binding with more', 'armedLegs.0.binding.generation', 0, '$.armedLegs[0].binding.generation'],
    [
      'a journey that is no UUID of version 7',
      'armedLegs.0.binding',
      continuing().binding && { ...continuing().binding, journeyId: '01936f3a-0000-4000-8000-000000000001' },
      '$.armedLegs[0].binding.journeyId',
    ],
    [
      'a journey of another variant',
      'armedLegs.0.binding',
      { ...continuing().binding, journeyId: '01936f3a-0000-7000-7000-000000000001' },
      '$.armedLegs[0].binding.journeyId',
    ],
    [
      'a generation below zero',
      'armedLegs.0.binding',
      { ...continuing().binding, generation: -1 },
      '$.armedLegs[0].binding.generation',
    ],
    ['L1: another leg than the release', 'armedLegs.0.reference.legId', 'b'.repeat(64), '$.armedLegs[0]'],
    ['L1: another version than the release', 'armedLegs.0.reference.versionId', 'other', '$.armedLegs[0]'],
    ['L1: another Experience than the release', 'armedLegs.0.reference.experienceId', 'other', '$.armedLegs[0]'],
    ['L1: a release that is not there', 'armedLegs.0.reference.descriptorSha256', 'b'.repeat(64), '$.armedLegs[0]'],
    ['L2: a release without arm', 'armedLegs', [], '$.releases[0]'],
    ['L3: a release twice', 'releases', ([each]: Sample[]) => [each, each], '$.releases'],
    ['L3: an arm twice', 'armedLegs', ([each]: Sample[]) => [each, each], '$.armedLegs'],
    [
      'L4: a release that is not signed',
      'releases.0.envelope.signature.signatureBase64',
      '',
      '$.releases[0].envelope.signature.signatureBase64',
    ],
    [
      'L6: another entry than the signed one',
      'armedLegs.0.entryCondition',
      { type: 'app_foregrounded' },
      '$.armedLegs[0].entryCondition',
    ],
    ['L7: a property more', 'facts.properties.more', { present: false }, '$.facts.properties'],
    ['L7: a property less', 'facts.properties', {}, '$.facts.properties'],
    ['L7: a membership more', 'facts.memberships.more', true, '$.facts.memberships'],
    ['L7: an assignment less', 'facts.assignments', {}, '$.facts.assignments'],
    [
      'a fact that is absent and has a value',
      'facts.properties.plan',
      { present: false, value: 1 },
      '$.facts.properties.plan.value',
    ],
    [
      'a fact that is present without value',
      'facts.properties.plan',
      { present: true },
      '$.facts.properties.plan.value',
    ],
    [
      'a variant that no step lists',
      'facts.assignments.xp_hello',
      { variantId: 'z', isHoldout: false },
      '$.facts.assignments.xp_hello',
    ],
    [
      'an assignment without holdout',
      'facts.assignments.xp_hello',
      { variantId: 'a' },
      '$.facts.assignments.xp_hello.isHoldout',
    ],
    ['context of a journey that is new', 'armedLegs.0.context.event', { source: 'x' }, '$.armedLegs[0].context.event'],
    [
      'conversion of a journey that is new',
      'armedLegs.0.conversion',
      { startedAt: 0, revision: 1 },
      '$.armedLegs[0].conversion',
    ],
  ]
  for (const [title, path, to, place] of breaches) {
    test(title, () => refuses(altered(one(), path, to), place))
  }

  test('L5: releases of another app or environment than the headers name', () => {
    refuses(one(), '$.releases[0].locator', { authority: { appId: 'other', environment: 'test' } })
    refuses(one(), '$.releases[0].locator', { authority: { appId: 'app_demo_ios', environment: 'live' } })
  })

  test('Features that are not sorted, twice, or have a balance that they should not have', () => {
    const entry = { id: 'a', type: 'metered', balance: 1, unlimited: false, nextResetAt: null, interval: null }
    const wrong = [
      { ...entry, type: 'boolean' },
      { ...entry, unlimited: true },
      { ...entry, balance: null },
      { ...entry, balance: 1.5 },
      { ...entry, nextResetAt: 5 },
      { ...entry, interval: 'month' },
      { ...entry, id: '' },
    ]
    for (const each of wrong) assert.notDeepEqual(rulesOf({ ...emptyProfile(), features: [each] }), [])
    for (const ids of [
      ['b', 'a'],
      ['a', 'a'],
    ]) {
      refuses({ ...emptyProfile(), features: ids.map((id) => ({ ...entry, id })) }, '$.features')
    }
    for (const key of Object.keys(entry)) {
      assert.notDeepEqual(rulesOf({ ...emptyProfile(), features: [altered(entry, key, undefined)] }), [], key)
    }
    refuses({ ...emptyProfile(), features: [{ ...entry, entities: {} }] }, '$.features[0].entities')
  })

  test('an entry `always`, unless it is for the clients of the specification', () => {
    const leg = farewell()
    leg.leg.entryCondition = { type: 'always' }
    const read = (mode: Mode) => rulesOf(profileOf([leg]), { mode })
    assert.deepEqual(read('spec'), [])
    assert.notDeepEqual(read('clients'), [])
  })

  test('releases out of order', () => {
    const profile = profileOf([offer(), welcome()])
    assert.deepEqual(rulesOf(profile), [])
    refuses({ ...profile, releases: profile.releases.toReversed() }, '$.releases')
  })

  test('arms of one version out of order', () => {
    const profile = profileOf([farewell()])
    const [first] = profile.armedLegs
    refuses({ ...profile, armedLegs: [{ ...first, ...continuing() }, first] }, '$.armedLegs[1]')
  })
})

describe('publications of an Experience', () => {
  const other = (changes: Sample, descriptor = farewell()) => {
    return { ...descriptor, identity: { ...descriptor.identity, ...changes } }
  }

  test('L8: those armed as new are one', () => {
    assert.deepEqual(rulesOf(profileOf([welcome(), farewell()])), [])
    refuses(profileOf([welcome(), other({ buildId: 'bld_8' })]), '$.releases[1].locator')
    refuses(profileOf([welcome(), other({ publishedAtSeq: 43 })]), '$.releases[1].locator')
  })

  test('L8 and L9: a journey that goes on keeps an older one', () => {
    const old = other({ publishedAtSeq: 41, experienceVersionId: 'ver_welcome_2', versionNumber: 2, buildId: 'bld_6' })
    const profile = profileOf([old, welcome()], { arms: [continuing()] })
    assert.deepEqual(rulesOf(profile), [])
    const read = readProfile(bytesOf(profile), reader)
    assert.ok('profile' in read)
    assert.deepEqual(
      [...raised(new Map(), read.profile).values()].map((each) => each.publishedAtSeq),
      [42],
    )
  })

  test('L9: what a device has seen is not followed by anything older, nor by another of that number', () => {
    const read = readProfile(bytesOf(one()), reader)
    assert.ok('profile' in read)
    const highest = raised(new Map(), read.profile)
    assert.deepEqual(rulesOf(one(), { highest }), [])
    assert.deepEqual(rulesOf(profileOf([other({ publishedAtSeq: 43, buildId: 'bld_8' }, welcome())]), { highest }), [])
    refuses(profileOf([other({ publishedAtSeq: 41 }, welcome())]), '$.releases[0].locator', { highest })
    refuses(profileOf([other({ buildId: 'bld_8' }, welcome())]), '$.releases[0].locator', { highest })
  })
})
