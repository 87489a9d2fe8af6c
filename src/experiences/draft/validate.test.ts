import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { aDraft, device, field, server } from '../../../test/harness/a-draft.ts'
import { draftIssuesMax, draftSectionsMax, draftStepsMax, irDepthMax } from '../../kernel/limits.ts'
import type { References } from './references.ts'
import { validateDraft } from './validate.ts'

const known: References = {
  segments: new Set(['seg_known']),
  features: new Set(['pro']),
  experiments: new Map([
    [
      'xp_one',
      {
        isArchived: false,
        variants: [
          { id: 'a', isHoldout: false },
          { id: 'h', isHoldout: true },
        ],
      },
    ],
    ['xp_old', { isArchived: true, variants: [{ id: 'a', isHoldout: false }] }],
  ]),
}

type Draft = ReturnType<typeof aDraft>

/** What is found in the draft after a change, as `code path`. */
function found(change: (draft: Draft) => void): string[] {
  const draft = aDraft()
  change(draft)
  const { issues, warnings } = validateDraft(draft, known).findings
  return [...issues, ...warnings].map(({ code, path }) => `${code} ${path}`)
}

const ir = (expr: object) => ({ ir_version: 1, expr })
const feature = { type: 'Feature', op: 'has', id: 'pro' }
const grant = (id: string, next: string | null = null) =>
  server(id, { type: 'grant_feature', featureId: 'pro', amount: 1 }, { next })
const wait = (trust: string) => ({ type: 'wait_for_event', eventName: 'paid', trust, timeoutMs: 1000 })

test('a sound draft has no issues and no warnings', () => {
  assert.deepEqual(
    found(() => {}),
    [],
  )
})

/** Every code, with what brings it about. */
const cases: [code: string, path: string, change: (draft: Draft) => void][] = [
  [
    'value_invalid',
    '/platforms',
    (draft) => {
      draft.platforms = []
    },
  ],
  ['value_invalid', '', (draft) => void Reflect.deleteProperty(draft, 'presentation')],
  [
    'value_invalid',
    '/metadata/appDefaultTimezone',
    (draft) => {
      draft.metadata.appDefaultTimezone = 'Moon/Base'
    },
  ],
  ['value_invalid', '/screens', (draft) => void Object.assign(draft, { screens: [{ id: 'offer' }] })],
  ['unknown_key', '/extra', (draft) => void Object.assign(draft, { extra: 1 })],
  [
    'unknown_key',
    '/graph/steps/0/action/extra',
    ({ graph }) => void Object.assign(graph.steps[0]?.action ?? {}, { extra: 1 }),
  ],
  ['id_invalid', '/graph/steps/5/id', ({ graph }) => void graph.steps.push(server('expired', { type: 'exit' }))],
  ['id_invalid', '/graph/steps/5/id', ({ graph }) => void graph.steps.push(server('@a', { type: 'exit' }))],
  ['id_duplicate', '/graph/steps/5/id', ({ graph }) => void graph.steps.push(server('later', { type: 'exit' }))],
  [
    'id_duplicate',
    '/graph/steps/4/action/reason',
    ({ graph }) => void Object.assign(graph.steps[4]?.action ?? {}, { reason: 'later' }),
  ],
  ['action_unknown', '/graph/steps/5/action', ({ graph }) => void graph.steps.push(device('x', { type: 'milestone' }))],
  [
    'action_wrong_plane',
    '/graph/steps/5/action',
    ({ graph }) => void graph.steps.push(device('x', { type: 'branch' })),
  ],
  [
    'outlet_missing',
    '/graph/steps/0/outlets',
    ({ graph }) => void Object.assign(graph.steps[0] ?? {}, { outlets: {} }),
  ],
  [
    'outlet_unknown',
    '/graph/steps/0/outlets/other',
    ({ graph }) => void Object.assign(graph.steps[0]?.outlets ?? {}, { other: null }),
  ],
  [
    'outlet_unknown',
    '/graph/sections/again/outcomes/odd',
    ({ graph }) => {
      graph.sections = { again: { outcomes: { odd: null } } }
    },
  ],
  [
    'target_missing',
    '/graph/steps/0/outlets/next',
    ({ graph }) => void Object.assign(graph.steps[0]?.outlets ?? {}, { next: 'gone' }),
  ],
  [
    'target_missing',
    '/graph/entry',
    ({ graph }) => {
      graph.entry = 'gone'
    },
  ],
  [
    'target_missing',
    '/graph/routes/0/to',
    ({ graph }) => void graph.routes.push({ host: { kind: 'journey' }, eventName: 'e', to: 'gone' }),
  ],
  [
    'target_missing',
    '/graph/sections/later',
    ({ graph }) => {
      graph.sections = { later: {} }
    },
  ],
  ['step_unreachable', '/graph/steps/5', ({ graph }) => void graph.steps.push(server('alone', { type: 'exit' }))],
  [
    'cycle_untimed',
    '/graph/steps',
    ({ graph }) =>
      void Object.assign(
        graph.steps[1] ?? {},
        server('later', { type: 'emit_event', eventName: 'x' }, { next: 'later' }),
      ),
  ],
  [
    'limit_exceeded',
    '/graph/steps',
    ({ graph }) => {
      graph.steps = Array.from({ length: draftStepsMax + 1 }, (_, n) => server(`s${n}`, { type: 'exit' }))
    },
  ],
  [
    'trigger_enrolment',
    '/policy/entry/enrolment',
    ({ policy }) => {
      policy.entry = { trigger: { type: 'api' }, enrolment: 'device', frequency: { type: 'one_time' } }
    },
  ],
  [
    'trigger_enrolment',
    '/policy/entry/enrolment',
    ({ policy, graph }) => {
      graph.entry = 'later'
      Object.assign(policy.entry ?? {}, { enrolment: 'device' })
    },
  ],
  [
    'event_reserved',
    '/policy/entry/trigger/eventName',
    ({ policy }) => void Object.assign(policy.entry ?? {}, { trigger: { type: 'event', eventName: '$made_up' } }),
  ],
  [
    'event_reserved',
    '/graph/steps/0/action',
    ({ graph }) => void Object.assign(graph.steps[0]?.action ?? {}, { eventName: '$identify' }),
  ],
  [
    'ir_invalid',
    '/policy/entry/eligibility/expr',
    ({ policy }) => void Object.assign(policy.entry ?? {}, { eligibility: ir({ type: 'Nonsense' }) }),
  ],
  [
    'ir_invalid',
    '/policy/entry/eligibility/expr',
    ({ policy }) => void Object.assign(policy.entry ?? {}, { eligibility: ir({ ...feature, extra: 1 }) }),
  ],
  [
    'ir_plane',
    '/policy/entry/eligibility/expr',
    ({ policy }) => void Object.assign(policy.entry ?? {}, { eligibility: ir({ type: 'Events.Exists', name: 'x' }) }),
  ],
  [
    'ir_plane',
    '/policy/entry/trigger/condition/expr',
    ({ policy }) =>
      void Object.assign(policy.entry ?? {}, {
        trigger: { type: 'event', eventName: 'x', condition: ir({ type: 'Subscription', op: 'active' }) },
      }),
  ],
  [
    'goal_window',
    '/policy/goal/attribution/window',
    ({ policy }) => {
      policy.goal = {
        criterion: { type: 'event', eventName: 'x' },
        attribution: { basis: 'entry', window: { amount: 91, unit: 'day' } },
      }
    },
  ],
  [
    'goal_mutable',
    '/policy/goal/criterion/condition/expr',
    ({ policy }) => {
      policy.goal = {
        criterion: { type: 'event', eventName: 'x', condition: ir(feature) },
        attribution: { basis: 'entry', window: { amount: 90, unit: 'day' } },
      }
    },
  ],
  [
    'exit_incomplete',
    '/policy/exitWhenAny/0',
    ({ policy }) => {
      policy.exitWhenAny = [{ type: 'goal_met' }]
    },
  ],
  [
    'exit_incomplete',
    '/policy/exitWhenAny/0',
    ({ policy }) => {
      policy.exitWhenAny = [{ type: 'eligibility_lost' }]
    },
  ],
  [
    'route_duplicate',
    '/graph/routes/1',
    ({ graph }) => {
      const route = { host: { kind: 'journey' }, eventName: 'e', to: 'bye' }
      graph.routes.push(route, route)
    },
  ],
  [
    'presents_without_screen',
    '/graph/steps/3/action',
    ({ graph }) =>
      void Object.assign(graph.steps[3] ?? {}, {
        action: { type: 'restore' },
        outlets: { restored: 'bye', failed: 'bye', noPurchases: 'bye' },
      }),
  ],
  [
    'reference_missing',
    '/policy/entry/trigger',
    ({ policy }) =>
      void Object.assign(policy.entry ?? {}, { trigger: { type: 'segment_enter', segmentId: 'seg_gone' } }),
  ],
  [
    'reference_missing',
    '/policy',
    ({ policy }) => void Object.assign(policy.entry ?? {}, { eligibility: ir({ ...feature, id: 'gone' }) }),
  ],
  [
    'experiment_variants',
    '/graph/steps/5/action',
    ({ graph }) => experiment(graph, 'xp_one', [{ id: 'a', isHoldout: true }]),
  ],
  [
    'experiment_state',
    '/graph/steps/5/action',
    ({ graph }) => experiment(graph, 'xp_old', [{ id: 'a', isHoldout: false }]),
  ],
  [
    'reference_missing',
    '/graph/steps/5/action',
    ({ graph }) => experiment(graph, 'xp_gone', [{ id: 'a', isHoldout: false }]),
  ],
  [
    'field_undeclared',
    '/graph/steps/2/action',
    (draft) => {
      draft.fields = {}
    },
  ],
  [
    'field_unsatisfied',
    '/graph/sections/again',
    ({ graph, fields }) => {
      Object.assign(fields.responses ?? {}, { why: { type: 'text', required: true } })
      Object.assign(graph.steps[3]?.action ?? {}, { payload: { why: { type: 'Response.Field', key: 'why' } } })
    },
  ],
  [
    'grant_untrusted',
    '/graph/steps/5',
    ({ graph }) => {
      Object.assign(graph.steps[2]?.outlets ?? {}, { next: 'gift' })
      graph.steps.push(grant('gift', 'again'))
    },
  ],
  [
    'value_unsafe',
    '/priority',
    (draft) => {
      draft.priority = 2 ** 53
    },
  ],
  [
    'value_unsafe',
    '/priority',
    (draft) => {
      draft.priority = -0
    },
  ],
  [
    'value_unsafe',
    '/metadata/name',
    (draft) => {
      draft.metadata.name = 'a\ud800'
    },
  ],
  [
    'W_always',
    '/graph/sections/again/entry',
    ({ graph }) => {
      graph.sections = { again: { entry: { type: 'always' } } }
    },
  ],
  [
    'W_grant_loop',
    '/graph/steps/5',
    ({ policy, graph }) => {
      policy.entry = { trigger: { type: 'api' }, frequency: { type: 'one_time' } }
      graph.entry = 'later'
      graph.steps = graph.steps.filter(({ id }) => id !== 'tell')
      graph.steps.push(server('paid', wait('server'), { matched: 'gift', timeout: 'again' }), grant('gift', 'later'))
      Object.assign(graph.steps[1]?.outlets ?? {}, { next: 'paid' })
    },
  ],
]

function experiment(graph: Draft['graph'], experimentId: string, variants: object[]): void {
  Object.assign(graph.steps[3]?.outlets ?? {}, { next: 'try' })
  graph.steps.push(device('try', { type: 'experiment', experimentId, variants, fallbackVariantId: 'a' }, { a: 'bye' }))
}

describe('every rule has its code and its place', () => {
  for (const [code, path, change] of cases) {
    test(`${code} at ${path === '' ? 'the root' : path}`, () => {
      assert.ok(found(change).includes(`${code} ${path}`), found(change).join('\n'))
    })
  }
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
  assert.deepEqual(found(nested(irDepthMax)), [])
  assert.equal(found(nested(irDepthMax + 1)).length, 1)
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
