import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  aContent,
  aManifest,
  aScreenDraft,
  digest,
  knownWith,
  type ScreenDraft,
  scene,
} from '../../../test/harness/a-screen-draft.ts'
import { must } from '../../kernel/assert.ts'
import {
  assetBytesMax,
  draftPlacementsMax,
  draftScreensMax,
  formRuleBytesMax,
  formRulesMax,
  releaseArtefactsBytesMax,
  releaseScriptsBytesMax,
  screenControlsMax,
  scriptBytesMax,
  viewModelValuesMax,
} from '../../kernel/limits.ts'
import { type Content, fileOf } from './content.ts'
import { validateDraft } from './validate.ts'

const binary = 'application/octet-stream'

/** Codes and places of what is found, and once each. */
function found({ draft, content = aContent() }: { draft: ScreenDraft; content?: Content }): string[] {
  const { issues } = validateDraft(draft, knownWith(content)).findings
  return [...new Set(issues.map(({ code, path }) => `${code} ${path}`))]
}

const times = <T>(count: number, make: (n: number) => T) => Array.from({ length: count }, (_, n) => make(n))
const first = <T>(list: T[]) => must(list[0], 'there is one')

function changed(change: (draft: ScreenDraft) => void) {
  const draft = aScreenDraft()
  change(draft)
  return { draft }
}

function withScreens(count: number) {
  const more = times(count - 2, (n) => `more${n}`)
  const manifest = aManifest()
  manifest.screens.push(...more.map((id) => ({ ...first(manifest.screens), id })))
  const manifests = new Map([digest(1), digest(2)].map((name) => [name, manifest]))
  const made = changed(({ screens }) => void screens.push(...more.map((id) => ({ id }))))
  return { ...made, content: aContent({ manifests }) }
}

/** As many rules, on one field, with a message of so many characters. */
function withRules(count: number, charsOf: (n: number) => number = () => 1) {
  return changed(({ responseForms }) => {
    const field = first(responseForms.contact.fields)
    const rule = first(field.rules)
    field.rules = times(count, (n) => ({ ...rule, message: 'x'.repeat(charsOf(n)) }))
  })
}

/** All rules together in so many bytes: each but the last is as long as a message may make it. */
function withRuleBytes(bytes: number) {
  const ofOne =
    JSON.stringify(first(first(aScreenDraft().responseForms.contact.fields).rules)).length - 'Who are you?'.length
  const most = ofOne + 65_536 + 1
  const count = Math.ceil((bytes - 1) / most)
  const rest = bytes - 1 - (count - 1) * most - ofOne - 1
  return withRules(count, (n) => (n === count - 1 ? rest : 65_536))
}

function withMembers(count: number) {
  return changed((draft) => {
    const { fields } = draft.responseForms.contact
    const member = first(first(draft.ruleGroups).members)
    const keys = times(count, (n) => `f${n}`)
    draft.responseForms.contact.fields = keys.map((key) => ({ ...first(fields), key, rules: [] }))
    const members = keys.map((key) => ({ ...member, property: key, errors_path: `errors/${key}` }))
    draft.ruleGroups = [{ ...first(draft.ruleGroups), member_count: count, members }]
  })
}

/** Scripts of these sizes, each on a screen of its own. */
function withScripts(sizes: number[]) {
  const made = withScreens(Math.max(2, sizes.length))
  const files = new Map([
    ...made.content.files,
    ...sizes.map((size, n) => [fileOf(digest(100 + n), binary), size] as const),
  ])
  const control = { actionId: 'own', behavior: { kind: 'script' } }
  const screenBehaviors = made.draft.screens
    .slice(0, sizes.length)
    .map(({ id }, n) => ({ screenId: id, controls: [control], script: `sha256:${digest(100 + n)}` }))
  return { draft: { ...made.draft, screenBehaviors } as ScreenDraft, content: { ...made.content, files } }
}

/** A scene and four images, in so many bytes with the script of the draft. */
function withFiles(bytes: number) {
  const image = aManifest().assets[1]
  const rest = bytes - 9 - 3 * assetBytesMax
  const [sceneBytes, last] = [1000, rest - 1000]
  const sizes = [assetBytesMax, assetBytesMax, assetBytesMax, last]
  const assets = sizes.map((sizeBytes, n) => {
    return { ...image, sha256: digest(50 + n), sizeBytes, authoredAssetId: n, assetUniqueName: `image-${n}` }
  })
  const manifest = { ...aManifest(), assets, scene: { sha256: digest(1), sizeBytes: sceneBytes }, videoElements: [] }
  const files = new Map([
    ...aContent().files,
    [fileOf(digest(1), scene), sceneBytes],
    ...sizes.map((size, n) => [fileOf(digest(50 + n), 'image/png'), size] as const),
  ])
  const manifests = new Map([digest(1), digest(2)].map((name) => [name, manifest]))
  return { draft: aScreenDraft(), content: aContent({ manifests, files }) }
}

interface Made {
  draft: ScreenDraft
  content?: Content
}

const full = times(releaseScriptsBytesMax / scriptBytesMax, () => scriptBytesMax)
const limits: [name: string, atIt: Made, beyondIt: Made, where: string][] = [
  ['screens', withScreens(draftScreensMax), withScreens(draftScreensMax + 1), '/screens'],
  [
    'placements',
    ...(([0, 1] as const).map((more) =>
      changed((draft) => {
        const placement = first(draft.placements)
        draft.placements = times(draftPlacementsMax + more, (n) => ({ ...placement, id: n === 0 ? 'main' : `p${n}` }))
      }),
    ) as [Made, Made]),
    '/placements',
  ],
  [
    'values of view models',
    ...(([0, 1] as const).map((more) =>
      changed((draft) => {
        draft.viewModelValues = times(viewModelValuesMax + more, () => first(draft.viewModelValues))
      }),
    ) as [Made, Made]),
    '/viewModelValues',
  ],
  [
    'controls',
    ...(([0, 1] as const).map((more) =>
      changed(({ screenBehaviors }) => {
        const behaviour = first(screenBehaviors)
        const control = must(behaviour.controls[1], 'there is one')
        behaviour.controls = times(screenControlsMax + more, (n) => ({ ...control, actionId: `a${n}` }))
      }),
    ) as [Made, Made]),
    '/screenBehaviors/0/controls',
  ],
  ['rules', withRules(formRulesMax), withRules(formRulesMax + 1), '/responseForms/contact/fields/0/rules'],
  ['bytes of rules', withRuleBytes(formRuleBytesMax), withRuleBytes(formRuleBytesMax + 1), '/responseForms'],
  ['groups and members', withMembers(formRulesMax - 1), withMembers(formRulesMax), '/ruleGroups'],
  ['bytes of a script', withScripts([scriptBytesMax]), withScripts([scriptBytesMax + 1]), '/screenBehaviors/0/script'],
  ['bytes of all scripts', withScripts(full), withScripts([...full, 1]), '/screenBehaviors'],
  [
    'bytes of all files',
    withFiles(releaseArtefactsBytesMax),
    withFiles(releaseArtefactsBytesMax + 1),
    '/render/en/manifest',
  ],
]

describe('a draft may have, and not one more', () => {
  for (const [name, atIt, beyondIt, where] of limits) {
    test(name, () => {
      assert.deepEqual(found(atIt), [])
      const codes = found(beyondIt)
      assert.ok(codes.includes(`limit_exceeded ${where}`), codes.join('\n'))
      assert.ok(
        codes.every((code) => code.startsWith('limit_exceeded')),
        codes.join('\n'),
      )
    })
  }
})
