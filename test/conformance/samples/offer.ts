import { offerForms } from './offer-forms.ts'
import { offerLeg } from './offer-leg.ts'
import { digest, offerRender } from './offer-render.ts'
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
    leg: { ...base.leg, ...offerLeg() },
    products: products(),
    placements: [
      { id: 'pl_a', productId: 'prod_a', appStore: { introEligibility: 'automatic', billingPlan: 'default' } },
      { id: 'pl_g', productId: 'prod_g', googlePlay: { offerId: 'intro' } },
    ],
    viewModelValues: [{ viewModelName: 'Main', path: 'title', value: null, instanceId: 'i', instanceName: 'Main' }],
    screenBehaviors: screenBehaviors(),
    render: offerRender(),
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
    ...offerForms(),
  })
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
