import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from '../../test/harness/random.ts'
import type { Current, DeliveredRelease, Delivery } from '../experiences/index.ts'
import { dayMs, profileArmsMax, profileBytesMax } from '../kernel/limits.ts'
import { wireNames } from '../kernel/wire-names.ts'
import { assemble, type Trace } from './assemble.ts'
import { bytesOf } from './body.ts'
import type { OpenJourney, Person, ProfileInput } from './types.ts'

const now = Date.UTC(2026, 10, 20)
const base = 'https://cdn.example/'

interface Authored {
  id: string
  priority?: number
  size?: number
  facts?: Partial<DeliveredRelease['facts']>
  frequency?: Current['frequency']
  trigger?: Current['trigger']
  eligibility?: Current['eligibility']
  readsClock?: boolean
  status?: Current['status']
  unverified?: boolean
}

function releaseOf({ id, size = 10, facts = {} }: Authored, appId = 'app'): DeliveredRelease {
  const sha256 = hash('sha256', `${id} ${appId}`)
  return {
    ...{ sha256, legId: hash('sha256', id), experienceId: id, seq: 1, entryCondition: '{"type":"app_foregrounded"}' },
    json: Buffer.from(
      JSON.stringify({ locator: { experienceId: id, legId: hash('sha256', id) }, pad: 'x'.repeat(size) }),
    ),
    facts: { propertyKeys: [], segmentIds: [], experimentIds: [], ...facts },
    inputs: { eventFields: [{ key: 'n', type: 'number', required: false }], responseFields: [] },
    ...{ hasGoal: false, variants: new Map() },
  }
}

function currentOf(authored: Authored, rowId: number): Current {
  const { id, priority = 0, size = 10 } = authored
  const { sha256, legId } = releaseOf(authored)
  return {
    ...{ experienceRowId: rowId, experienceId: id, appId: 'app', seq: rowId, versionId: `ver_${id}`, versionNumber: 1 },
    ...{ buildId: 'bld', priority, defaultLocale: 'en', segments: new Set<string>() },
    legs: new Map([[legId, new Map([['en', { sha256, size }]])]]),
    ...{ status: authored.status ?? 'live', platforms: ['ios'], isDeviceEnrolled: true, entryLegId: legId },
    trigger: authored.trigger ?? { type: 'event', eventName: 'e' },
    frequency: authored.frequency ?? { type: 'every_match' },
    ...{ eligibility: authored.eligibility ?? null, readsClock: authored.readsClock ?? false },
  } as Current // of a draft with nothing but these
}

function inputOf(authored: Authored[], person: Partial<Person> = {}, more: Partial<Delivery> = {}): ProfileInput {
  const releases = new Map(authored.map((one) => [releaseOf(one).sha256, one.unverified ? null : releaseOf(one)]))
  const delivery: Delivery = {
    ...{ revision: 1n, segments: new Map(), named: new Set(), experiments: new Map() },
    experiences: authored.map(({ id }, rowId) => ({ rowId, id })),
    current: new Map([['app', authored.map(currentOf)]]),
    release: (_appId, sha256) => releases.get(sha256),
    pinned: () => null,
    fetch: async () => {},
    ...more,
  }
  return {
    catalogue: { revision: 1n, published: new Map(), byId: new Map(), poolsOf: new Map(), clockOffsetMs: 0 },
    ...{ delivery, app: { appId: 'app', platform: 'ios' }, locale: null },
    wire: { names: wireNames('service'), renderBaseUrl: base, assetBaseUrl: base },
    person: {
      ...{ customerId: 'c', now, accounts: new Map(), versions: 0n, revision: 1n, rev: 1n, properties: {} },
      ...{ members: new Map(), edges: new Map(), segments: new Set(), enrolments: new Map(), journeys: [] },
      ...{ assignments: new Map(), pausedAt: null },
      ...person,
    },
  }
}

function profileOf(input: ProfileInput, trace?: Trace) {
  const assembly = assemble(input, trace)
  assert.equal(assembly.kind, 'profile')
  const made = assembly as Extract<typeof assembly, { kind: 'profile' }> // it was asserted
  const { validUntil } = made
  const bytes = bytesOf(made.body)
  return { bytes, validUntil, body: JSON.parse(bytes.toString()) }
}

function reasonsOf(input: ProfileInput): (string | null)[] {
  const trace: Trace = { experiences: new Map(), journeys: new Map() }
  profileOf(input, trace)
  return [...trace.experiences.values()].map(({ reason }) => reason)
}

function journeyOf(i: number, experienceRowId: number, legSection: string): OpenJourney {
  return {
    ...{
      id: `0198c0de-0000-7000-8000-${String(i).padStart(12, '0')}`,
      appId: 'app',
      experienceRowId,
      versionNumber: 9,
    },
    ...{
      status: 'armed',
      generation: 1 + i,
      sectionKey: legSection,
      held: false,
      context: { event: {}, responses: {} },
    },
    conversion: { startedAt: now, revision: 1 },
  }
}

const authored = fc
  .record({
    priority: fc.integer({ min: -2, max: 2 }),
    facts: fc.record({
      propertyKeys: fc.uniqueArray(fc.constantFrom('a', 'b', 'B', 'é', '😀', 'z'), { maxLength: 4 }),
    }),
  })
  .map(({ priority, facts }) => ({ priority, facts: { propertyKeys: facts.propertyKeys.toSorted() } }))
const ids = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 4 }), { maxLength: 12 })
const experiences = ids.chain((all) =>
  fc.tuple(...all.map((id) => authored.map((one): Authored => ({ ...one, id: `exp_${id}` })))).map((each) => [...each]),
)

describe('a profile', () => {
  test('is equal for equal input, whatever order the Experiences were read in', () => {
    fc.assert(
      fc.property(experiences, fc.infiniteStream(fc.nat()), (all, numbers) => {
        const input = inputOf(all)
        const shuffled = all.map((one) => ({ one, by: numbers.next().value })).toSorted((a, b) => a.by - b.by)
        const other = inputOf(shuffled.map(({ one }) => one))
        assert.deepEqual(profileOf(other).bytes, profileOf(input).bytes)
        assert.deepEqual(
          profileOf(input, { experiences: new Map(), journeys: new Map() }).bytes,
          profileOf(input).bytes,
        )
      }),
    )
  })

  test('has arms by priority and id, releases by id, and the facts of its releases in order', () => {
    fc.assert(
      fc.property(
        experiences,
        fc.dictionary(fc.constantFrom('a', 'B', 'z'), fc.jsonValue().map(asStored)),
        (all, properties) => {
          const { body } = profileOf(inputOf(all, { properties } as Partial<Person>))
          const sorted = all.toSorted((a, b) => (b.priority ?? 0) - (a.priority ?? 0) || (a.id < b.id ? -1 : 1))
          const named = (list: { reference?: { experienceId: string }; locator?: { experienceId: string } }[]) =>
            list.map(({ reference, locator }) => (reference ?? locator)?.experienceId)
          assert.deepEqual(
            named(body.armedLegs),
            sorted.map(({ id }) => id),
          )
          assert.deepEqual(named(body.releases), all.map(({ id }) => id).toSorted())
          const declared = [...new Set(all.flatMap(({ facts }) => facts?.propertyKeys ?? []))].toSorted()
          assert.deepEqual(Object.keys(body.facts.properties), declared)
          for (const key of declared) {
            const has = Object.hasOwn(properties, key)
            assert.deepEqual(
              body.facts.properties[key],
              has ? { present: true, value: properties[key] } : { present: false },
            )
          }
        },
      ),
    )
  })

  test('leaves out what does not verify, and says so', () => {
    const input = inputOf([{ id: 'exp_a', unverified: true }, { id: 'exp_b' }])
    assert.equal(profileOf(input).body.armedLegs.length, 1)
    assert.deepEqual(reasonsOf(input), ['release_unverified', null])
  })

  test('asks for the releases that were not read yet', () => {
    const input = inputOf([{ id: 'exp_a' }, { id: 'exp_b' }])
    const { sha256 } = releaseOf({ id: 'exp_b' })
    const read = input.delivery.release
    const partly = {
      ...input.delivery,
      release: (appId: string, one: string) => (one === sha256 ? undefined : read(appId, one)),
    }
    assert.deepEqual(assemble({ ...input, delivery: partly }), {
      kind: 'missing',
      missing: { releases: [{ appId: 'app', sha256 }], pins: [], assignments: [], segments: false, birth: false },
    })
  })
})

describe('a full profile', () => {
  const many = (count: number): Authored[] =>
    Array.from({ length: count }, (_, i) => ({ id: `exp_${String(i).padStart(4, '0')}`, priority: count - i }))

  test(`has ${profileArmsMax} arms, and not one more`, () => {
    for (const count of [profileArmsMax, profileArmsMax + 1, profileArmsMax + 7]) {
      const input = inputOf(many(count))
      const { body } = profileOf(input)
      assert.deepEqual([body.armedLegs.length, body.releases.length], [profileArmsMax, profileArmsMax])
      const left = reasonsOf(input)
      assert.equal(left.filter((reason) => reason === 'limit_arms').length, count - profileArmsMax)
      assert.ok(left.slice(0, profileArmsMax).every((reason) => reason === null))
    }
  })

  test('has 8 MiB, and not one byte more; whole arms are left out from the end', () => {
    const few = (last: number): Authored[] => [
      { id: 'exp_a', priority: 3, size: 3_000_000 },
      { id: 'exp_b', priority: 2, size: 4_000_000, facts: { propertyKeys: ['plan', 'seats'] } },
      { id: 'exp_c', priority: 1, size: last, facts: { propertyKeys: ['plan', 'ü'] } },
    ]
    const small = profileOf(inputOf(few(0))).bytes.length
    const fits = inputOf(few(profileBytesMax - small))
    assert.equal(profileOf(fits).bytes.length, profileBytesMax)
    const over = inputOf(few(profileBytesMax - small + 1))
    const { body, bytes } = profileOf(over)
    assert.deepEqual([body.armedLegs.length, body.releases.length], [2, 2])
    assert.ok(bytes.length < profileBytesMax)
    assert.deepEqual(Object.keys(body.facts.properties), ['plan', 'seats'])
    assert.deepEqual(reasonsOf(over), [null, null, 'limit_bytes'])
  })

  test('reads a release that may be too much before it leaves anything out: it need not verify', () => {
    const all: Authored[] = [
      { id: 'exp_a', priority: 3 },
      { id: 'exp_b', priority: 2, size: profileBytesMax },
      { id: 'exp_c', priority: 1 },
    ]
    const input = inputOf(all)
    const [, large = ''] = all.map((one) => releaseOf(one).sha256)
    const withLarge = (found: DeliveredRelease | null | undefined): ProfileInput => {
      const release: Delivery['release'] = (app, sha256) =>
        sha256 === large ? found : input.delivery.release(app, sha256)
      return { ...input, delivery: { ...input.delivery, release } }
    }
    const assembly = assemble(withLarge(undefined))
    assert.deepEqual(assembly.kind === 'missing' && assembly.missing.releases, [{ appId: 'app', sha256: large }])
    assert.deepEqual(reasonsOf(withLarge(null)), [null, 'release_unverified', null])
    assert.deepEqual(reasonsOf(input), [null, 'limit_bytes', 'limit_bytes'])
  })

  test('leaves out new journeys before those that go on, by bytes too', () => {
    const all: Authored[] = [
      { id: 'exp_a', priority: 2, size: 5_000_000 },
      { id: 'exp_b', priority: 1, size: 2_000_000 },
      { id: 'exp_c', priority: 0, size: 3_000_000, status: 'paused' },
    ]
    const stamp = { ...currentOf(all[2] ?? { id: '' }, 2), versionNumber: 9 }
    const [first] = [...stamp.legs.values()]
    const journeys = [journeyOf(0, 2, 'later')]
    const { body } = profileOf(inputOf(all, { journeys }, { pinned: () => withAnyLeg(stamp, first) }))
    assert.deepEqual(
      body.armedLegs.map(
        ({ reference, binding }: { reference: { experienceId: string }; binding: { type: string } }) => [
          reference.experienceId,
          binding.type,
        ],
      ),
      [
        ['exp_a', 'new'],
        ['exp_c', 'continue'],
      ],
    )
  })

  test('keeps journeys that go on and leaves out new ones', () => {
    const all = many(profileArmsMax)
    const stamp = { ...currentOf({ id: 'exp_0000' }, 0), versionNumber: 9, priority: -5 }
    const [first] = [...stamp.legs.values()]
    const pinned = (pin: { versionNumber: number }) => (pin.versionNumber === 9 ? withAnyLeg(stamp, first) : null)
    const journeys = Array.from({ length: 3 }, (_, i) => journeyOf(i, 0, 'later'))
    const input = inputOf(all, { journeys }, { pinned } as Partial<Delivery>)
    const { body } = profileOf(input)
    const onward = body.armedLegs.filter(({ binding }: { binding: { type: string } }) => binding.type === 'continue')
    assert.deepEqual([body.armedLegs.length, onward.length], [profileArmsMax, 3])
    // Of the lowest priority: they stand last.
    assert.deepEqual(body.armedLegs.slice(-3), onward)
    assert.deepEqual(
      onward.map(({ binding }: { binding: { generation: number } }) => binding.generation),
      [1, 2, 3],
    )
    assert.equal(reasonsOf(input).filter((reason) => reason === 'limit_arms').length, 3)
  })

  /** Whatever leg is asked for is that one release. */
  function withAnyLeg(stamp: Current, release: ReturnType<Current['legs']['get']>): Current {
    const legs = new Map(stamp.legs)
    legs.get = () => release
    return { ...stamp, legs }
  }
})

describe('frequency', () => {
  const hour = 3600_000
  const windowed = { type: 'once_per_window', window: { amount: 2, unit: 'hour' } } as const
  const reasonAfter = (frequency: Current['frequency'], times: number[], at = now) => {
    const enrolments = new Map([[0, { count: times.length, times }]])
    const input = inputOf([{ id: 'exp_a', frequency }], { enrolments, now: at })
    return { reason: reasonsOf(input)[0], validUntil: profileOf(input).validUntil }
  }

  test('one_time lets nobody in twice, every_match everybody', () => {
    assert.equal(reasonAfter({ type: 'one_time' }, []).reason, null)
    assert.equal(reasonAfter({ type: 'one_time' }, [now - 900 * dayMs]).reason, 'frequency')
    assert.equal(reasonAfter({ type: 'every_match' }, [now]).reason, null)
  })

  test('once_per_window refuses inside the window and not at its end, which the profile knows of', () => {
    assert.deepEqual(reasonAfter(windowed, [now - 2 * hour + 1]), { reason: 'frequency', validUntil: now + 1 })
    assert.deepEqual(reasonAfter(windowed, [now - 2 * hour]), { reason: null, validUntil: null })
    assert.deepEqual(reasonAfter(windowed, [now]), { reason: 'frequency', validUntil: now + 2 * hour })
    assert.deepEqual(reasonAfter(windowed, [now + 3 * hour]), { reason: null, validUntil: now + hour + 1 })
  })

  test('before validUntil time alone changes nothing', () => {
    const times = fc.array(
      fc.integer({ min: -10 * hour, max: 5 * hour }).map((by) => now + by),
      { maxLength: 4 },
    )
    fc.assert(
      fc.property(times, fc.nat(12 * hour), (counted, later) => {
        const { reason, validUntil } = reasonAfter(windowed, counted)
        if (validUntil !== null && now + later >= validUntil) return
        assert.equal(reasonAfter(windowed, counted, now + later).reason, reason)
      }),
    )
  })
})

describe('a segment that lets in', () => {
  const segments = new Map([['seg', { segmentId: 3, versionId: 7 }]])
  const judged = (type: 'segment_enter' | 'segment_leave', person: Partial<Person>, times: number[] = []) => {
    const enrolments = new Map(times.length > 0 ? [[0, { count: times.length, times }]] : [])
    const one: Authored = { id: 'exp_a', trigger: { type, segmentId: 'seg' } }
    return reasonsOf(inputOf([one], { enrolments, ...person }, { segments }))[0]
  }
  const edge = (kind: 'entered' | 'left', isEvent = true, at = now - 10) => new Map([[3, { edge: kind, isEvent, at }]])
  const members = new Map([[7, now - 10]])

  test('by entering: a member by an edge that was not used yet', () => {
    assert.equal(judged('segment_enter', {}), 'segment_state')
    assert.equal(judged('segment_enter', { members, edges: edge('entered') }), null)
    assert.equal(judged('segment_enter', { members, edges: edge('entered', false) }), 'segment_state')
    assert.equal(judged('segment_enter', { members, edges: edge('entered') }, [now - 11]), null)
    assert.equal(judged('segment_enter', { members, edges: edge('entered') }, [now - 10]), 'segment_state')
    assert.equal(judged('segment_enter', { edges: edge('left') }), 'segment_state')
  })

  test('by leaving: somebody who was a member, by an edge that was not used yet', () => {
    assert.equal(judged('segment_leave', {}), 'segment_state')
    assert.equal(judged('segment_leave', { members, edges: edge('entered') }), 'segment_state')
    assert.equal(judged('segment_leave', { edges: edge('left') }), null)
    assert.equal(judged('segment_leave', { edges: edge('left', false) }), 'segment_state')
    assert.equal(judged('segment_leave', { edges: edge('left') }, [now]), 'segment_state')
  })

  test('an edge of 90 days ago lets nobody in any more, and the profile knows when', () => {
    const at = now - 90 * dayMs
    assert.equal(judged('segment_leave', { edges: edge('left', true, at) }), 'segment_state')
    assert.equal(judged('segment_leave', { edges: edge('left', true, at + 1) }), null)
    const input = inputOf(
      [{ id: 'exp_a', trigger: { type: 'segment_leave', segmentId: 'seg' } }],
      { edges: edge('left') },
      { segments },
    )
    assert.equal(profileOf(input).validUntil, now - 10 + 90 * dayMs)
  })
})

describe('eligibility', () => {
  const judged = (expr: object, person: Partial<Person> = {}) =>
    reasonsOf(inputOf([{ id: 'exp_a', eligibility: { expr } }], person))[0]

  test('lets in whom it is true of; unknown is not true', () => {
    const pro = { type: 'User', op: 'eq', key: 'plan', value: { type: 'String', value: 'pro' } }
    assert.equal(judged(pro, { properties: { plan: 'pro' } }), null)
    assert.equal(judged(pro, { properties: { plan: 'free' } }), 'eligibility')
    assert.equal(judged({ type: 'Not', arg: pro }), null)
    const unknown = { type: 'Segment', op: 'not_member', id: 'seg_gone' }
    assert.equal(judged(unknown), 'eligibility')
    assert.equal(judged({ type: 'Or', args: [{ type: 'Bool', value: true }, unknown] }), 'eligibility')
  })

  test('that reads the clock is judged anew each time', () => {
    const expr = {
      type: 'Compare',
      op: '<',
      left: { type: 'Time.Now' },
      right: { type: 'Timestamp', value: now / 1000 + 60 },
    }
    const input = inputOf([{ id: 'exp_a', eligibility: { expr }, readsClock: true }])
    assert.deepEqual([reasonsOf(input)[0], profileOf(input).validUntil], [null, now])
  })
})

describe('a journey that goes on', () => {
  const one: Authored = { id: 'exp_a' }
  const stamp = { ...currentOf(one, 0), versionNumber: 9 }
  const delivered = releaseOf(one)
  const [legs] = [...stamp.legs.values()]
  const held = (more: Partial<OpenJourney>, pin: Delivery['pinned'] = () => anyLeg()) => {
    const input = inputOf([one], { journeys: [{ ...journeyOf(0, 0, 'later'), ...more }] }, { pinned: pin })
    const trace: Trace = { experiences: new Map(), journeys: new Map() }
    const { body } = profileOf(input, trace)
    const [arm] = body.armedLegs.filter(({ binding }: { binding: { type: string } }) => binding.type === 'continue')
    return { reason: [...trace.journeys.values()][0]?.reason, arm }
  }
  function anyLeg(): Current {
    const all = new Map(stamp.legs)
    all.get = () => legs
    return { ...stamp, legs: all }
  }

  test('is armed with its generation and what its leg declares of its context', () => {
    const { reason, arm } = held({ context: { event: { n: 3, other: 1 }, responses: { why: 'x' } } })
    assert.equal(reason, null)
    assert.equal(arm.binding.generation, 1)
    assert.deepEqual(arm.context, { event: { n: 3 }, responses: {} })
    assert.equal(arm.reference.descriptorSha256, delivered.sha256)
  })

  test('is not for these reasons', () => {
    assert.equal(held({ status: 'waiting', sectionKey: null }).reason, 'not_armed')
    assert.equal(held({ status: 'on_device' }).reason, 'not_armed')
    assert.equal(held({ appId: 'other' }).reason, 'other_app')
    assert.equal(held({ held: true }).reason, 'held')
    assert.equal(held({}, () => null).reason, 'release_unverified')
  })

  test('gets nothing that does not fit, and no arm where something is required', () => {
    assert.deepEqual(held({ context: { event: { n: 'three' }, responses: {} } }).arm.context.event, {})
    const required = {
      ...delivered,
      inputs: { eventFields: [{ key: 'n', type: 'number', required: true }], responseFields: [] },
    }
    const input = inputOf(
      [one],
      { journeys: [journeyOf(0, 0, 'later')] },
      { pinned: () => anyLeg(), release: () => required },
    )
    const trace: Trace = { experiences: new Map(), journeys: new Map() }
    profileOf(input, trace)
    assert.equal([...trace.journeys.values()][0]?.reason, 'input_missing')
  })
})

/** JSON has no -0. */
function asStored(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}
