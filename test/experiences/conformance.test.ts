import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type CompiledLeg, compile } from '../../src/experiences/compile/leg.ts'
import {
  describe as describeLeg,
  envelopeOf,
  type Identity,
  signedMessage,
} from '../../src/experiences/compile/release.ts'
import type { References } from '../../src/experiences/draft/references.ts'
import { validateDraft } from '../../src/experiences/draft/validate.ts'
import { privateKeyOf, publicKeyOf, signWith } from '../../src/experiences/keys/ed25519.ts'
import { checkRelease } from '../../src/experiences/publish/self-check.ts'
import { must } from '../../src/kernel/assert.ts'
import { wireNames } from '../../src/kernel/wire-names.ts'
import type { Leg } from '../conformance/leg.ts'
import { verifyRelease } from '../conformance/release.ts'
import { aDraft, device, field, server } from '../harness/a-draft.ts'
import fc from '../harness/random.ts'
import { begin, proceed } from '../reference-client/leg-run.ts'

const names = wireNames('service')
const seed = Buffer.alloc(32, 3)
const key = { keyId: 'k', publicKey: publicKeyOf(seed) }
const reader = { namespace: 'service', mode: 'clients' as const, keys: new Map([['k', key.publicKey]]) }
const variants = [
  { id: 'a', isHoldout: false },
  { id: 'h', isHoldout: true },
]
const known: References = {
  segments: new Set(['seg_1']),
  features: new Set(['pro']),
  experiments: new Map([['xp_1', { kind: 'ab', isArchived: false, variants }]]),
}
const identity: Identity = {
  ...{ appId: 'app_1', environment: 'test', experienceId: 'exp_1', experienceVersionId: 'ver_1', versionNumber: 1 },
  ...{ buildId: 'bld_1', publishedAt: '2026-11-20T09:00:00.000Z', publishedAtSeq: 1 },
}

/** Every action that shows nothing, every kind of field, conditions of every place. */
function wideDraft() {
  const draft = aDraft()
  const ir = (expr: object) => ({ ir_version: 1, expr })
  const text = (value: string) => ({ type: 'String', value })
  const plan = { type: 'User', op: 'eq', key: 'plan', value: text('pro') }
  const seen = { type: 'Events.Count', name: 'opened', within: { type: 'Duration', value: 60 } }
  const compare = { type: 'Compare', op: '>=', left: seen, right: { type: 'Number', value: 2 } }
  const member = { type: 'Segment', op: 'is_member', id: 'seg_1' }
  const has = { type: 'Feature', op: 'has', id: 'pro' }
  draft.policy = {
    entry: {
      trigger: { type: 'event', eventName: 'signup', condition: ir({ type: 'Or', args: [plan, compare, member] }) },
      frequency: { type: 'once_per_window', window: { amount: 7, unit: 'day' } },
      eligibility: ir({ type: 'Not', arg: has }),
    },
    goal: {
      criterion: {
        type: 'event',
        eventName: '$purchase_completed',
        condition: ir({ type: 'Event', op: 'has', key: 'sku' }),
      },
      attribution: { basis: 'entry', window: { amount: 3, unit: 'day' } },
    },
    exitWhenAny: [{ type: 'goal_met' }, { type: 'eligibility_lost' }, { type: 'segment_leave', segmentId: 'seg_1' }],
  }
  draft.fields = {
    event: {
      source: { type: 'string', required: true, enum: ['ads', 'friends'] },
      price: { type: 'number', required: false, min: 0, max: 10 },
    },
    responses: {},
  }
  const payload = { from: field('source'), list: { type: 'Array', items: [text('x'), { type: 'Null' }] } }
  const waited = {
    kind: 'event',
    eventName: 'tap',
    payloadSchema: {
      type: 'object',
      fields: [{ key: 'k', type: 'json', required: false }],
      additionalProperties: true,
    },
  }
  const isPlan = { type: 'Compare', op: '==', left: { type: 'Customer.Field', key: 'plan' }, right: text('pro') }
  const branches = [
    { id: 'yes', condition: { type: 'All', conditions: [isPlan, { type: 'Truthy', value: field('source') }] } },
  ]
  const hours = {
    startTime: '09:00',
    endTime: '17:00',
    timezone: { kind: 'iana', identifier: 'Europe/Berlin' },
    daysOfWeek: [1, 5],
  }
  draft.graph.entry = 'a'
  draft.graph.steps = [
    device('a', { type: 'send_event', eventName: 'b', payload }, { next: 'c' }),
    device('c', { type: 'condition', branches }, { yes: 'd', default: 'e' }),
    device('d', { type: 'time_window', ...hours }, { inside: 'e' }),
    device(
      'e',
      { type: 'wait_until', trigger: waited, condition: isPlan, maxTimeMs: 1000 },
      { satisfied: 'f', timeout: 'g' },
    ),
    device('f', { type: 'experiment', experimentId: 'xp_1', variants, fallbackVariantId: 'a' }, { a: 'g', h: 'x' }),
    device('g', { type: 'update_customer', attributes: { plan: text('new') } }, { next: 'h' }),
    device('h', { type: 'app_action', name: 'hello', payload: {} }, { next: 'i' }),
    device('i', { type: 'delay', durationMs: 1000 }, { next: 'j' }),
    device('j', { type: 'submit_response' }, { next: 'k' }),
    device('x', { type: 'exit', reason: 'held' }),
    server('k', { type: 'emit_event', eventName: 'y', properties: { at: field('price') } }, { next: 'l' }),
    device('l', { type: 'send_event', eventName: 'again', payload: { was: field('price') } }, { next: null }),
  ]
  draft.graph.routes = [{ host: { kind: 'journey' }, eventName: 'stop', to: 'x' }]
  const entry = { type: 'segment', segmentId: 'seg_1', member: true, condition: ir(plan) }
  draft.graph.sections = { l: { entry, armForMs: 1000, outcomes: { abandoned: 'l', expired: null } } }
  return structuredClone(draft) // for changes
}

/** What the two verifiers, written apart, say of every leg; nothing for a draft that is not valid. */
function judged(draft: unknown): { ours: unknown; theirs: unknown }[] {
  const valid = validateDraft(draft, known).draft
  if (valid === null) return []
  const compiler = { commit: '0', version: '1' }
  const { legs } = compile({ draft: valid, experienceId: 'exp_1', names, deliverAlways: false, compiler })
  return legs.map(verdictsOf)
}

function verdictsOf(leg: CompiledLeg): { ours: unknown; theirs: unknown } {
  const descriptor = describeLeg(leg, identity)
  const signature = signWith(privateKeyOf(seed), signedMessage(names, descriptor.bytes))
  const envelope = envelopeOf(names, descriptor, { keyId: 'k', signature })
  const locator = { ...identity, legId: leg.legId }
  const outcome = verifyRelease({ locator, envelope }, reader)
  return {
    ours: checkRelease(names, locator, envelope, key),
    theirs: 'refused' in outcome ? outcome.refused : undefined,
  }
}

const passes = { ours: undefined, theirs: undefined }

test('every leg of a draft that uses all that there is passes the strict validator', () => {
  assert.deepEqual(validateDraft(wideDraft(), known).findings.issues, [])
  assert.deepEqual(judged(wideDraft()), [passes, passes])
})

/** Places in a draft, as paths. */
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
    '$identify',
    '@a',
  ],
  ...[
    'a',
    'l',
    'k',
    'x',
    'true',
    '\0',
    ' a',
    0,
    1,
    -1,
    1.5,
    1e15,
    2 ** 60,
    true,
    false,
    null,
    [],
    {},
    [null],
    ['a', 'a'],
  ],
)
const places = placesIn(wideDraft())

test('whatever is changed in a draft: what validation lets through, every client takes', () => {
  let valid = 0
  fc.assert(
    fc.property(fc.constantFrom(...places), oddities, fc.constantFrom('set', 'drop', 'twice'), (path, odd, how) => {
      const draft = wideDraft() as unknown as Record<string, unknown>
      const last = path.at(-1)
      const parent = path.slice(0, -1).reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], draft) // it is one of its places
      if (last === undefined) return
      if (how === 'drop') Reflect.deleteProperty(parent as object, last)
      else if (how === 'twice' && Array.isArray(parent)) parent.push(parent[Number(last)])
      else Object.assign(parent as object, { [last]: odd })
      const found = judged(draft)
      if (found.length > 0) valid++
      for (const each of found) assert.deepEqual(each, passes)
    }),
    { numRuns: 1000 },
  )
  assert.ok(valid > 50, `${valid} changed drafts were valid`)
})

describe('a holdout', () => {
  const variants = [
    { id: 'in', isHoldout: false },
    { id: 'out', isHoldout: true },
  ]
  const holdout = { experimentId: 'xp_held', variants }
  const knowing = {
    ...known,
    experiments: new Map([
      ['xp_held', { kind: 'holdout' as const, isArchived: false, variants }],
      ...known.experiments,
    ]),
  }
  const gated = (draft: ReturnType<typeof aDraft>) => {
    draft.policy.holdout = 'xp_held'
    const { draft: valid, findings } = validateDraft(draft, knowing)
    assert.deepEqual(findings.issues, [])
    const compiler = { commit: '0', version: '1' }
    return compile({
      draft: must(valid, 'it has no issues'),
      experienceId: 'exp_1',
      names,
      deliverAlways: false,
      compiler,
      holdout,
    })
  }
  const legOf = (key: string, draft = aDraft()) => {
    const { body } = must(
      gated(draft).legs.find(({ sectionKey }) => sectionKey === key),
      'the section is there',
    )
    return body.leg as unknown as Leg
  }
  const around = { values: { event: {}, responses: {}, properties: {} }, nowMs: 0 }
  const run = (leg: Leg, assignment: { variantId: string; isHoldout: boolean } | null) =>
    proceed(leg, begin(leg), { ...around, assignments: { xp_held: assignment } })

  test('stands before the first step on a device, and before no other', () => {
    const first = legOf('tell')
    assert.equal(first.entryStepId, '@@holdout')
    assert.deepEqual(first.facts.experimentIds, ['xp_held'])
    const again = legOf('again')
    assert.equal(again.entryStepId, 'again')
    assert.deepEqual(again.facts.experimentIds, [])
    const byServer = aDraft()
    byServer.policy.entry = { trigger: { type: 'api' }, frequency: { type: 'every_match' } }
    assert.equal(legOf('tell', byServer).entryStepId, 'tell')
  })

  test('lets nobody who is held out see a step of the content, and everybody else all of it', () => {
    const leg = legOf('tell')
    const out = run(leg, { variantId: 'out', isHoldout: true })
    assert.deepEqual([out.emitted, out.ended?.outcome], [[], 'holdout'])
    for (const assignment of [{ variantId: 'in', isHoldout: false }, null]) {
      const inside = run(leg, assignment)
      assert.deepEqual([inside.emitted.length, inside.ended?.outcome], [1, 'later'])
    }
  })

  test('of any kind of draft passes both verifiers', () => {
    for (const draft of [aDraft(), wideDraft() as ReturnType<typeof aDraft>]) {
      for (const leg of gated(draft).legs) assert.deepEqual(verdictsOf(leg), passes)
    }
  })

  test('must be there, must not be archived, and must be of its kind', () => {
    const codes = (experiments: References['experiments']) => {
      const draft = aDraft()
      draft.policy.holdout = 'xp_held'
      return validateDraft(draft, { ...known, experiments }).findings.issues.map(({ path, code }) => [path, code])
    }
    const as = (more: object) => new Map([['xp_held', { kind: 'ab' as const, isArchived: false, variants, ...more }]])
    assert.deepEqual(codes(new Map()), [['/policy/holdout', 'reference_missing']])
    assert.deepEqual(codes(as({})), [['/policy/holdout', 'experiment_state']])
    assert.deepEqual(codes(as({ kind: 'holdout', isArchived: true })), [['/policy/holdout', 'experiment_state']])
  })
})
