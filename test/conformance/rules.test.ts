import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Mode, Problem } from './check.ts'
import { descriptor } from './descriptor.ts'
import { offer } from './samples/offer.ts'
import { altered, type Sample } from './samples/publish.ts'
import { welcome } from './samples/welcome.ts'

const rulesOf = (value: Sample, mode: Mode = 'clients'): string[] => {
  const found: Problem[] = []
  descriptor(value, { path: '$', found, namespace: 'service', mode })
  return found.map(({ path, rule }) => `${path} ${rule}`)
}

/** What is changed, and where the problem is said to be. */
type Breach = [title: string, path: string, to: Sample, at?: string]

const push =
  (...more: Sample[]) =>
  (all: Sample[]) => [...all, ...more]
const swapped = ([first, second, ...rest]: Sample[]) => [second, first, ...rest]
const expression = 'leg.policy.entry.eligibility.expr.args.0'

const breaches: Breach[] = [
  ['a leg of another schema', 'leg.schemaVersion', 'acme.experience-planes.v1'],
  ['an entry step that is none', 'leg.entryStepId', 'gone'],
  ['an outlet to nowhere', 'leg.steps.0.outlets.next', 'gone', 'leg.steps[0].outlets.next'],
  ['a step id twice', 'leg.steps.1.id', 's0', 'leg.steps'],
  ['a screen id twice', 'leg.screens.1.id', 's1', 'leg.screens'],
  ['a step to a screen that is not there', 'leg.steps.0.action.screenId', 's3', 'leg.steps[0].action.screenId'],
  ['a route twice', 'leg.routes', push({ host: { kind: 'journey' }, eventName: 'host_dismissed', entryStepId: 'end' })],
  ['a route to nowhere', 'leg.routes.0.entryStepId', 'gone', 'leg.routes[0].entryStepId'],
  ['a route of an unknown screen', 'leg.routes.1.host.screenId', 's9', 'leg.routes[1].host'],
  ['a dismissed host that leads to something to show', 'leg.routes.0.entryStepId', 's19', 'leg.routes[0]'],
  ['an offer without its routes', 'leg.offers.0.unknownStepId', 'end', 'leg.offers[0].unknownStepId'],
  ['an offer of access held without its route', 'leg.offers.0.alreadyEntitledStepId', 's7'],
  ['two offers on a screen', 'leg.offers', (all: Sample[]) => [...all, ...all], 'leg.offers'],
  ['an offer of nothing', 'leg.offers.0.placementIds', [], 'leg.offers[0].placementIds'],
  ['an offer of an unknown placement', 'leg.offers.0.placementIds.0', 'gone'],
  ['a purchase of an unknown placement', 'leg.steps.7.action.placementId', 'gone'],
  ['a purchase of an unknown literal', 'leg.steps.8.action.placementId.literal', 'gone'],
  ['a fact more', 'leg.facts.propertyKeys', ['country', 'plan'], 'leg.facts'],
  ['a fact less', 'leg.facts.segmentIds', ['seg_entry'], 'leg.facts'],
  ['facts out of order', 'leg.facts.segmentIds', swapped, 'leg.facts.segmentIds'],
  ['a fallback that is no variant', 'leg.steps.4.action.fallbackVariantId', 'z'],
  ['a variant twice', 'leg.steps.4.action.variants', (all: Sample[]) => [...all, ...all]],
  ['a milestone', 'leg.steps.0.action', { type: 'milestone', milestoneId: 'm' }, 'leg.steps[0].action.type'],
  ['a link to a number', 'leg.steps.18.action.url', { type: 'Number', value: 1 }, 'leg.steps[18].action.url'],
  ['payload fields out of order', 'leg.steps.6.action.trigger.payloadSchema.fields', swapped],
  ['an input twice', 'leg.inputs.eventFields', (all: Sample[]) => [...all, all[0]], 'leg.inputs.eventFields'],
  ['a least above the most', 'leg.inputs.eventFields.0.max', 0.5],
  ['a time that asks for history in a leg', 'leg.entryCondition.condition.expr.op', 'entered_within'],
  ['the journey asked for outside a goal', 'leg.entryCondition.condition.expr', { type: 'Journey.Id' }],
  ['a property asked for in a goal', 'leg.policy.goal.criterion.condition.expr', { type: 'User', op: 'has', key: 'k' }],
  ['an exit by a goal that is not there', 'leg.policy.goal', undefined, 'leg.policy.exitWhenAny'],
  ['an exit by eligibility that is not there', 'leg.policy.entry.eligibility', undefined, 'leg.policy.exitWhenAny'],
  ['a trigger by a system event that may not be named', 'leg.policy.exitWhenAny.2.eventName', '$journey_leg_started'],
  ['an event of history that may not be named', expression, { type: 'Events.Count', name: '$offer_shown' }],
  ['an unknown expression', expression, { type: 'Random' }],
  ['a condition on rows that asks for more than rows', expression, countOf({ type: 'Bool', value: true })],
  ['rows asked whether they have a key', expression, countOf({ type: 'Pred', op: 'has', key: 'k' })],
  ['an answer by a key that is no name', expression, { type: 'Response.Field', key: '_k' }],
  ['a placement out of order', 'placements', swapped, 'placements'],
  ['a placement of an unknown product', 'placements.0.productId', 'gone', 'placements[0].productId'],
  ['an offer of Google for a product of Apple', 'placements.1.productId', 'prod_a', 'placements[1].googlePlay'],
  ['a product out of order', 'products', swapped, 'products'],
  [
    'a store product sold twice',
    'products.2',
    (last: Sample) => ({ ...last, id: 'prod_z', store: offer().products[0].store }),
  ],
  ['a type that the store does not know it by', 'products.0.store.productType', 'consumable'],
  ['a type that is not the product’s', 'products.1.store.productType', 'nonConsumable'],
  ['a subscription without base plan', 'products.2.store.basePlanId', undefined],
  ['a base plan of what is no subscription', 'products.1.store.basePlanId', 'monthly'],
  ['a purchase option of a subscription', 'products.2.store.purchaseOptionId', 'o'],
  ['controls out of order', 'screenBehaviors.0.controls', swapped],
  ['behaviors out of order', 'screenBehaviors', swapped, 'screenBehaviors'],
  ['a screen without behavior', 'screenBehaviors', ([first]: Sample[]) => [first], 'screenBehaviors'],
  ['a script that nothing uses', 'screenBehaviors.0.controls', ([first]: Sample[]) => [first]],
  ['a script control without script', 'screenBehaviors.0.script', undefined],
  ['a script that exports something else', 'screenBehaviors.0.script.exportedActionIds', ['a']],
  [
    'a script at another address',
    'screenBehaviors.0.script.artifact.key',
    `screen-behavior/sha256/${'0'.repeat(64)}.bin`,
  ],
  ['a script of other bytes than an asset of that digest', 'render.assets.3', sameDigestAs(1)],
  [
    'a screen drawn that is not of the leg',
    'render.screens',
    (all: Sample[]) => [...all, { ...all[1], id: 's3' }],
    'render.screens',
  ],
  ['no scene for screens', 'render', null, ''],
  ['no requirements for screens', 'requirements', null, ''],
  ['a renderer of another namespace', 'render.renderer', 'acm', 'render.renderer'],
  ['a scene under another word', 'render.ser', undefined, 'render.ser'],
  ['a scene at another address', 'render.ser.key', `renders/sha256/${'2'.repeat(64)}.riv`, 'render.ser.key'],
  ['a transition to nowhere', 'render.transitions.0.destinationScreenId', 's9', 'render.transitions[0]'],
  ['assets out of order', 'render.assets', swapped, 'render.assets'],
  ['an asset at another address', 'render.assets.0.key', `assets/sha256/${'3'.repeat(64)}.jpg`, 'render.assets[0].key'],
  ['a type that is no image', 'render.assets.0.contentType', 'image/gif', 'render.assets[0].contentType'],
  ['a font in another format', 'render.assets.1.format', 'otf', 'render.assets[1].contentType'],
  ['an authored id twice', 'render.assets.1.authoredAssetId', 1, 'render.assets'],
  ['a unique name twice', 'render.assets.1.assetUniqueName', 'asset-1', 'render.assets'],
  ['a video element twice', 'render.videoElements', (all: Sample[]) => [...all, ...all], 'render.videoElements'],
  ['a system font that is not asked for', 'requirements.requiredCapabilities', ['video.playback.v1']],
  ['a video that is not asked for', 'requirements.requiredCapabilities', ['system-fonts']],
  ['capabilities out of order', 'requirements.requiredCapabilities', swapped],
  ['an enum without values', 'state.size.values', undefined],
  ['a state of the newest builds', 'state.text', { type: 'object' }, 'state.text.type'],
  ['a null in the state', 'state.rows.items.label.type', null],
  ['a field that is called as forms are', 'responses.contact.fields.4.key', 'valid'],
  ['a field twice', 'responses.contact.fields', (all: Sample[]) => [...all, all[4]]],
  ['values of what is no enum', 'responses.contact.fields.4.values', ['a']],
  ['choices of what is no enum', 'responses.contact.fields.4.multiple', true],
  ['a form under another name', 'responses.contact.model', 'Responses:other', 'responses.contact.model'],
  ['a rule of another field', 'responses.contact.fields.0.rules.0.property', 'day'],
  ['a rule for another type', 'responses.contact.fields.0.rules.0', ruleOf(8, 0, 'minLength')],
  ['a rule in another mode', 'responses.contact.fields.0.rules.0.mode', 1],
  ['a rule under another code', 'responses.contact.fields.0.rules.0.code', 'max'],
  ['a kind of rule that is none', 'responses.contact.fields.0.rules.0.kind', 6],
  ['a rule without message', 'responses.contact.fields.0.rules.0.message', ''],
  ['an operand that is not used', 'responses.contact.fields.0.rules.0.text', 'a'],
  ['values counted wrongly', 'responses.contact.fields.2.rules.0.value_count', 1],
  ['a rule with other values than the field', 'responses.contact.fields.2.rules.0.values', ['x', 'z']],
  ['a count of choices without its property', 'responses.contact.fields.2.rules.1.picked_property', ''],
  ['a bound that is the other one', 'responses.contact.fields.3.rules.0.bound_flags', 2],
  ['a form without group', 'ruleGroups', [], 'ruleGroups'],
  ['a group twice', 'ruleGroups', (all: Sample[]) => [...all, ...all], 'ruleGroups'],
  ['a group of no form', 'ruleGroups.0.model', 'Responses:other', 'ruleGroups'],
  ['members out of order', 'ruleGroups.0.members', swapped, 'ruleGroups[0].members'],
  ['members counted wrongly', 'ruleGroups.0.member_count', 4, 'ruleGroups[0].member_count'],
  ['a member at another path', 'ruleGroups.0.members.0.errors_path', 'error/age', 'ruleGroups[0].members'],
]

describe('a descriptor is refused for', () => {
  for (const [title, path, to, at] of breaches) {
    test(title, () => {
      const found = rulesOf(altered(offer(), path, to))
      const place = at === undefined ? '' : `$${at === '' ? '' : `.${at}`} `
      assert.ok(
        found.some((each) => each.startsWith(place)),
        `${place}: ${found.join('; ')}`,
      )
    })
  }
})

describe('a leg without screens', () => {
  const without = (path: string, to: Sample) => rulesOf(altered(welcome(), path, to))

  test('has neither scene nor requirements', () => {
    assert.ok(without('render', offer().render).length > 0)
    assert.ok(without('requirements', offer().requirements).length > 0)
  })

  test('shows nothing', () => {
    for (const action of [{ type: 'back' }, { type: 'restore' }, { type: 'dismiss' }, { type: 'request_tracking' }]) {
      assert.deepEqual(without('leg.steps.1.action', action), ['$.leg.steps present nothing without screens'])
    }
    assert.deepEqual(without('leg.steps.1.action', { type: 'exit' }), [])
  })
})

test('the entry `always` is for the clients of the specification only', () => {
  const always = altered(welcome(), 'leg.entryCondition', { type: 'always' })
  always.leg.facts.propertyKeys = []
  assert.deepEqual(rulesOf(always, 'spec'), [])
  assert.deepEqual(rulesOf(always, 'clients'), ['$.leg.entryCondition is not always, which clients refuse'])
})

test('every other entry is for both', () => {
  const entries = [
    { type: 'app_foregrounded' },
    { type: 'event', eventName: 'e' },
    { type: 'segment', segmentId: 's', member: false },
  ]
  for (const entry of entries) {
    const changed = altered(welcome(), 'leg.entryCondition', entry)
    changed.leg.facts = { ...changed.leg.facts, propertyKeys: [], segmentIds: entry.type === 'segment' ? ['s'] : [] }
    for (const mode of ['clients', 'spec'] as const) assert.deepEqual(rulesOf(changed, mode), [])
  }
})

function countOf(where: Sample): Sample {
  return { type: 'Events.Count', name: 'e', where }
}

function sameDigestAs(index: number): (asset: Sample) => Sample {
  const sha256 = String(index).repeat(64)
  return (asset) => ({ ...asset, sha256, key: `assets/sha256/${sha256}.bin` })
}

function ruleOf(kind: number, mode: number, code: string): (rule: Sample) => Sample {
  return (rule) => ({ ...rule, kind, mode, code, number_bound: 0, minimum: 1, bound_flags: 1 })
}
