import { type Content, fileOf } from '../../src/experiences/draft/content.ts'
import type { CatalogueProduct } from '../../src/experiences/draft/products.ts'
import type { References } from '../../src/experiences/draft/references.ts'
import { wireNames } from '../../src/kernel/wire-names.ts'
import { aDraft, device, server } from './a-draft.ts'

/** A digest that stands for a file. */
export const digest = (index: number) => index.toString(16).padStart(2, '0').repeat(32)
export const scene = 'application/vnd.service.scene'
const binary = 'application/octet-stream'

export const runtime = {
  minimum_sdk_version: '2.1.0-beta.2',
  runtime_revision: 'r1',
  luau: { revision: 'l1', bytecode_versions: [5, 6] },
  scene_format: { major: 1, minor: 2 },
  timezone_data: { format: 'iana-tzdb' as const, revision: '2026a', sha256: digest(9) },
  capabilities: ['ser', 'system-fonts', 'video.playback.v1'],
}

/** What an exporter makes of the screens of `aScreenDraft`, with every kind of asset. */
export function aManifest(sceneIndex = 1) {
  const screen = { artboardId: 'ab', artboardName: 'Main', width: 390, height: 844.5 }
  const side = { completeEventName: 'gone' }
  const stored = (index: number, contentType: string) => {
    return { sha256: digest(index), sizeBytes: 7, contentType, required: true }
  }
  const named = (index: number) => ({ authoredAssetId: index, assetUniqueName: `asset-${index}` })
  const tracks = [{ streamIndex: 2, codec: 'mov_text', language: 'en', title: null }]
  return {
    scene: { sha256: digest(sceneIndex), sizeBytes: 5 },
    screens: [
      { id: 'offer', ...screen, exit: { completeEventName: 'out', durationMs: 300 } },
      { id: 'thanks', ...screen, artboardId: 'other' },
    ],
    transitions: [
      {
        ...{ id: 't', kind: 'choreographed', sourceScreenId: 'offer', destinationScreenId: 'thanks', durationMs: 300 },
        ...{ incomingOnTop: true, source: side, destination: side, reverse: { source: side, destination: side } },
      },
    ],
    assets: [
      { kind: 'shader', ...stored(15, binary) },
      { kind: 'image', ...stored(11, 'image/png'), ...named(1), width: 10, height: 20 },
      {
        ...{ kind: 'font', location: 'cdn', ...stored(12, 'font/ttf'), ...named(2), family: 'Inter', weight: '400' },
        ...{ style: 'normal', format: 'ttf' },
      },
      {
        ...{ kind: 'video', ...stored(13, 'video/mp4'), ...named(3), sourceAssetKey: 'asset:intro', width: 1280 },
        ...{ height: 720, durationMs: 4000, videoCodec: 'avc1.64001f', audioCodec: 'mp4a.40.2', captionTracks: tracks },
      },
      { kind: 'script', ...stored(14, binary) },
      {
        ...{ kind: 'font', location: 'system', ...named(4), family: 'System', weight: '600', style: 'normal' },
        required: true,
      },
    ] as Record<string, unknown>[],
    videoElements: [
      {
        ...{ artboardId: 'ab', viewNodeId: 'vn', renderedNodeId: 'rn', componentId: 4, readinessTimeoutSeconds: 5 },
        optional: false,
      },
    ],
  }
}

export type Manifest = ReturnType<typeof aManifest>

interface AuthoredScreen {
  id: string
  responseCaptures?: string[]
  defaultViewModelName?: string
  offer?: { placementIds: string[]; onAlreadyEntitled: string | null; onAccessUnknown: string | null }
}

/** A paywall and what follows it: two screens, an offer, a script, a form, answers that the server reads later. */
export function aScreenDraft() {
  const draft = aDraft()
  const field = (key: string) => ({ type: 'Response.Field', key })
  draft.graph.entry = 'show'
  draft.graph.steps = [
    device('show', { type: 'navigate', screenId: 'offer', transition: { type: 'none' } }),
    device(
      'buy',
      { type: 'purchase', placementId: 'main' },
      { completed: 'thank', failed: 'show', cancelled: 'later' },
    ),
    device('thank', { type: 'navigate', screenId: 'thanks', transition: { type: 'custom', transitionId: 't' } }),
    device('bye', { type: 'exit', reason: 'seen' }),
    server(
      'later',
      {
        type: 'emit_event',
        eventName: 'asked',
        properties: { why: field('why'), from: { type: 'Event.Field', key: 'source' } },
      },
      { next: 'again' },
    ),
    device('again', { type: 'app_action', name: 'remind', payload: { why: field('why') } }, { next: null }),
  ]
  draft.graph.routes = [
    { host: { kind: 'screen', screenId: 'offer' }, eventName: 'buy_tapped', to: 'buy' },
    { host: { kind: 'screen', screenId: 'thanks' }, eventName: 'done', to: 'bye' },
    { host: { kind: 'journey' }, eventName: 'host_dismissed', to: 'later' },
  ]
  const rule = {
    ...{ model: 'Responses:contact', property: 'name', kind: 10, mode: 0, code: 'required', message: 'Who are you?' },
    ...{
      number_bound: 0,
      text: '',
      values: [],
      value_count: 0,
      picked_property: '',
      bound_flags: 0,
      minimum: 0,
      maximum: 0,
    },
  }
  const member = {
    ...{ property: 'name', errors_path: 'errors/name', item_model: 'ResponseError', code_property: 'rule' },
    message_property: 'message',
  }
  const fields = [{ key: 'name', label: 'Name', type: 'string', rules: [rule] }]
  const program = [
    { type: 'emit', eventName: 'buy_tapped', payload: { how: { source: 'literal', value: null } } },
    { type: 'response_set', field: 'why', value: { source: 'invocation_value' } },
  ]
  const screens: AuthoredScreen[] = [
    {
      ...{ id: 'offer', responseCaptures: ['why', 'mood'], defaultViewModelName: 'Main' },
      offer: { placementIds: ['main'], onAlreadyEntitled: 'bye', onAccessUnknown: null },
    },
    { id: 'thanks' },
  ]
  return structuredClone({
    ...draft,
    screens,
    placements: [
      {
        ...{ id: 'main', productId: 'pro', googlePlay: { offerId: 'intro' } },
        appStore: { introEligibility: 'automatic', billingPlan: 'default' },
      },
    ],
    render: { en: { manifest: `sha256:${digest(1)}` }, de: { manifest: `sha256:${digest(2)}` } } as Record<
      string,
      object
    >,
    viewModelValues: [{ viewModelName: 'Main', path: 'title', value: null }],
    screenBehaviors: [
      {
        screenId: 'offer',
        controls: [
          { actionId: 'tap', behavior: { kind: 'declarative', program } },
          { actionId: 'own', behavior: { kind: 'script' } },
        ],
        script: `sha256:${digest(20)}`,
      },
    ],
    state: { count: { type: 'number' }, rows: { type: 'list', items: { label: { type: 'string' } } } },
    responseForms: { contact: { title: 'Contact', model: 'Responses:contact', fields } },
    ruleGroups: [{ model: 'Responses:contact', valid: 'valid', member_count: 1, members: [member] }],
  })
}

export type ScreenDraft = ReturnType<typeof aScreenDraft>

export function aProduct(): CatalogueProduct {
  const link = { purchaseOptionId: null, offerId: null }
  return {
    ...{ id: 'prod_1', type: 'subscription', isConsumable: false },
    stores: [
      { ...link, store: 'appstore', productId: 'pro.yearly', basePlanId: null },
      { ...link, store: 'playstore', productId: 'pro', basePlanId: 'yearly' },
    ],
    preview: {
      ...{
        name: 'Pro',
        description: 'All of it',
        price: '9.99',
        period: 'year',
        periodLabel: 'a year',
        periodCount: 1,
      },
      ...{ hasTrial: false, trialLabel: '—', introOfferLabel: '—', renewalLabel: '—' },
    },
    entitlements: [
      {
        ...{ id: 'prod_1.a', featureId: 'pro', featureExternalId: 'pro', purchaseUsageFeatureIds: [] },
        ...{ allowanceType: null, allowance: null, interval: null },
      },
    ],
  }
}

/** All that `aScreenDraft` stands on: its two manifests differ by their scenes. */
export function aContent(changes: Partial<Content> = {}): Content {
  const files = new Map([
    ...[1, 3].map((index) => [fileOf(digest(index), scene), 5] as const),
    ...[14, 15].map((index) => [fileOf(digest(index), binary), 7] as const),
    [fileOf(digest(20), binary), 9],
    [fileOf(digest(11), 'image/png'), 7],
    [fileOf(digest(12), 'font/ttf'), 7],
    [fileOf(digest(13), 'video/mp4'), 7],
  ])
  return {
    names: wireNames('service'),
    manifests: new Map<string, unknown>([
      [digest(1), aManifest(1)],
      [digest(2), aManifest(3)],
    ]),
    files,
    products: new Map([['pro', aProduct()]]),
    clientRuntime: runtime,
    sentPreviews: new Map(),
    ...changes,
  }
}

export function knownWith(content: Content = aContent()): References & { content: Content; deliverAlways: boolean } {
  return { segments: new Set(), features: new Set(['pro']), experiments: new Map(), deliverAlways: false, content }
}
