import type { Sample } from './publish.ts'

const entryCondition = {
  type: 'event',
  eventName: 'signup_done',
  condition: {
    ir_version: 1,
    expr: { type: 'User', op: 'neq', key: 'plan', value: { type: 'String', value: 'pro' } },
  },
}
const source = [{ key: 'source', type: 'string', required: false }]

/** A leg without screens that splits customers and reports an event: the example by which clients were built. */
export function welcome(): Sample {
  return structuredClone({
    schemaVersion: 'service.journey-release.v3',
    identity: {
      appId: 'app_demo_ios',
      environment: 'test',
      experienceId: 'exp_welcome',
      experienceVersionId: 'ver_welcome_3',
      versionNumber: 3,
      buildId: 'bld_7',
      publishedAt: '2026-11-20T09:00:00.000Z',
      publishedAtSeq: 42,
    },
    metadata: { name: 'Welcome', appDefaultTimezone: 'Europe/Berlin' },
    presentation: { style: 'full_screen', orientation: 'portrait', backgroundColor: '#FFFFFFFF' },
    leg: {
      schemaVersion: 'service.experience-planes.v1',
      id: 'a7c1c45d173cb8a85aa149dbf38ca99cbd6e07149cfa5972168c43a21720a641',
      entryCondition,
      entryStepId: 'pick',
      steps: [
        {
          id: 'pick',
          kind: 'action',
          action: {
            type: 'experiment',
            experimentId: 'xp_hello',
            fallbackVariantId: 'a',
            variants: [
              { id: 'a', isHoldout: false },
              { id: 'h', isHoldout: true },
            ],
          },
          outlets: { a: 'tell', h: 'done' },
        },
        {
          id: 'tell',
          kind: 'action',
          action: {
            type: 'send_event',
            eventName: 'welcome_offered',
            payload: { campaign: { type: 'String', value: 'welcome' } },
          },
          outlets: { next: 'done' },
        },
        { id: 'done', kind: 'complete', outcome: 'continue' },
      ],
      routes: [],
      screens: [],
      offers: [],
      outputs: [],
      policy: {
        entry: { trigger: { type: 'event', eventName: 'signup_done' }, frequency: { type: 'one_time' } },
        exitWhenAny: [],
      },
      facts: { propertyKeys: ['plan'], segmentIds: [], experimentIds: ['xp_hello'] },
      inputs: { eventFields: source, responseFields: [] },
      completionOutputs: { continue: { eventFields: source, responseFields: [] } },
    },
    products: [],
    placements: [],
    viewModelValues: [],
    screenBehaviors: [],
    render: null,
    requirements: null,
    provenance: { compilerCommit: '0000000', compilerVersion: '0.1.0' },
    state: {},
    responses: {},
    ruleGroups: [],
  })
}

/** The section that follows: another leg of the same publication, run by journeys that go on. */
export function farewell(): Sample {
  const first = welcome()
  const leg = {
    ...first.leg,
    id: 'f'.repeat(64),
    entryCondition: { type: 'app_foregrounded' },
    entryStepId: 'bye',
    steps: [
      {
        id: 'bye',
        kind: 'action',
        action: { type: 'send_event', eventName: 'welcome_finished' },
        outlets: { next: 'end' },
      },
      { id: 'end', kind: 'complete', outcome: 'finished' },
    ],
    facts: { propertyKeys: [], segmentIds: [], experimentIds: [] },
    completionOutputs: { finished: { eventFields: [], responseFields: [] } },
  }
  return { ...first, leg }
}

/** With an aim, reached within a week of the journey's start. */
export function withGoal(descriptor: Sample, basis: 'entry' | 'first_shown' = 'entry'): Sample {
  const copy = structuredClone(descriptor)
  copy.leg.policy.goal = {
    criterion: { type: 'event', eventName: 'bought' },
    attribution: { basis, window: { amount: 1, unit: 'week' } },
  }
  return copy
}
