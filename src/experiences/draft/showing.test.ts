import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { server } from '../../../test/harness/a-draft.ts'
import {
  aContent,
  aManifest,
  aProduct,
  aScreenDraft,
  digest,
  knownWith,
  type Manifest,
  runtime,
  type ScreenDraft,
} from '../../../test/harness/a-screen-draft.ts'
import { must } from '../../kernel/assert.ts'
import { type Content, fileOf } from './content.ts'
import { validateDraft } from './validate.ts'

/** `code path: message` of all that is found after a change. */
function found(change: (draft: ScreenDraft) => void, content: Content = aContent()): string[] {
  const draft = aScreenDraft()
  change(draft)
  const { issues, warnings } = validateDraft(draft, knownWith(content)).findings
  return [...issues, ...warnings].map(({ code, path, message }) => `${code} ${path}: ${message}`)
}

const nothing = () => {}
const step = (draft: ScreenDraft, n: number) => must(draft.graph.steps[n], 'there is one')
const set = (target: object | undefined, values: object) => void Object.assign(target ?? {}, values)
const without = (content: Content, key: 'manifests' | 'files', gone: string) => {
  return { ...content, [key]: new Map([...content[key]].filter(([name]) => name !== gone)) }
}
const withManifest = (change: (manifest: Manifest) => void) => {
  const manifest = aManifest(3)
  change(manifest)
  const { manifests } = aContent()
  return aContent({ manifests: new Map([...manifests, [digest(2), manifest]]) })
}

test('a draft with screens, an offer, a form, a script and every kind of asset is sound', () => {
  assert.deepEqual(found(nothing), [])
})

const cases: [finding: string, change: (draft: ScreenDraft) => void, content?: Content][] = [
  [
    'screen_unrendered /render/de/manifest: Screen "thanks" is missing from the de manifest.',
    nothing,
    withManifest((manifest) => {
      manifest.screens.pop()
      manifest.transitions.pop()
    }),
  ],
  [
    'locale_incomplete /render: Locale "de" has no manifest.',
    ({ render }) => void Reflect.deleteProperty(render, 'de'),
  ],
  [
    'locale_incomplete /render/de/manifest: Locale "de" has no transition "t".',
    nothing,
    withManifest((manifest) => void manifest.transitions.pop()),
  ],
  [
    `artefact_missing /render/de/manifest: sha256:${digest(2)} has not been uploaded.`,
    nothing,
    without(aContent(), 'manifests', digest(2)),
  ],
  [
    `artefact_missing /render/en/manifest: sha256:${digest(11)} has not been uploaded.`,
    nothing,
    without(aContent(), 'files', fileOf(digest(11), 'image/png')),
  ],
  [
    `artefact_missing /screenBehaviors/0/script: sha256:${digest(20)} has not been uploaded.`,
    nothing,
    without(aContent(), 'files', fileOf(digest(20), 'application/octet-stream')),
  ],
  [
    'requirements_missing /graph/steps/0: Section "show" presents screens, but the project has no client runtime setting.',
    nothing,
    aContent({ clientRuntime: null }),
  ],
  [
    'capability_missing /graph/steps/0: "show" needs capability "ser", which the client runtime setting lacks.',
    nothing,
    aContent({ clientRuntime: { ...runtime, capabilities: ['system-fonts', 'video.playback.v1'] } }),
  ],
  [
    'capability_missing /graph/steps/0: "show" needs capability "video.playback.v1", which the client runtime setting lacks.',
    nothing,
    aContent({ clientRuntime: { ...runtime, capabilities: ['ser', 'system-fonts'] } }),
  ],
  [
    'presents_without_screen /graph/steps/5/action: Step "again" (restore) presents, but its section has no screen.',
    (draft) =>
      set(step(draft, 5), {
        action: { type: 'restore' },
        outlets: { restored: null, failed: null, noPurchases: null },
      }),
  ],
  [
    'placement_missing /graph/steps/1/action/placementId: Step "buy" sells placement "gone", which is not declared.',
    (draft) => set(step(draft, 1).action, { placementId: { literal: 'gone' } }),
  ],
  [
    'placement_missing /screens/0/offer/placementIds/0: Screen "offer" sells placement "gone", which is not declared.',
    ({ screens }) => set(screens[0]?.offer, { placementIds: ['gone'] }),
  ],
  [
    'product_not_mapped /placements/0/productId: Product "pro" has no android store product, but the Experience targets android.',
    nothing,
    aContent({ products: new Map([['pro', { ...aProduct(), stores: aProduct().stores.slice(0, 1) }]]) }),
  ],
  [
    'product_not_mapped /placements/0/productId: Product "pro" has no web store product, but the Experience targets web.',
    (draft) => void draft.platforms.push('web'),
  ],
  [
    'reference_missing /placements/0/productId: Product "gone" does not exist in this project and environment.',
    ({ placements }) => set(placements[0], { productId: 'gone' }),
  ],
  [
    'route_dismiss /graph/routes/2: host_dismissed may not lead to the presenting step "thank".',
    ({ graph }) => set(graph.routes[2], { to: 'thank' }),
  ],
  [
    'route_duplicate /graph/routes/3: Host screen "offer" handles "buy_tapped" twice.',
    ({ graph }) =>
      void graph.routes.push({ host: { kind: 'screen', screenId: 'offer' }, eventName: 'buy_tapped', to: 'bye' }),
  ],
  [
    'route_duplicate /graph/routes/3: Host screen "offer" handles "$offer_access_unknown" twice.',
    ({ graph }) =>
      void graph.routes.push({
        host: { kind: 'screen', screenId: 'offer' },
        eventName: '$offer_access_unknown',
        to: 'bye',
      }),
  ],
  [
    'target_missing /graph/routes/1/host: The route of "done" points to screen "gone", which does not exist.',
    ({ graph }) => set(graph.routes[1], { host: { kind: 'screen', screenId: 'gone' } }),
  ],
  [
    'target_missing /graph/steps/2/action/screenId: Step "thank" points to screen "gone", which does not exist.',
    (draft) => set(step(draft, 2).action, { screenId: 'gone' }),
  ],
  [
    'target_missing /screens/0/offer/onAlreadyEntitled: onAlreadyEntitled of screen "offer" points to step "gone", which does not exist.',
    ({ screens }) => set(screens[0]?.offer, { onAlreadyEntitled: 'gone' }),
  ],
  [
    'W_preview_outdated /placements/0/productId: Store texts of "pro" changed; publish again to show them.',
    nothing,
    aContent({ sentPreviews: new Map([['prod_1', JSON.stringify({ ...aProduct().preview, price: '8.99' })]]) }),
  ],
  [
    'id_duplicate /screens/2/id: Screen id "offer" is used twice; first at /screens/0.',
    ({ screens }) => void screens.push(must(screens[0], 'there is one')),
  ],
  [
    'value_invalid /screenBehaviors/0: There is a script exactly when a control is of the kind "script".',
    ({ screenBehaviors }) => void Reflect.deleteProperty(screenBehaviors[0] ?? {}, 'script'),
  ],
  [
    'value_invalid /render/de/manifest: In the manifest, /screens/0/width: This must be a number above 0, at most 16384.',
    nothing,
    withManifest(({ screens }) => set(screens[0], { width: 0 })),
  ],
  [
    `value_invalid /render/de/manifest: In the manifest, sha256:${digest(11)} has 8 bytes; it has 7.`,
    nothing,
    withManifest(({ assets }) => set(assets[1], { sizeBytes: 8 })),
  ],
  [
    'value_invalid /render/de/manifest: Equal bytes can be one file only: a scene, an asset of one type, or a script.',
    ({ screenBehaviors }) => set(screenBehaviors[0], { script: `sha256:${digest(14)}` }),
  ],
  ['value_invalid /render/fr: "fr" is not one of the locales.', ({ render }) => set(render, { fr: render.en ?? {} })],
  [
    'value_invalid /responseForms/contact/fields/0/rules/0: There is no rule of kind 1, mode 0 and code "min" for this field.',
    ({ responseForms }) => set(responseForms.contact.fields[0]?.rules[0], { kind: 1, code: 'min' }),
  ],
  ['value_invalid /ruleGroups: There is one group for each form.', (draft) => set(draft, { ruleGroups: [] })],
  [
    'field_undeclared /graph/steps/5/action: "again" reads field "contact.age", which is not declared.',
    (draft) => set(step(draft, 5).action, { payload: { a: { type: 'Response.Field', key: 'age', form: 'contact' } } }),
  ],
  [
    'field_type /graph/steps/5/action: "again" reads field "source" as number; declared as string.',
    (draft) => {
      const [left, right] = [
        { type: 'Event.Field', key: 'source' },
        { type: 'Number', value: 1 },
      ]
      const branches = [{ id: 'yes', condition: { type: 'Compare', op: '==', left, right } }]
      set(step(draft, 5), { action: { type: 'condition', branches }, outlets: { yes: null, default: null } })
    },
  ],
  [
    'field_type /graph/steps/4/action: "later" reads field "rich" as text or number; declared as boolean.',
    (draft) => {
      set(draft.fields.event, { rich: { type: 'boolean', required: false } })
      set(step(draft, 4), server('later', { type: 'delay', until: { field: 'event.rich' } }, { next: 'again' }))
    },
  ],
]

describe('every rule about screens has its code, its place and its words', () => {
  for (const [finding, change, content] of cases) {
    test(finding, () => {
      const all = found(change, content)
      assert.ok(all.includes(finding), all.join('\n'))
    })
  }
})

test('a field may be compared with what it is, and with nothing', () => {
  const compare = (right: object) =>
    found((draft) => {
      const condition = { type: 'Compare', op: '!=', left: { type: 'Event.Field', key: 'source' }, right }
      set(step(draft, 5), {
        ...{
          action: { type: 'condition', branches: [{ id: 'yes', condition }] },
          outlets: { yes: null, default: null },
        },
      })
    })
  assert.deepEqual(compare({ type: 'String', value: 'ads' }), [])
  assert.deepEqual(compare({ type: 'Null' }), [])
  assert.deepEqual(compare({ type: 'Response.Field', key: 'why' }), [])
})

test('an answer that a screen of the same section asks for need not be there before', () => {
  const required = ({ fields }: ScreenDraft) => set(fields.responses, { why: { type: 'text', required: true } })
  const readAtOnce = (draft: ScreenDraft) => {
    required(draft)
    draft.graph.routes.push({ host: { kind: 'screen', screenId: 'offer' }, eventName: 'told', to: 'tell' })
    draft.graph.steps.push({
      ...{ id: 'tell', plane: 'device', outlets: { next: null } },
      action: { type: 'app_action', name: 'told', payload: { why: { type: 'Response.Field', key: 'why' } } },
    })
  }
  assert.deepEqual(found(readAtOnce), [])
  // The section after it, which has no screen, gets it from the first one, unless that broke off.
  assert.deepEqual(found(required), [])
  const abandoned = (draft: ScreenDraft) => {
    required(draft)
    draft.graph.sections = { show: { outcomes: { abandoned: 'again' } } }
  }
  assert.deepEqual(found(abandoned), [
    'field_unsatisfied /graph/sections/again: Section "again" requires "responses.why", and a path reaches it without producing it; the device would refuse the leg silently.',
  ])
})

test('without screens nothing of all this is asked for', () => {
  const bare = (draft: ScreenDraft) => {
    draft.graph.steps = draft.graph.steps.slice(4)
    draft.graph.routes = []
    draft.graph.entry = 'later'
    draft.screens = []
    draft.placements = []
    draft.screenBehaviors = []
    draft.render = {}
  }
  assert.deepEqual(found(bare, aContent({ clientRuntime: null, manifests: new Map(), files: new Map() })), [])
})
