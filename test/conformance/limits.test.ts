import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Problem } from './check.ts'
import { descriptor } from './descriptor.ts'
import { offer } from './samples/offer.ts'
import { altered, type Sample } from './samples/publish.ts'

const whole = offer()

const rulesOf = (value: Sample): string[] => {
  const found: Problem[] = []
  descriptor(value, { path: '$', found, namespace: 'service', mode: 'clients' })
  return found.map(({ path, rule }) => `${path} ${rule}`)
}

/** Path, what is allowed, what no longer is. */
type Limit = [path: string, taken: Sample[], refused: Sample[]]

const units = (count: number) => 'x'.repeat(count)
const id256: [Sample[], Sample[]] = [
  [units(256), '\ud800', ' '],
  ['', units(257)],
]
const rid: [Sample[], Sample[]] = [
  [units(128), ' '],
  ['', units(129), 'a\0'],
]
const bytes = (max: number): [Sample[], Sample[]] => [
  [units(max), 'é'.repeat(max / 2)],
  ['', units(max + 1), `${'é'.repeat(max / 2)}x`],
]
const jid: [Sample[], Sample[]] = [
  [units(256), 'é'.repeat(128)],
  ['', units(257), 'é'.repeat(129), '\ud800'],
]
const whole53 = 9_007_199_254_740_991

const limits: Limit[] = [
  ['identity.appId', ...rid],
  ['identity.versionNumber', [1, whole53], [0, -1, 1.5, whole53 + 1]],
  ['identity.publishedAtSeq', [0, whole53], [-1, whole53 + 1]],
  [
    'identity.publishedAt',
    ['2024-02-29T23:59:59Z', '2026-11-20T09:00:00.123456+05:30', '2000-02-29T00:00:00-00:00'],
    ['2026-02-29T00:00:00Z', '1900-02-29T00:00:00Z', '2026-11-20T09:00Z', '2026-11-20', '2026-11-20T24:00:00Z'],
  ],
  [
    'identity.publishedAt',
    [],
    ['2026-11-20T09:00:60Z', '2026-11-20T09:00:00', '2026-13-01T00:00:00Z', '2026-11-00T00:00:00Z'],
  ],
  ['metadata.name', ...id256],
  ['metadata.appDefaultTimezone', ['UTC', 'America/Argentina/Ushuaia'], ['', 'Mars/Olympus', units(129)]],
  ['metadata.experienceType', [units(64)], ['', units(65)]],
  ['metadata.description', ['', units(2048)], [units(2049)]],
  ['provenance.compilerCommit', [units(128)], ['', units(129)]],
  ['provenance.compilerVersion', [units(64)], ['', units(65)]],
  ['presentation.backgroundColor', ['#aAfF0099'], ['#FFFFFF', '#GGFFFFFF', 'FFFFFFFF', '#FFFFFFFF0']],
  ['presentation.drawer.extentRatio', [1, 1e-9], [0, -0.1, 1.0001]],
  ['presentation.drawer.cornerRadius', [0, 128], [-1, 128.5]],
  ['leg.entryCondition.condition.engine_min', ['1', '0.9.1', '1.99'], ['2', '10.0', '']],
  ['leg.entryCondition.condition.ir_version', [1], [0, 2]],
  ['leg.screens.0.responseCaptures', [[], [units(128)]], [['b', 'a'], ['a', 'a'], [''], [units(129)], numbered(257)]],
  ['leg.steps.1.action.steps', [1, 256], [0, 257]],
  ['leg.steps.2.action.durationMs', [0, 31_622_400_000], [-1, 31_622_400_001]],
  ['leg.steps.5.action.startTime', ['00:00', '23:59'], ['24:00', '9:00', '12:60']],
  ['leg.steps.5.action.daysOfWeek', [[], [0, 1, 2, 3, 4, 5, 6]], [[7], [-1], [0.5]]],
  ['leg.steps.5.action.timezone.identifier', ...jid],
  ['leg.steps.6.action.maxTimeMs', [0], [-1]],
  ['leg.steps.11.action.eventName', [...jid[0]], [...jid[1], '$seen']],
  ['leg.steps.21.action.command.type', [], ['stop']],
  ['leg.steps.22.action.command.seconds', [0], [-0.1]],
  ['leg.steps.23.action.command.rate', [0.1], [0, -1]],
  ['leg.steps.24.action.command.volume', [0, 1], [-0.1, 1.1]],
  ['leg.steps.3.action.branches.0.condition.conditions', [truthy(1), truthy(64)], [truthy(0), truthy(65)]],
  ['leg.steps.11.action.payload.every.fields.list.items', [texts(256)], [texts(257)]],
  ['leg.inputs.eventFields.2.enum', [['a'], numbered(256)], [[], ['a', 'a'], numbered(257), ['\ud800']]],
  ['leg.inputs.responseFields.4.options', [['\ud800'], numbered(256)], [[], ['a', 'a'], numbered(257)]],
  ['leg.inputs.responseFields.2.key', [units(128), 'é'.repeat(64)], [units(129), 'é'.repeat(65)]],
  ['leg.inputs.eventFields.1.key', ...jid],
  ['leg.inputs.eventFields.0.min', [2, -5], [2.5]],
  ['leg.policy.entry.frequency.window.amount', [1, 1e9], [0, 1.5]],
  [
    'leg.policy.goal.attribution.window',
    [{ amount: 12, unit: 'week' }],
    [
      { amount: 91, unit: 'day' },
      { amount: 13, unit: 'week' },
    ],
  ],
  ['leg.policy.entry.trigger.connectorKey', [units(128)], ['', units(129), ' a', 'a\u00a0']],
  ['products.0.store.productId', ...bytes(256)],
  ['products.0.preview.name', ...bytes(512)],
  ['products.0.preview.description', ...bytes(2048)],
  ['products.0.preview.price', ...bytes(128)],
  ['products.0.preview.period', ...bytes(64)],
  ['products.0.preview.periodLabel', ...bytes(128)],
  ['products.0.preview.trialLabel', ...bytes(256)],
  ['products.0.preview.periodCount', [0, 10_000], [-1, 10_001]],
  ['products.0.entitlements.0.id', ...rid],
  ['products.0.entitlements.0.featureId', [null, ...rid[0]], rid[1]],
  ['products.0.entitlements.0.allowance', [null, 0, 0.5], [-1]],
  ['products.0.entitlements.0.allowanceType', [null, 'unlimited'], ['some']],
  ['products.0.entitlements.0.interval', [null, 'lifetime', 'semiAnnual'], ['daily']],
  ['products.0.entitlements.0.purchaseUsageFeatureIds', [[], numbered(256)], [numbered(257), ['b', 'a'], ['a', 'a']]],
  ['screenBehaviors.0.controls.0.behavior.program', [program(1), program(64)], [program(0), program(65)]],
  ['screenBehaviors.0.controls.0.behavior.program.0.eventName', bytes(256)[0], [...bytes(256)[1], '$tapped']],
  ['screenBehaviors.0.script.artifact.sizeBytes', [0, 4_194_304], [-1, 4_194_305]],
  ['render.screens.0.width', [0.5, 16_384], [0, 16_384.5]],
  ['render.screens.0.exit.durationMs', [0, 60_000], [-1, 60_001]],
  ['render.ser.sizeBytes', [1, 67_108_864], [0, 67_108_865]],
  ['render.textInputs', [[]], [['a'], [{}]]],
  ['render.assets.0.sizeBytes', [0, 33_554_432], [-1, 33_554_433]],
  ['render.assets.0.width', [1, 65_535], [0, 65_536]],
  ['render.assets.1.family', ['Systematic'], ['system', 'System']],
  ['render.assets.1.weight', [units(32)], ['', units(33)]],
  ['render.assets.2.sizeBytes', [1], [0]],
  ['render.assets.2.height', [1, 8192], [0, 8193]],
  ['render.assets.2.durationMs', [1], [0]],
  ['render.assets.2.sourceAssetKey', [`asset:${units(122)}`], [`asset:${units(123)}`, 'asset:', 'asset:a b']],
  ['render.assets.2.videoCodec', ['avc3.ABCDEF'], ['avc2.64001f', 'hvc1.64001f', 'avc1.64001']],
  ['render.assets.2.audioCodec', [null], ['opus']],
  [
    'render.assets.2.captionTracks',
    [tracks(16), []],
    [tracks(17), tracks(2).toReversed(), [...tracks(1), ...tracks(1)]],
  ],
  ['render.assets.5.weight', ['100', '900'], ['1000', '450', '0']],
  ['render.videoElements.0.componentId', [1, 4_294_967_295], [0, 4_294_967_296]],
  ['render.videoElements.0.readinessTimeoutSeconds', [0, 60], [-1, 60.5]],
  ['requirements.minimumSdkVersion', ['0.0.0', '1.2.3-rc.1'], ['1.2', '01.2.3', '1.2.3+5', `1.2.3-${units(60)}`]],
  ['requirements.luau.bytecodeVersions', [[0, 65_535]], [[], [65_536], [2, 1], [1, 1]]],
  ['requirements.sceneFormat.minor', [0, 65_535], [-1, 65_536]],
]

describe('every limit of a descriptor: at it, and beyond it', () => {
  for (const [path, taken, refused] of limits) {
    test(path, () => {
      for (const each of taken) assert.deepEqual(rulesOf(altered(whole, path, each)), [], JSON.stringify(each))
      for (const each of refused) assert.notDeepEqual(rulesOf(altered(whole, path, each)), [], JSON.stringify(each))
    })
  }
})

describe('every limit on how many', () => {
  const many = (count: number, of: (index: number) => Sample) => Array.from({ length: count }, (_, index) => of(index))
  const padded = (index: number) => String(index).padStart(6, '0')
  const counted: Record<string, { max: number; with: (count: number) => Sample }> = {
    steps: {
      max: 10_000,
      with: (count) =>
        altered(whole, 'leg.steps', (steps: Sample[]) => [
          ...steps,
          ...many(count - steps.length, (index) => ({ kind: 'complete', id: padded(index), outcome: 'done' })),
        ]),
    },
    placements: {
      max: 256,
      with: (count) =>
        altered(whole, 'placements', (all: Sample[]) => [
          ...all,
          ...many(count - all.length, (index) => ({ id: `z${padded(index)}`, productId: 'prod_a' })),
        ]),
    },
    products: {
      max: 256,
      with: (count) =>
        altered(whole, 'products', (all: Sample[]) => [
          ...all,
          ...many(count - all.length, (index) => {
            return { ...all[0], id: `z${padded(index)}`, store: { ...all[0].store, productId: padded(index) } }
          }),
        ]),
    },
    'video elements': {
      max: 4096,
      with: (count) =>
        altered(whole, 'render.videoElements', ([first]: Sample[]) =>
          many(count, (index) => ({ ...first, viewNodeId: padded(index), componentId: index + 1 })),
        ),
    },
    'rules of forms': {
      max: 4096,
      with: (count) =>
        altered(whole, 'responses.contact.fields.3.rules', ([, , , , required]: Sample[]) =>
          many(count - 8, () => required),
        ),
    },
  }
  for (const [title, { max, with: make }] of Object.entries(counted)) {
    test(title, () => {
      assert.deepEqual(rulesOf(make(max)), [])
      assert.notDeepEqual(rulesOf(make(max + 1)), [])
    })
  }

  test('groups and members of forms, counted together', () => {
    const form = (count: number) => {
      const fields = many(count, (index) => ({ key: `f${index}`, label: '', type: 'boolean', rules: [] }))
      const members = fields.map(({ key }) => ({
        ...whole.ruleGroups[0].members[0],
        property: key,
        errors_path: `errors/${key}`,
      }))
      const responses = { contact: { ...whole.responses.contact, fields } }
      return { ...whole, responses, ruleGroups: [{ ...whole.ruleGroups[0], member_count: count, members }] }
    }
    assert.deepEqual(rulesOf(form(4095)), [])
    assert.notDeepEqual(rulesOf(form(4096)), [])
  })

  test('bytes of all artefacts together', () => {
    const sized = (last: number) =>
      [3, 4].reduce(
        (value, index) => altered(value, `render.assets.${index}.sizeBytes`, index === 3 ? 32 * 2 ** 20 : last),
        altered(whole, 'render.ser.sizeBytes', 64 * 2 ** 20),
      )
    const rest = 10 + 7 * 3
    assert.deepEqual(rulesOf(sized(32 * 2 ** 20 - rest)), [])
    assert.notDeepEqual(rulesOf(sized(32 * 2 ** 20 - rest + 1)), [])
  })
})

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => String(index).padStart(3, '0'))
}

function texts(count: number): Sample[] {
  return Array.from({ length: count }, () => ({ type: 'String', value: '' }))
}

function truthy(count: number): Sample[] {
  return texts(count).map((value) => ({ type: 'Truthy', value }))
}

function program(count: number): Sample[] {
  return Array.from({ length: count }, () => ({ type: 'emit', eventName: 'tapped' }))
}

function tracks(count: number): Sample[] {
  return Array.from({ length: count }, (_, streamIndex) => ({
    streamIndex,
    codec: 'mov_text',
    language: null,
    title: null,
  }))
}
