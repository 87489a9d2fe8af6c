import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { device, server } from '../../../test/harness/a-draft.ts'
import { type Draft, experiment, feature, found, grant, ir, wait } from '../../../test/harness/found-in-draft.ts'
import { draftStepsMax } from '../../kernel/limits.ts'

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
  ['value_invalid', '/screens/0', (draft) => void Object.assign(draft, { screens: [{ name: 'offer' }] })],
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
    '/policy/entry/eligibility',
    ({ policy }) => void Object.assign(policy.entry ?? {}, { eligibility: ir({ type: 'Events.InOrder', steps: [] }) }),
  ],
  [
    'ir_plane',
    '/policy/exitWhenAny/0/condition/expr',
    ({ policy }) => {
      const condition = ir({ type: 'Events.Exists', name: 'x' })
      policy.exitWhenAny = [{ type: 'event', eventName: 'x', condition }]
    },
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

describe('every rule has its code and its place', () => {
  for (const [code, path, change] of cases) {
    test(`${code} at ${path === '' ? 'the root' : path}`, () => {
      assert.ok(found(change).includes(`${code} ${path}`), found(change).join('\n'))
    })
  }
})
