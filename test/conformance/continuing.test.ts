import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type ProfileReader, readProfile } from './profile.ts'
import { offer } from './samples/offer.ts'
import { bytesOf, profileOf, type Sample, trusted } from './samples/publish.ts'
import { farewell, withGoal } from './samples/welcome.ts'

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

describe('the context of a journey that goes on', () => {
  const leg = farewell()
  leg.leg.inputs = structuredClone(offer().leg.inputs)
  leg.leg.inputs.responseFields[2].required = true
  const given = (event: Sample, responses: Sample) =>
    rulesOf(profileOf([leg], { arms: [continuing({ context: { event, responses } })] }))

  test('has declared keys of the declared types, and all that are required', () => {
    assert.deepEqual(given({}, { t: '' }), [])
    const event = { n: 1.5, b: false, s: 'x', z: null, j: { any: [null] } }
    assert.deepEqual(given(event, { n: -1, b: true, t: 'a', d: 'b', e: 'y', m: ['y', 'x'] }), [])
  })

  test('has nothing else', () => {
    const wrong: [Sample, Sample][] = [
      [{}, {}],
      [{ other: 1 }, { t: '' }],
      [{ n: 0.5 }, { t: '' }],
      [{ n: '1' }, { t: '' }],
      [{ b: 1 }, { t: '' }],
      [{ s: 'w' }, { t: '' }],
      [{ s: null }, { t: '' }],
      [{ z: 0 }, { t: '' }],
      [{}, { t: 1 }],
      [{}, { t: '', e: 'w' }],
      [{}, { t: '', m: ['x', 'x'] }],
      [{}, { t: '', m: 'x' }],
      [{}, { t: '', d: 5 }],
    ]
    for (const [event, responses] of wrong)
      assert.notDeepEqual(given(event, responses), [], JSON.stringify([event, responses]))
  })
})

describe('the conversion of a journey that goes on', () => {
  const told = (conversion: Sample, basis: 'entry' | 'first_shown' = 'first_shown') =>
    rulesOf(
      profileOf([withGoal(farewell(), basis)], { arms: [continuing(conversion === undefined ? {} : { conversion })] }),
    )
  const week = 604_800_000
  const at = (occurredAt: number, eventId = 'e') => ({ eventId, occurredAt })

  test('is there exactly when there is a goal', () => {
    assert.deepEqual(told({ startedAt: 5, revision: 1 }), [])
    assert.notDeepEqual(told(undefined), [])
    const aimless = profileOf([farewell()], { arms: [continuing({ conversion: { startedAt: 5, revision: 1 } })] })
    refuses(aimless, '$.armedLegs[0].conversion')
  })

  test('lies in its window after its basis, which is not before the start', () => {
    assert.deepEqual(told({ startedAt: 5, revision: 1, basis: at(5), conversion: at(5 + week) }), [])
    assert.notDeepEqual(told({ startedAt: 5, revision: 1, basis: at(5), conversion: at(6 + week) }), [])
    assert.notDeepEqual(told({ startedAt: 5, revision: 1, basis: at(6), conversion: at(5) }), [])
    assert.notDeepEqual(told({ startedAt: 5, revision: 1, basis: at(4) }), [])
    assert.notDeepEqual(told({ startedAt: 5, revision: 1, conversion: at(5) }), [])
  })

  test('is based on the journey itself where entry is the basis', () => {
    assert.deepEqual(told({ startedAt: 5, revision: 1, basis: at(5, journeyId) }, 'entry'), [])
    assert.notDeepEqual(told({ startedAt: 5, revision: 1, basis: at(5) }, 'entry'), [])
    assert.notDeepEqual(told({ startedAt: 5, revision: 1, basis: at(6, journeyId) }, 'entry'), [])
  })

  test('has no nulls, and ids of 1 to 1,024 units', () => {
    assert.notDeepEqual(told({ startedAt: 5, revision: 1, basis: null }), [])
    assert.notDeepEqual(told({ startedAt: 5.5, revision: 1 }), [])
    assert.deepEqual(told({ startedAt: 5, revision: 1, basis: at(5, 'x'.repeat(1024)) }), [])
    for (const eventId of ['', 'x'.repeat(1025)])
      assert.notDeepEqual(told({ startedAt: 5, revision: 1, basis: at(5, eventId) }), [])
  })
})
