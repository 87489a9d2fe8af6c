import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aDraft, device, server } from '../../../test/harness/a-draft.ts'
import {
  aContent,
  aManifest,
  aProduct,
  aScreenDraft,
  digest,
  knownWith,
  type ScreenDraft,
} from '../../../test/harness/a-screen-draft.ts'
import fc from '../../../test/harness/random.ts'
import { must } from '../../kernel/assert.ts'
import { buildBytesMax, descriptorBytesMax } from '../../kernel/limits.ts'
import { Findings } from '../draft/findings.ts'
import { validateDraft } from '../draft/validate.ts'
import { compileDraft } from './compile-draft.ts'
import { buildIdOf, describe, type Identity } from './release.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test looks into descriptors of many shapes; the strict validator checks them
type Body = any

function compiled(
  change: (draft: ScreenDraft) => void = () => {},
  platform: 'ios' | 'android' = 'ios',
  known = knownWith(),
) {
  const draft = aScreenDraft()
  change(draft)
  return compiledFrom(draft, platform, known)
}

function compiledFrom(draft: unknown, platform: 'ios' | 'android' = 'ios', known = knownWith()) {
  const judged = validateDraft(draft, known)
  assert.deepEqual(judged.findings.issues, [])
  const findings = new Findings()
  const experience = { publicId: 'exp_1' }
  const made = compileDraft({ draft: must(judged.draft, 'it is sound'), experience, known, platform }, findings)
  return { ...made, legs: made?.legs ?? [], findings }
}

const bodies = (legs: { sectionKey: string; locales: string[]; body: object }[]) =>
  Object.fromEntries(legs.map(({ sectionKey, locales, body }) => [`${sectionKey} ${locales.join()}`, body as Body]))

test('a section with screens is a leg for each locale, one without is the same in all', () => {
  const { legs } = compiled()
  assert.deepEqual(Object.keys(bodies(legs)), ['again en,de', 'show en', 'show de'])
  const sameManifest = compiled(({ render }) => void Object.assign(render, { de: { manifest: `sha256:${digest(1)}` } }))
  assert.deepEqual(Object.keys(bodies(sameManifest.legs)), ['again en,de', 'show en,de'])
})

test('scene, assets and scripts have addresses made of their hashes, and assets are in the order of these', () => {
  const all = bodies(compiled().legs)
  const render = all['show de'].render
  assert.deepEqual(render.ser, {
    ...{ key: `renders/sha256/${digest(3)}.ser`, sha256: digest(3), sizeBytes: 5 },
    contentType: 'application/vnd.service.scene',
  })
  assert.deepEqual(
    render.assets.map(({ key, assetUniqueName }: Body) => key ?? assetUniqueName),
    [
      ...[`assets/sha256/${digest(11)}.png`, `assets/sha256/${digest(12)}.ttf`, `assets/sha256/${digest(13)}.mp4`],
      ...[`assets/sha256/${digest(14)}.bin`, `assets/sha256/${digest(15)}.bin`, 'asset-4'],
    ],
  )
  assert.deepEqual(render.textInputs, [])
  assert.deepEqual(all['show en'].screenBehaviors[0].script, {
    protocol: 'screen-actions',
    artifact: {
      ...{ key: `screen-behavior/sha256/${digest(20)}.bin`, sha256: digest(20), sizeBytes: 9 },
      contentType: 'application/octet-stream',
    },
    exportedActionIds: ['own'],
  })
  assert.deepEqual(
    all['show en'].screenBehaviors.map(({ screenId }: Body) => screenId),
    ['offer', 'thanks'],
  )
})

test('requirements are those of the oldest build in the field, with what the content needs', () => {
  const { requirements } = bodies(compiled().legs)['show en']
  assert.deepEqual(requirements, {
    ...{ minimumSdkVersion: '2.1.0-beta.2', runtimeRevision: 'r1', luau: { revision: 'l1', bytecodeVersions: [5, 6] } },
    ...{
      sceneFormat: { major: 1, minor: 2 },
      timezoneData: { format: 'iana-tzdb', revision: '2026a', sha256: digest(9) },
    },
    requiredCapabilities: ['ser', 'system-fonts', 'video.playback.v1'],
  })
  const manifest = { ...aManifest(1), assets: aManifest(1).assets.slice(0, 1), videoElements: [] }
  const content = aContent({ manifests: new Map([digest(1), digest(2)].map((name) => [name, manifest])) })
  const plain = compiled(() => {}, 'ios', knownWith(content))
  assert.deepEqual(bodies(plain.legs)['show en'].requirements.requiredCapabilities, ['ser'])
})

test('a leg without screens carries nothing of them', () => {
  const body = bodies(compiled().legs)['again en,de']
  const { products, placements, viewModelValues, screenBehaviors, render, requirements, state, responses, ruleGroups } =
    body
  assert.deepEqual([products, placements, viewModelValues, screenBehaviors, ruleGroups], [[], [], [], [], []])
  assert.deepEqual([render, requirements, state, responses], [null, null, {}, {}])
})

test('the Product is copied with the store ids of the platform, its placement with what belongs to that store', () => {
  const sold = (platform: 'ios' | 'android') => {
    const { products, placements } = bodies(compiled(() => {}, platform).legs)['show en']
    return { store: products[0].store, placement: placements[0], preview: products[0].preview }
  }
  const { preview } = aProduct()
  assert.deepEqual(sold('ios'), {
    store: { platform: 'apple_app_store', productId: 'pro.yearly', productType: 'autoRenewable' },
    placement: { id: 'main', productId: 'prod_1', appStore: { introEligibility: 'automatic', billingPlan: 'default' } },
    preview,
  })
  assert.deepEqual(sold('android'), {
    store: { platform: 'google_play', productId: 'pro', productType: 'subscription', basePlanId: 'yearly' },
    placement: { id: 'main', productId: 'prod_1', googlePlay: { offerId: 'intro' } },
    preview,
  })
})

test('only what a leg can sell is in it, or everything where a view model names it', () => {
  const two = (draft: ScreenDraft) =>
    draft.placements.push({ ...must(draft.placements[0], 'there is one'), id: 'other' })
  const idsOf = (change: (draft: ScreenDraft) => void) =>
    bodies(compiled(change).legs)['show en'].placements.map(({ id }: Body) => id)
  assert.deepEqual(idsOf(two), ['main'])
  const bound = (draft: ScreenDraft) => {
    two(draft)
    Object.assign(draft.graph.steps[1]?.action ?? {}, { placementId: { ref: { kind: 'path', path: 'plan' } } })
  }
  assert.deepEqual(idsOf(bound), ['main', 'other'])
})

test('an offer leads by two routes of its screen', () => {
  const { leg } = bodies(compiled().legs)['show en']
  assert.deepEqual(leg.offers, [
    { screenId: 'offer', placementIds: ['main'], alreadyEntitledStepId: 'bye', unknownStepId: '@completed' },
  ])
  assert.deepEqual(
    leg.routes.map(({ host, eventName, entryStepId }: Body) => [host.screenId ?? host.kind, eventName, entryStepId]),
    [
      ['offer', 'buy_tapped', 'buy'],
      ['thanks', 'done', 'bye'],
      ['journey', 'host_dismissed', '@later'],
      ['offer', '$offer_already_entitled', 'bye'],
      ['offer', '$offer_access_unknown', '@completed'],
    ],
  )
})

test('answers are told where something later reads them, and never otherwise', () => {
  const { leg } = bodies(compiled().legs)['show en']
  const why = { key: 'why', type: 'text', required: false }
  assert.deepEqual(leg.outputs, [why])
  assert.deepEqual(leg.completionOutputs.later.responseFields, [why])
  assert.deepEqual(leg.completionOutputs.completed.responseFields, [])
  assert.deepEqual(leg.completionOutputs.seen.responseFields, [])
  assert.deepEqual(bodies(compiled().legs)['again en,de'].leg.inputs.responseFields, [why])
  const unread = compiled(({ graph }) => {
    Object.assign(graph.steps[4]?.action ?? {}, { properties: {} })
    Object.assign(graph.steps[5]?.action ?? {}, { payload: {} })
  })
  assert.deepEqual(bodies(unread.legs)['show en'].leg.outputs, [])
})

test('equal inputs give equal bytes whatever the order of keys; other store texts, other files, other settings another build', () => {
  const reversed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reversed)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .toReversed()
        .map(([key, member]) => [key, reversed(member)]),
    )
  }
  const target = { appId: 'a', environment: 'test', experienceVersionId: 'v', compilerVersion: '1' } as const
  const id = ({ legs }: { legs: Parameters<typeof buildIdOf>[1] }) => buildIdOf(target, legs)
  const usual = id(compiled())
  assert.equal(id(compiledFrom(reversed(aScreenDraft()))), usual)
  const { products, clientRuntime, manifests } = aContent()
  const price = new Map([...products].map(([key, one]) => [key, { ...one, preview: { ...one.preview, price: '1' } }]))
  const other = (changes: Parameters<typeof aContent>[0]) => id(compiled(() => {}, 'ios', knownWith(aContent(changes))))
  assert.notEqual(other({ products: price }), usual)
  assert.notEqual(other({ clientRuntime: { ...must(clientRuntime, 'it is set'), runtime_revision: 'r2' } }), usual)
  assert.notEqual(other({ manifests: new Map([...manifests].map(([name]) => [name, aManifest(1)])) }), usual)
  assert.notEqual(id(compiled(() => {}, 'android')), usual)
})

const identity: Identity = {
  ...{ appId: 'app_1', environment: 'test', experienceId: 'exp_1', experienceVersionId: 'ver_1', versionNumber: 1 },
  ...{ buildId: 'bld_1', publishedAt: '2026-11-20T09:00:00.000Z', publishedAtSeq: 1 },
}

test('a leg of as many bytes as clients take is made, and one of more is told by name, locale and size', () => {
  const filled = (bytes: number) =>
    compiled(({ viewModelValues }) => Object.assign(viewModelValues[0] ?? {}, { value: 'x'.repeat(bytes) }))
  const leg = must(
    compiled().legs.find(({ sectionKey }) => sectionKey === 'show'),
    'it shows',
  )
  // What an identity may take at most is reserved: some hundred bytes.
  const room = descriptorBytesMax - describe(leg, identity).bytes.length
  assert.deepEqual(filled(room - 400).findings.issues, [])
  const [issue, ...more] = filled(room + 400).findings.issues
  assert.deepEqual([issue?.code, issue?.path, more], ['descriptor_size', '/graph/steps/0', []])
  assert.match(issue?.message ?? '', /^Leg "show" \(en\) is 419\d{4} bytes; the limit is 4194304\.$/)
})

test('all locales of all legs together are bounded too', () => {
  const locales = Array.from({ length: 19 }, (_, n) =>
    `x${n}-aa`.replace(/\d+/, (no) => 'abcdefghijklmnopqrs'.charAt(Number(no))),
  )
  const many = (bytes: number) =>
    compiled((draft) => {
      draft.locales.others = locales
      draft.render = Object.fromEntries(
        ['en', ...locales].map((locale) => [locale, { manifest: `sha256:${digest(1)}` }]),
      )
      Object.assign(draft.viewModelValues[0] ?? {}, { value: 'x'.repeat(bytes) })
    })
  const each = buildBytesMax / 20
  assert.deepEqual(many(each - 20_000).findings.issues, [])
  assert.deepEqual(
    many(each).findings.issues.map(({ code, path }) => `${code} ${path}`),
    ['limit_exceeded '],
  )
})

interface LegSteps {
  entryStepId: string
  steps: {
    id: string
    kind: string
    outcome?: string
    action?: { type: string; reason?: string }
    outlets?: Record<string, string>
  }[]
  routes: { host: { kind: string; screenId?: string }; eventName: string; entryStepId: string }[]
}

test('every walk over a leg with screens ends in an outcome that the plan knows, whatever taps and choices', () => {
  const { legs, plan } = compiled()
  fc.assert(
    fc.property(fc.array(fc.nat(9), { minLength: 40, maxLength: 40 }), (choices) => {
      for (const { sectionKey, body } of legs) {
        const { steps, routes, entryStepId } = body.leg as unknown as LegSteps
        const known = Object.keys(must(plan?.sections[sectionKey], 'it is planned').outcomes)
        let [at, screen] = [entryStepId, '']
        for (const choice of choices) {
          const step = must(
            steps.find(({ id }) => id === at),
            'every target is a step',
          )
          if (step.kind === 'complete' || step.action?.type === 'exit') {
            assert.ok(known.includes(step.outcome ?? step.action?.reason ?? 'completed'), sectionKey)
            break
          }
          const { screenId } = (step.action ?? {}) as { screenId?: string }
          screen = screenId ?? screen
          const open = routes.filter(({ host }) => host.kind === 'journey' || host.screenId === screen)
          const ways = Object.values(step.outlets ?? {})
          const onward = ways.length > 0 ? ways : open.map((route) => route.entryStepId)
          at = must(onward[choice % onward.length], 'something leads on')
        }
      }
    }),
    { numRuns: 300 },
  )
})

/** Screens, waits and steps of the server in any order; each screen leads on by two taps. */
const anyGraph = fc
  .array(fc.record({ kind: fc.constantFrom('screen', 'wait', 'server'), a: fc.nat(11), b: fc.nat(11) }), {
    minLength: 2,
    maxLength: 9,
  })
  .map((shape) => {
    const id = (n: number) => (n >= shape.length ? null : `n${n}`)
    const nodes = shape.map(({ kind, a, b }, n) => ({ id: `n${n}`, kind, ways: [id(a), id(b)] }))
    const reached = new Set<string | null>()
    const visit = (at: string | null) => {
      if (at === null || reached.has(at)) return
      reached.add(at)
      for (const way of nodes.find((node) => node.id === at)?.ways ?? []) visit(way)
    }
    visit('n0')
    return nodes.filter((node) => reached.has(node.id))
  })
type Node = { id: string; kind: string; ways: (string | null)[] }

function draftOf(nodes: Node[]) {
  const draft = aDraft()
  const end = (to: string | null | undefined) => to ?? 'end'
  draft.graph.entry = 'n0'
  draft.graph.steps = nodes.map(({ id, kind, ways: [a = null, b = null] }) => {
    if (kind === 'screen') return device(id, { type: 'navigate', screenId: id })
    if (kind === 'server') {
      return server(
        id,
        { type: 'wait_for_event', eventName: 'e', trust: 'any', timeoutMs: 1 },
        { matched: a, timeout: b },
      )
    }
    const condition = { type: 'Truthy', value: { type: 'Boolean', value: true } }
    const wait = { type: 'wait_until', trigger: { kind: 'event', eventName: 'e' }, condition, maxTimeMs: 1 }
    return device(id, wait, { satisfied: a, timeout: b })
  })
  const screens = nodes.filter(({ kind }) => kind === 'screen')
  // A route needs a step to lead to: this one ends the journey.
  if (screens.some(({ ways }) => ways.includes(null))) draft.graph.steps.push(device('end', { type: 'exit' }))
  draft.graph.routes = screens.flatMap(({ id, ways }) =>
    ways.map((to, n) => ({ host: { kind: 'screen', screenId: id }, eventName: `tap${n}`, to: end(to) })),
  )
  const screen = { artboardId: 'ab', artboardName: 'Main', width: 1, height: 1 }
  const manifest = {
    ...{ scene: { sha256: digest(1), sizeBytes: 5 }, transitions: [], assets: [] },
    screens: [...screens.map(({ id }) => ({ id, ...screen })), { id: 'unused', ...screen }],
  }
  const render = { en: { manifest: `sha256:${digest(1)}` }, de: { manifest: `sha256:${digest(1)}` } }
  const known = knownWith(aContent({ manifests: new Map([[digest(1), manifest]]) }))
  return { draft: { ...draft, screens: screens.map(({ id }) => ({ id })), render }, known }
}

test('walks through legs with screens and plan are the authored walks, for any graph, taps and choices', () => {
  fc.assert(
    fc.property(anyGraph, fc.array(fc.nat(1), { minLength: 30, maxLength: 30 }), (nodes, choices) => {
      const { draft, known } = draftOf(nodes)
      const { legs, plan } = compiledFrom(draft, 'ios', known)
      const wayOf = (id: string | null, choice = 0) => nodes.find((node) => node.id === id)?.ways[choice] ?? null
      const authored: string[] = []
      for (let [at, n]: [string | null, number] = ['n0', 0]; at !== null && n < choices.length; n++) {
        authored.push(at)
        at = wayOf(at, choices[n])
      }
      const walked: string[] = []
      const left = [...choices]
      let target: string | null = plan?.entry ?? null
      while (target !== null && left.length > 0) {
        const leg: LegSteps | undefined = legs.find(({ sectionKey }) => sectionKey === target)?.body
          .leg as unknown as LegSteps
        const section = plan?.sections[target]
        if (!section) {
          walked.push(target)
          target = wayOf(target, left.shift())
          continue
        }
        let at = leg.entryStepId
        for (;;) {
          const step = must(
            leg.steps.find(({ id }) => id === at),
            'every target is a step',
          )
          if (step.kind === 'complete' || step.action?.type === 'exit') {
            const outcome: string = step.outcome ?? step.action?.reason ?? 'completed'
            assert.ok(Object.hasOwn(section.outcomes, outcome), outcome)
            target = section.outcomes[outcome] ?? null
            break
          }
          if (left.length === 0) return assert.deepEqual(walked, authored)
          walked.push(step.id)
          const choice = must(left.shift(), 'there is one')
          const routes = leg.routes.filter(({ host }) => host.screenId === step.id)
          const ways = routes.length > 0 ? routes.map((route) => route.entryStepId) : Object.values(step.outlets ?? {})
          at = must(ways[choice], 'there are two ways')
        }
      }
      return assert.deepEqual(walked, authored)
    }),
    { numRuns: 200 },
  )
})
