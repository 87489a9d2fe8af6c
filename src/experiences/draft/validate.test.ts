import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aDraft, device, field, server } from '../../../test/harness/a-draft.ts'
import { type Draft, feature, found, grant, ir, known, wait } from '../../../test/harness/found-in-draft.ts'
import fc from '../../../test/harness/random.ts'
import { draftIssuesMax, draftSectionsMax, draftStepsMax, irDepthMax, jsonDepthMax } from '../../kernel/limits.ts'
import { validateDraft } from './validate.ts'

test('a sound draft has no issues and no warnings', () => {
  assert.deepEqual(
    found(() => {}),
    [],
  )
})

test('segments and Features that exist may be named, an experiment as it is', () => {
  assert.deepEqual(
    found(({ policy, graph }) => {
      const trigger = { type: 'segment_enter', segmentId: 'seg_known' }
      policy.entry = { trigger, frequency: { type: 'every_match' }, eligibility: ir({ type: 'Not', arg: feature }) }
      Object.assign(graph.steps[3]?.outlets ?? {}, { next: 'try' })
      const variants = [
        { id: 'h', isHoldout: true },
        { id: 'a', isHoldout: false },
      ]
      const action = { type: 'experiment', experimentId: 'xp_one', variants, fallbackVariantId: 'a' }
      graph.steps.push(device('try', action, { a: 'bye', h: 'bye' }))
    }),
    [],
  )
})

test('what is wrong is all told, up to a bound', () => {
  const draft = {
    ...aDraft(),
    ...Object.fromEntries(Array.from({ length: draftIssuesMax + 5 }, (_, n) => [`k${n}`, 0])),
  }
  assert.equal(validateDraft(draft, known).findings.issues.length, draftIssuesMax)
})

test(`a draft may have ${draftStepsMax} steps and ${draftSectionsMax} sections, and one more of neither`, () => {
  const chain = (count: number) => (draft: Draft) => {
    draft.graph.steps = Array.from({ length: count }, (_, n) =>
      server(`s${n}`, { type: 'emit_event', eventName: 'x' }, { next: n + 1 < count ? `s${n + 1}` : null }),
    )
    draft.graph.entry = 's0'
  }
  assert.deepEqual(found(chain(draftStepsMax)), [])
  assert.deepEqual(found(chain(draftStepsMax + 1)), ['limit_exceeded /graph/steps'])
  const sections = (count: number) => (draft: Draft) => {
    const each = Array.from({ length: count }, (_, n) => n)
    draft.graph.entry = 'd0'
    draft.graph.steps = each.flatMap((n) => [
      device(`d${n}`, { type: 'app_action', name: 'x' }, { next: `s${n}` }),
      server(`s${n}`, { type: 'emit_event', eventName: 'x' }, { next: n + 1 < count ? `d${n + 1}` : null }),
    ])
  }
  assert.deepEqual(found(sections(draftSectionsMax)), [])
  assert.deepEqual(found(sections(draftSectionsMax + 1)), ['limit_exceeded /graph'])
})

test(`an expression may be nested ${irDepthMax} deep, not deeper`, () => {
  const nested =
    (depth: number) =>
    ({ policy }: Draft) => {
      let expr: object = { type: 'Bool', value: true }
      for (let at = 1; at < depth; at++) expr = { type: 'Not', arg: expr }
      Object.assign(policy.entry ?? {}, { eligibility: ir(expr) })
    }
  const invalid = (depth: number) => found(nested(depth)).filter((one) => one.startsWith('ir_invalid')).length
  assert.deepEqual([invalid(irDepthMax), invalid(irDepthMax + 1)], [0, 1])
  // Around it are policy, entry and eligibility, and two levels of the descriptor: clients read 64 in all.
  assert.deepEqual(found(nested(jsonDepthMax - 5)), [])
  assert.deepEqual(found(nested(jsonDepthMax - 4)), ['limit_exceeded /policy'])
})

test('a grant needs a gate that the server trusts after the last thing a client decides', () => {
  const behind =
    (...steps: Draft['graph']['steps']) =>
    (draft: Draft) => {
      draft.policy.entry = { trigger: { type: 'api' }, frequency: { type: 'every_match' } }
      draft.graph.steps = [...steps, grant('gift')]
      draft.graph.entry = steps[0]?.id ?? 'gift'
    }
  const untrusted = (change: (draft: Draft) => void) => found(change).some((one) => one.startsWith('grant_untrusted'))
  const tell = (next: string) => device('tell', { type: 'app_action', name: 'x' }, { next })
  const branch = (expr: object) =>
    server('if', { type: 'branch', branches: [{ id: 'yes', condition: ir(expr) }] }, { yes: 'gift', default: null })
  assert.equal(untrusted(behind()), false)
  assert.equal(untrusted(behind(tell('gift'))), true)
  assert.equal(
    untrusted(behind(tell('gate'), server('gate', wait('server'), { matched: 'gift', timeout: null }))),
    false,
  )
  assert.equal(
    untrusted(behind(tell('gate'), server('gate', wait('server'), { matched: null, timeout: 'gift' }))),
    true,
  )
  assert.equal(untrusted(behind(server('gate', wait('any'), { matched: 'gift', timeout: null }))), true)
  assert.equal(untrusted(behind(branch({ type: 'User', op: 'has', key: 'plan' }))), true)
  assert.equal(untrusted(behind(branch(feature))), false)
})

test('whatever JSON a draft is, it is judged: nothing throws', () => {
  const keys = fc.constantFrom(
    ...Object.keys(aDraft()),
    'steps',
    'entry',
    'type',
    'id',
    'action',
    '__proto__',
    'constructor',
  )
  const { any } = fc.letrec<{ any: unknown }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.jsonValue({ maxDepth: 1 }),
      fc.array(tie('any'), { maxLength: 4 }),
      fc.dictionary(keys, tie('any'), { maxKeys: 6 }),
      fc.constantFrom('device', 'server', 'branch', 'delay', field('x'), { type: 'branch', branches: [] }),
    ),
  }))
  fc.assert(
    fc.property(
      any,
      fc.constantFrom(...Object.keys(aDraft())),
      fc.constantFrom('steps', 'entry', 'sections', 'routes'),
      (value, key, inner) => {
        validateDraft(value, known)
        validateDraft({ ...aDraft(), [key]: value }, known)
        validateDraft({ ...aDraft(), graph: { ...aDraft().graph, [inner]: value } }, known)
        const [first, ...rest] = aDraft().graph.steps
        validateDraft(
          { ...aDraft(), graph: { ...aDraft().graph, steps: [{ ...first, action: value }, ...rest] } },
          known,
        )
      },
    ),
    { numRuns: 300 },
  )
})
