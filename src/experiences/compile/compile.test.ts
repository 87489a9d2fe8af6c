import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { aDraft, device, field, server } from '../../../test/harness/a-draft.ts'
import fc from '../../../test/harness/random.ts'
import { must } from '../../kernel/assert.ts'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import { wireNames } from '../../kernel/wire-names.ts'
import type { References } from '../draft/references.ts'
import { validateDraft } from '../draft/validate.ts'
import { type CompileOptions, compile } from './leg.ts'
import { buildIdOf, describe, type Identity } from './release.ts'

const names = wireNames('service')
const compiler = { commit: '0000000', version: '0.1.0' }
const variants = [
  { id: 'a', isHoldout: false },
  { id: 'h', isHoldout: true },
]
const known: References = {
  segments: new Set(),
  features: new Set(),
  experiments: new Map([['xp_hello', { kind: 'ab', isArchived: false, variants }]]),
}

function compiled(draft: unknown, options: Partial<CompileOptions> = {}) {
  const judged = validateDraft(draft, known)
  assert.deepEqual(judged.findings.issues, [])
  const valid = must(judged.draft, 'it has no issues')
  return compile({ draft: valid, experienceId: 'exp_welcome', names, deliverAlways: false, compiler, ...options })
}

const identity: Identity = {
  appId: 'app_demo_ios',
  environment: 'test',
  experienceId: 'exp_welcome',
  experienceVersionId: 'ver_welcome_3',
  versionNumber: 3,
  buildId: 'bld_7',
  publishedAt: '2026-11-20T09:00:00.000Z',
  publishedAtSeq: 42,
}

const isNotPro = {
  ir_version: 1,
  expr: { type: 'User', op: 'neq', key: 'plan', value: { type: 'String', value: 'pro' } },
}

/** An experiment, an event for some, and a step of the server behind both. */
function experimentDraft() {
  const draft = aDraft()
  draft.metadata.name = 'Welcome'
  draft.policy.entry = {
    trigger: { type: 'event', eventName: 'signup_done' },
    frequency: { type: 'one_time' },
  }
  const payload = { campaign: { type: 'String', value: 'welcome' } }
  draft.graph.entry = 'pick'
  draft.graph.steps = [
    device(
      'pick',
      { type: 'experiment', experimentId: 'xp_hello', fallbackVariantId: 'a', variants },
      { a: 'tell', h: 'continue' },
    ),
    device('tell', { type: 'send_event', eventName: 'welcome_offered', payload }, { next: 'continue' }),
    server('continue', { type: 'emit_event', eventName: 'x', properties: { from: field('source') } }, { next: null }),
  ]
  return draft
}

test('a leg has the bytes that clients are documented to take', () => {
  const { legs } = compiled(experimentDraft())
  const [leg] = legs
  assert.equal(leg?.legId, 'a7c1c45d173cb8a85aa149dbf38ca99cbd6e07149cfa5972168c43a21720a641')
  const { bytes } = describe(must(leg, 'there is one'), identity)
  // The documented example names the completing step "done", as nobody can who authors, and asks for the plan at the entry.
  const { leg: shown, ...rest } = JSON.parse(bytes.toString().replaceAll('"@continue"', '"done"'))
  shown.entryCondition.condition = isNotPro
  shown.facts.propertyKeys = ['plan']
  const text = canonicalJson({ ...rest, leg: shown })
  assert.equal(Buffer.byteLength(text), 1892)
  assert.equal(hash('sha256', text), 'd1cab233c69380079b5e1e0e05397eb1b3934e0244d8ad23e6cced7defe9c523')
})

test('facts are what entry condition and steps ask for, and nothing else', () => {
  const draft = experimentDraft()
  Object.assign(draft.policy.entry ?? {}, { trigger: { type: 'event', eventName: 'x', condition: isNotPro } })
  Object.assign(draft.graph.steps[1]?.action ?? {}, { payload: { who: { type: 'Customer.Field', key: 'first' } } })
  const { facts } = must(compiled(draft).legs[0], 'there is one').body.leg as unknown as { facts: object }
  assert.deepEqual(facts, { propertyKeys: ['first', 'plan'], segmentIds: [], experimentIds: ['xp_hello'] })
})

test('a leg ends where the server goes on, and the plan knows every outcome of it', () => {
  const { legs, plan } = compiled(aDraft())
  const none = { eventFields: [], responseFields: [] }
  const told = { eventFields: [{ key: 'source', type: 'string', required: false }], responseFields: [] }
  const usual = { armForMs: null, runForMs: 7 * 86_400_000 }
  const { policy, fields, graph } = aDraft()
  const [, later, note] = graph.steps.map(({ action, outlets }) => ({ action, outlets, forgeable: false }))
  assert.deepEqual(plan, {
    ...{ entry: 'tell', isDeviceEnrolled: true, priority: 100, policy, fields, steps: { later, note } },
    sections: {
      again: { legId: legs[0]?.legId, ...usual, outcomes: { greeted: null }, inputs: none, outputs: { greeted: none } },
      tell: { legId: legs[1]?.legId, ...usual, outcomes: { later: 'later' }, inputs: told, outputs: { later: told } },
    },
  })
  const conditions = legs.map(({ body }) => (body.leg as unknown as { entryCondition: object }).entryCondition)
  assert.deepEqual(conditions, [{ type: 'app_foregrounded' }, { type: 'event', eventName: 'signup_done' }])
})

test('always is sent to clients that know it, and lowered for others', () => {
  const draft = aDraft()
  draft.graph.sections = { again: { entry: { type: 'always' } } }
  const typeOf = (deliverAlways: boolean) => {
    const [leg] = compiled(draft, { deliverAlways }).legs
    const { entryCondition } = must(leg, 'there is one').body.leg as unknown as { entryCondition: { type: string } }
    return entryCondition.type
  }
  assert.deepEqual([typeOf(false), typeOf(true)], ['app_foregrounded', 'always'])
})

/** Drafts of devices and servers in turn, with loops that wait. */
const anyDraft = fc
  .array(fc.record({ isDevice: fc.boolean(), a: fc.nat(11), b: fc.nat(11) }), { minLength: 2, maxLength: 10 })
  .map((shape) => {
    const draft = aDraft()
    const id = (n: number) => (n >= shape.length ? null : `s${n}`)
    draft.graph.entry = 's0'
    draft.graph.steps = shape.map(({ isDevice, a, b }, n) => {
      const [first, second] = [id(a), id(b)]
      if (!isDevice) {
        const wait = { type: 'wait_for_event', eventName: 'e', trust: 'any', timeoutMs: 1000 }
        return server(`s${n}`, wait, { matched: first, timeout: second })
      }
      const condition = { type: 'Truthy', value: { type: 'Boolean', value: true } }
      const wait = { type: 'wait_until', trigger: { kind: 'event', eventName: 'e' }, condition, maxTimeMs: 1000 }
      return device(`s${n}`, wait, { satisfied: first, timeout: second })
    })
    const reached = new Set<string>()
    const visit = (step: string | null) => {
      if (step === null || reached.has(step)) return
      reached.add(step)
      for (const next of Object.values(draft.graph.steps.find((one) => one.id === step)?.outlets ?? {})) visit(next)
    }
    visit('s0')
    draft.graph.steps = draft.graph.steps.filter((step) => reached.has(step.id))
    return draft
  })

interface LegSteps {
  entryStepId: string
  steps: { id: string; kind: string; outcome?: string; outlets?: Record<string, string> }[]
}

test('walks through legs and plan are the authored walks, for any graph and any choices', () => {
  fc.assert(
    fc.property(anyDraft, fc.array(fc.boolean(), { minLength: 30, maxLength: 30 }), (draft, choices) => {
      const { legs, plan } = compiled(draft)
      const authored: string[] = []
      const walked: string[] = []
      let at: string | null = draft.graph.entry
      for (const choice of choices) {
        if (at === null) break
        authored.push(at)
        at = Object.values(draft.graph.steps.find(({ id }) => id === at)?.outlets ?? {})[Number(choice)] ?? null
      }
      let target: string | null = plan.entry
      const left = [...choices]
      while (target !== null && left.length > 0) {
        const key: string = target
        const section = plan.sections[key]
        if (!section) {
          walked.push(key)
          target =
            Object.values(draft.graph.steps.find(({ id }) => id === key)?.outlets ?? {})[Number(left.shift())] ?? null
          continue
        }
        const leg = legs.find(({ sectionKey }) => sectionKey === key)?.body.leg as unknown as LegSteps
        let step = leg.steps.find(({ id }) => id === leg.entryStepId)
        while (step?.kind === 'action' && left.length > 0) {
          walked.push(step.id)
          const next = Object.values(step.outlets ?? {})[Number(left.shift())]
          step = leg.steps.find(({ id }) => id === next)
        }
        if (left.length === 0) break
        const outcome: string = must(step?.outcome, 'it completes')
        assert.ok(Object.hasOwn(section.outcomes, outcome))
        target = section.outcomes[outcome] ?? null
      }
      assert.deepEqual(walked, authored)
    }),
    { numRuns: 200 },
  )
})

test('equal drafts compile to equal bytes, whatever the order of their keys; other content has another build', () => {
  const reversed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reversed)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .toReversed()
        .map(([key, member]) => [key, reversed(member)]),
    )
  }
  const target = { appId: 'a', environment: 'test', experienceVersionId: 'v', compilerVersion: '1' } as const
  fc.assert(
    fc.property(
      anyDraft.filter(({ graph }) => graph.steps.some(({ plane }) => plane === 'device')),
      (draft) => {
        const [one, other] = [compiled(draft), compiled(reversed(draft))]
        const bytes = ({ legs }: typeof one) => legs.map((leg) => describe(leg, identity).sha256)
        assert.deepEqual(bytes(one), bytes(other))
        const build = buildIdOf(target, one.legs)
        assert.match(build, /^bld_[a-z2-7]{26}$/)
        assert.equal(build, buildIdOf(target, other.legs))
        draft.metadata.name += '!'
        assert.notEqual(build, buildIdOf(target, compiled(draft).legs))
        assert.notEqual(build, buildIdOf({ ...target, appId: 'b' }, one.legs))
      },
    ),
    { numRuns: 50 },
  )
})
