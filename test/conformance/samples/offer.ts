import type { Sample } from './publish.ts'
import { welcome } from './welcome.ts'

/** A leg in which every part of a descriptor occurs: screens, shops, scripts, forms, every action and every expression. */
export function offer(): Sample {
  const base = welcome()
  base.identity.experienceId = 'exp_offer'
  base.metadata = { ...base.metadata, experienceType: 'paywall', description: 'An offer.' }
  base.presentation = {
    style: 'drawer',
    orientation: 'any',
    backgroundColor: '#00000080',
    drawer: { edge: 'bottom', extentRatio: 0.5, cornerRadius: 12, dismissible: true },
  }
  return structuredClone({
    ...base,
    leg: { ...base.leg, ...leg() },
    products: products(),
    placements: [
      { id: 'pl_a', productId: 'prod_a', appStore: { introEligibility: 'automatic', billingPlan: 'default' } },
      { id: 'pl_g', productId: 'prod_g', googlePlay: { offerId: 'intro' } },
    ],
    viewModelValues: [{ viewModelName: 'Main', path: 'title', value: null, instanceId: 'i', instanceName: 'Main' }],
    screenBehaviors: screenBehaviors(),
    render: render(),
    requirements: {
      minimumSdkVersion: '2.1.0-beta.2',
      runtimeRevision: 'r1',
      luau: { revision: 'l1', bytecodeVersions: [5, 6] },
      sceneFormat: { major: 1, minor: 2 },
      timezoneData: { format: 'iana-tzdb', revision: '2026a', sha256: digest(9) },
      requiredCapabilities: ['ser', 'system-fonts', 'video.playback.v1'],
    },
    state: {
      text: { type: 'string' },
      count: { type: 'number' },
      on: { type: 'boolean' },
      tint: { type: 'color' },
      day: { type: 'date' },
      go: { type: 'trigger' },
      face: { type: 'image' },
      size: { type: 'enum', values: ['s', 'm'], multiple: true },
      rows: { type: 'list', items: { label: { type: 'string' } } },
    },
    ...forms(),
  })
}

const digest = (index: number) => index.toString(16).repeat(64).slice(0, 64)
const string = (value: string) => ({ type: 'String', value })
const condition = (expr: Sample) => ({ ir_version: 1, expr })

function leg(): Sample {
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

function products(): Sample[] {
  const preview = {
    name: 'Pro',
    description: 'All of it',
    price: '9.99',
    period: 'month',
    periodLabel: 'a month',
    trialLabel: 'no trial',
    introOfferLabel: 'none',
    renewalLabel: 'monthly',
    periodCount: 1,
    hasTrial: false,
  }
  const entitlement = {
    id: 'ent',
    featureId: 'feat',
    featureExternalId: 'pro',
    purchaseUsageFeatureIds: ['a', 'b'],
    allowanceType: 'fixed',
    allowance: 5,
    interval: 'month',
  }
  const play = { platform: 'google_play', productId: 'pro', productType: 'subscription', basePlanId: 'monthly' }
  const coins = { platform: 'google_play', productId: 'coins', productType: 'consumable', purchaseOptionId: 'o' }
  const apple = { platform: 'apple_app_store', productId: 'pro', productType: 'autoRenewable' }
  return [
    { id: 'prod_a', type: 'subscription', store: apple, preview, entitlements: [entitlement] },
    { id: 'prod_c', type: 'consumable', store: coins, preview, entitlements: [] },
    { id: 'prod_g', type: 'subscription', store: play, preview, entitlements: [] },
  ]
}

function screenBehaviors(): Sample[] {
  const program = [
    {
      type: 'emit',
      eventName: 'tapped',
      payload: {
        a: { source: 'literal', value: null },
        b: { source: 'invocation_value' },
        c: { source: 'instance_id' },
      },
    },
    { type: 'response_set', field: 'age', value: { source: 'component_id' } },
    { type: 'response_unset', field: 'age' },
  ]
  const key = `screen-behavior/sha256/${digest(1)}.bin`
  const artifact = { key, sha256: digest(1), sizeBytes: 10, contentType: 'application/octet-stream' }
  return [
    {
      screenId: 's1',
      controls: [
        { actionId: 'a', behavior: { kind: 'declarative', program } },
        { actionId: 'b', behavior: { kind: 'script' } },
      ],
      script: { protocol: 'screen-actions', artifact, exportedActionIds: ['b'] },
    },
    { screenId: 's2', controls: [] },
  ]
}

function render(): Sample {
  const scene = {
    key: `renders/sha256/${digest(2)}.ser`,
    sha256: digest(2),
    sizeBytes: 5,
    contentType: 'application/vnd.service.scene',
  }
  const stored = (index: number, extension: string, contentType: string) => {
    const key = `assets/sha256/${digest(index)}.${extension}`
    return { key, sha256: digest(index), sizeBytes: 7, contentType, required: true }
  }
  const named = (index: number) => ({ authoredAssetId: index, assetUniqueName: `asset-${index}` })
  const screen = { artboardId: 'ab', artboardName: 'Main', width: 390, height: 844.5 }
  const side = { completeEventName: 'gone' }
  return {
    renderer: 'ser',
    ser: scene,
    screens: [
      { id: 's1', ...screen, exit: { completeEventName: 'out', durationMs: 300 } },
      { id: 's2', ...screen },
    ],
    transitions: [
      {
        id: 't',
        kind: 'choreographed',
        sourceScreenId: 's1',
        destinationScreenId: 's2',
        durationMs: 300,
        incomingOnTop: true,
        source: side,
        destination: side,
        reverse: { source: side, destination: side, durationMs: 200, incomingOnTop: false },
      },
    ],
    textInputs: [],
    assets: [
      { kind: 'image', ...stored(3, 'png', 'image/png'), ...named(1), width: 10, height: 20 },
      {
        kind: 'font',
        location: 'cdn',
        ...stored(4, 'ttf', 'font/ttf'),
        ...named(2),
        family: 'Inter',
        weight: '400',
        style: 'normal',
        format: 'ttf',
      },
      {
        kind: 'video',
        ...stored(5, 'mp4', 'video/mp4'),
        ...named(3),
        sourceAssetKey: 'asset:intro',
        width: 1280,
        height: 720,
        durationMs: 4000,
        videoCodec: 'avc1.64001f',
        audioCodec: 'mp4a.40.2',
        captionTracks: [{ streamIndex: 2, codec: 'mov_text', language: 'en', title: 'English' }],
      },
      { kind: 'script', ...stored(6, 'bin', 'application/octet-stream') },
      { kind: 'shader', ...stored(7, 'bin', 'application/octet-stream') },
      {
        kind: 'font',
        location: 'system',
        ...named(4),
        family: 'System',
        weight: '600',
        style: 'normal',
        required: true,
      },
    ],
    videoElements: [
      {
        artboardId: 'ab',
        viewNodeId: 'vn',
        renderedNodeId: 'rn',
        componentId: 4,
        readinessTimeoutSeconds: 5,
        optional: false,
      },
    ],
  }
}

function forms(): Sample {
  const unused = {
    number_bound: 0,
    text: '',
    values: [],
    value_count: 0,
    picked_property: '',
    bound_flags: 0,
    minimum: 0,
    maximum: 0,
  }
  const rule = (property: string, kind: number, mode: number, code: string, more: Sample = {}) => {
    return { model: 'Responses:contact', property, kind, mode, code, message: 'No.', ...unused, ...more }
  }
  const picked = { picked_property: 'picked' }
  const fields = [
    {
      key: 'age',
      label: 'Age',
      type: 'number',
      rules: [rule('age', 1, 0, 'min', { number_bound: 1 }), rule('age', 2, 1, 'max', { number_bound: 99.5 })],
    },
    {
      key: 'day',
      label: '',
      type: 'date',
      rules: [
        rule('day', 3, 0, 'min', { text: '2026-01-01' }),
        rule('day', 4, 1, 'max', { text: '2027-01-01' }),
        rule('day', 12, 0, 'date'),
      ],
    },
    {
      key: 'likes',
      label: 'Likes',
      type: 'enum',
      values: ['x', 'y'],
      multiple: true,
      rules: [
        rule('likes', 5, 1, 'values', { values: ['x', 'y'], value_count: 2 }),
        rule('likes', 7, 0, 'minItems', { bound_flags: 1, minimum: 1, ...picked }),
        rule('likes', 7, 1, 'maxItems', { bound_flags: 2, maximum: 2, ...picked }),
      ],
    },
    {
      key: 'name',
      label: 'Name',
      type: 'string',
      rules: [
        rule('name', 8, 0, 'minLength', { bound_flags: 1, minimum: 2 }),
        rule('name', 8, 1, 'maxLength', { bound_flags: 2, maximum: 20 }),
        rule('name', 9, 0, 'pattern', { text: '^a' }),
        rule('name', 11, 0, 'format'),
        rule('name', 10, 0, 'required'),
      ],
    },
    { key: 'ok', label: 'OK', type: 'boolean', rules: [] },
  ]
  const members = fields.map(({ key }) => {
    const paths = { property: key, errors_path: `errors/${key}` }
    return { ...paths, item_model: 'ResponseError', code_property: 'rule', message_property: 'message' }
  })
  return {
    responses: { contact: { title: 'Contact', model: 'Responses:contact', fields } },
    ruleGroups: [{ model: 'Responses:contact', valid: 'valid', member_count: members.length, members }],
  }
}
