import type { Sample } from './publish.ts'

/** Every action and every expression. */
export function offerLeg(): Sample {
  const actions: Sample[] = [
    { type: 'navigate', screenId: 's2', transition: { type: 'custom', transitionId: 't' } },
    { type: 'back', steps: 1, transition: { type: 'push' } },
    { type: 'delay', durationMs: 60_000 },
    { type: 'condition', branches: [{ id: 'b', condition: everyCondition() }] },
    {
      type: 'experiment',
      experimentId: 'xp',
      variants: [{ id: 'a', isHoldout: false }],
      fallbackVariantId: 'a',
    },
    {
      type: 'time_window',
      startTime: '22:00',
      endTime: '06:30',
      timezone: { kind: 'iana', identifier: 'Europe/Berlin' },
      daysOfWeek: [0, 6],
    },
    {
      type: 'wait_until',
      trigger: {
        kind: 'event',
        eventName: 'paid',
        payloadSchema: {
          type: 'object',
          fields: [
            { key: 'sum', type: 'number', required: true, min: 0, max: 10 },
            { key: 'way', type: 'string', required: false, enum: ['card', 'cash'] },
          ],
          additionalProperties: true,
        },
      },
      condition: { type: 'Truthy', value: { type: 'Event.Field', key: 'sum' } },
      maxTimeMs: 1000,
    },
    { type: 'purchase', placementId: 'pl_a' },
    { type: 'purchase', placementId: { literal: 'pl_g' } },
    { type: 'purchase', placementId: { ref: { kind: 'path', path: 'p', viewModelName: 'Main', isRelative: false } } },
    { type: 'restore' },
    { type: 'send_event', eventName: 'seen', payload: { every: everyValue() } },
    { type: 'app_action', name: 'open', payload: { to: { type: 'Null' } } },
    { type: 'update_customer', attributes: { plan: string('pro') } },
    { type: 'submit_response' },
    { type: 'request_notifications' },
    { type: 'request_tracking' },
    { type: 'request_permission', permissionType: 'camera' },
    { type: 'open_link', url: string('https://example.com'), target: 'in_app' },
    { type: 'dismiss', reason: 'done' },
    { type: 'exit', reason: 'left' },
    ...[
      { type: 'play' },
      { type: 'seek', seconds: 1.5 },
      { type: 'rate', rate: 2 },
      { type: 'volume', volume: 0.5 },
      { type: 'mute', muted: true },
      { type: 'loop', enabled: false },
    ].map((command) => ({ type: 'video', target: { artboardId: 'ab', viewNodeId: 'vn' }, command })),
  ]
  const steps = actions.map((action, index) => ({ kind: 'action', id: `s${index}`, action, outlets: { next: 'end' } }))
  const event = { type: 'event', eventName: 'open', condition: condition({ type: 'Bool', value: true }) }
  return {
    entryCondition: {
      type: 'segment',
      segmentId: 'seg_entry',
      member: true,
      condition: {
        ...condition({ type: 'Segment', op: 'is_member', id: 'seg_inner' }),
        engine_min: '1.4',
        compiled_at: 5,
      },
    },
    entryStepId: 's0',
    steps: [...steps, { kind: 'complete', id: 'end', outcome: 'done' }],
    routes: [
      { host: { kind: 'journey' }, eventName: 'host_dismissed', entryStepId: 'end' },
      { host: { kind: 'screen', screenId: 's1' }, eventName: '$offer_already_entitled', entryStepId: 'end' },
      { host: { kind: 'screen', screenId: 's1' }, eventName: '$offer_access_unknown', entryStepId: 's7' },
    ],
    screens: [
      { id: 's1', responseCaptures: ['age', 'name'], defaultViewModelName: 'Main', defaultInstanceId: 'i' },
      { id: 's2', responseCaptures: [] },
    ],
    offers: [{ screenId: 's1', placementIds: ['pl_a', 'pl_g'], alreadyEntitledStepId: 'end', unknownStepId: 's7' }],
    facts: { propertyKeys: ['country'], segmentIds: ['seg_entry', 'seg_inner'], experimentIds: ['xp'] },
    policy: {
      entry: {
        trigger: {
          type: 'server_event',
          connectorKey: 'c',
          triggerKey: 't',
          identityField: 'i',
          condition: event.condition,
        },
        frequency: { type: 'once_per_window', window: { amount: 2, unit: 'day' } },
        eligibility: condition({ type: 'Or', args: everyExpression() }),
      },
      goal: {
        criterion: { type: 'event', eventName: 'bought', condition: condition({ type: 'Journey.Id' }) },
        attribution: { basis: 'first_shown', window: { amount: 90, unit: 'day' } },
      },
      exitWhenAny: [
        { type: 'goal_met' },
        { type: 'eligibility_lost' },
        event,
        { type: 'segment_leave', segmentId: 'seg' },
      ],
    },
    inputs: everyField(),
    outputs: everyField().responseFields,
    completionOutputs: { done: everyField() },
  }
}

function everyField(): Sample {
  return {
    eventFields: [
      { key: 'n', type: 'number', required: false, min: 1, max: 2 },
      { key: 'b', type: 'boolean', required: false },
      { key: 's', type: 'string', required: false, enum: ['x', 'y'] },
      { key: 'z', type: 'null', required: false },
      { key: 'j', type: 'json', required: false },
    ],
    responseFields: [
      { key: 'n', type: 'number', required: false },
      { key: 'b', type: 'boolean', required: false },
      { key: 't', type: 'text', required: false },
      { key: 'd', type: 'date', required: false },
      { key: 'e', type: 'enum', required: false, options: ['x', 'y'] },
      { key: 'm', type: 'multi_enum', required: false, options: ['x', 'y'] },
    ],
  }
}

function everyValue(): Sample {
  return {
    type: 'Object',
    fields: {
      nothing: { type: 'Null' },
      flag: { type: 'Boolean', value: true },
      number: { type: 'Number', value: 1.5 },
      list: { type: 'Array', items: [string('a')] },
      event: { type: 'Event.Field', key: 'k' },
      customer: { type: 'Customer.Field', key: 'country' },
      answer: { type: 'Response.Field', key: 'k', form: 'contact' },
    },
  }
}

function everyCondition(): Sample {
  const truthy = { type: 'Truthy', value: string('a') }
  return {
    type: 'All',
    conditions: [
      truthy,
      { type: 'Compare', op: '<=', left: string('a'), right: string('b') },
      { type: 'Contains', collection: { type: 'Array', items: [] }, value: string('b') },
      { type: 'Any', conditions: [truthy] },
      { type: 'Not', condition: truthy },
    ],
  }
}

function everyExpression(): Sample[] {
  const day = { type: 'Duration', value: 86_400 }
  const where = { type: 'PredAnd', args: [{ type: 'Pred', op: 'eq', key: 'k', value: string('v') }] }
  const span = { since: { type: 'Timestamp', value: 0 }, until: { type: 'Time.Now' }, within: day, where }
  return [
    { type: 'Number', value: 1 },
    { type: 'List', value: [string('a')] },
    { type: 'And', args: [{ type: 'Not', arg: { type: 'Bool', value: false } }] },
    { type: 'PredAnd', args: [{ type: 'Pred', op: 'is_set', key: 'k' }] },
    { type: 'PredOr', args: [{ type: 'Event', op: 'has', key: 'k' }] },
    { type: 'Compare', op: 'in', left: string('a'), right: { type: 'List', value: [] } },
    { type: 'User', op: 'has', key: 'k', value: string('a') },
    { type: 'Segment', op: 'entered_within', id: 's', within: day },
    { type: 'Feature', op: 'credits_gte', id: 'f', value: { type: 'Number', value: 1 } },
    { type: 'Subscription', op: 'trialing' },
    { type: 'Events.Exists', name: '$app_opened', ...span },
    { type: 'Events.Count', name: 'e', ...span },
    { type: 'Events.Aggregate', name: 'e', agg: 'sum', prop: 'p', ...span },
    {
      type: 'Events.InOrder',
      steps: [{ name: 'e', where }],
      overallWithin: day,
      perStepWithin: day,
      since: day,
      until: day,
    },
    { type: 'Events.ActivePeriods', name: 'e', period: 'week', totalPeriods: 4, minPeriods: 2, where },
    { type: 'Events.FirstTime', name: 'e', where },
    { type: 'Events.LastTime', name: 'e', where },
    { type: 'Events.LastAge', name: 'e', where },
    { type: 'Events.Stopped', name: 'e', inactiveFor: day, where },
    { type: 'Events.Restarted', name: 'e', inactiveFor: day, within: day, where: { type: 'PredOr', args: [where] } },
    { type: 'Time.Ago', duration: day },
    { type: 'Time.Window', value: 1, interval: 'month' },
    { type: 'Response.Field', key: 'k' },
    { type: 'Response.Field', key: 'k', form: 'contact' },
  ]
}

const string = (value: string) => ({ type: 'String', value })
const condition = (expr: Sample) => ({ ir_version: 1, expr })
