import { releaseArtefactsBytesMax, releaseScriptsBytesMax, scriptBytesMax } from '../../kernel/limits.ts'
import { isPresenting } from './actions.ts'
import { type Content, digestIn, fileOf } from './content.ts'
import type { Draft } from './draft.ts'
import { type Findings, under } from './findings.ts'
import { checkForms } from './forms.ts'
import type { Graph } from './graph.ts'
import { capabilitiesOf, checkManifest, isFile, type Manifest } from './manifest.ts'
import { checkValues } from './safe-values.ts'
import { checkSelling } from './selling.ts'
import type { JsonObject } from './shape.ts'

/** Screens: what shows them, what they are made of, and whether the oldest build in the field can run that. */
export function checkShowing(draft: Draft, graph: Graph, content: Content | undefined, findings: Findings): void {
  checkPresenting(draft, graph, findings)
  checkScreens(draft, findings)
  checkSelling(draft, content?.products ?? new Map(), content?.sentPreviews ?? new Map(), findings)
  const { state = {}, responseForms: forms = {}, ruleGroups: groups = [] } = draft
  checkForms({ state, forms, groups }, { state: '/state', forms: '/responseForms', groups: '/ruleGroups' }, findings)
  const scriptBytes = checkBehaviors(draft, content, findings)
  if ((draft.screens ?? []).length === 0) return
  const manifests = checkRender(draft, { content, scriptBytes }, findings)
  checkRuntime({ draft, graph, manifests }, content, findings)
}

function checkPresenting({ graph: { steps }, screens = [] }: Draft, graph: Graph, findings: Findings): void {
  const sections = [...graph.sections.values()]
  for (const [i, step] of steps.entries()) {
    const { id, plane, action } = step
    if (plane !== 'device' || !isPresenting(action.type)) continue
    const path = under('/graph/steps', i, 'action')
    if (action.type === 'navigate' && !screens.some((screen) => screen.id === action.screenId)) {
      const message = `Step "${id}" points to screen "${String(action.screenId)}", which does not exist.`
      findings.add(under(path, 'screenId'), 'target_missing', message)
    } else if (sections.some((section) => section.screens.length === 0 && section.steps.includes(step))) {
      const message = `Step "${id}" (${action.type}) presents, but its section has no screen.`
      findings.add(path, 'presents_without_screen', message)
    }
  }
}

function checkScreens({ screens = [] }: Draft, findings: Findings): void {
  for (const [i, { id, responseCaptures = [], offer }] of screens.entries()) {
    const first = screens.findIndex((one) => one.id === id)
    if (first < i) twice('Screen', id, under('/screens', i, 'id'), { first: under('/screens', first), findings })
    const lists = [
      { kind: 'Capture', ids: responseCaptures, path: under('/screens', i, 'responseCaptures') },
      { kind: 'Placement', ids: offer?.placementIds ?? [], path: under('/screens', i, 'offer', 'placementIds') },
    ]
    for (const { kind, ids, path } of lists) {
      const again = ids.find((one, n) => ids.indexOf(one) < n)
      if (again !== undefined) twice(kind, again, path, { first: under(path, ids.indexOf(again)), findings })
    }
  }
}

function twice(
  kind: string,
  id: string,
  path: string,
  { first, findings }: { first: string; findings: Findings },
): void {
  findings.add(path, 'id_duplicate', `${kind} id "${id}" is used twice; first at ${first}.`)
}

/** Bytes of all scripts. */
function checkBehaviors(
  { screens = [], screenBehaviors = [] }: Draft,
  content: Content | undefined,
  findings: Findings,
): number {
  const sizes = new Map<string, number>()
  for (const [i, { screenId, controls, script }] of screenBehaviors.entries()) {
    const path = under('/screenBehaviors', i)
    const first = screenBehaviors.findIndex((one) => one.screenId === screenId)
    if (first < i) twice('Behaviour', screenId, path, { first: under('/screenBehaviors', first), findings })
    if (!screens.some(({ id }) => id === screenId)) {
      findings.add(
        under(path, 'screenId'),
        'target_missing',
        `The behaviour points to screen "${screenId}", which does not exist.`,
      )
    }
    const seen = new Map<string, number>()
    for (const [n, { actionId }] of controls.entries()) {
      const before = seen.get(actionId) ?? n
      seen.set(actionId, before)
      const here = under(path, 'controls')
      if (before < n) twice('Control', actionId, under(here, n), { first: under(here, before), findings })
    }
    const needsScript = controls.some(({ behavior }) => behavior.kind === 'script')
    if (needsScript !== (script !== undefined)) {
      findings.add(path, 'value_invalid', 'There is a script exactly when a control is of the kind "script".')
    }
    if (script === undefined) continue
    const size = content?.files.get(fileOf(digestIn(script), 'application/octet-stream'))
    if (size === undefined) missing(script, under(path, 'script'), findings)
    else if (size > scriptBytesMax) limit(under(path, 'script'), size, scriptBytesMax, findings)
    sizes.set(script, size ?? 0)
  }
  const total = [...sizes.values()].reduce((sum, size) => sum + size, 0)
  if (total > releaseScriptsBytesMax) limit('/screenBehaviors', total, releaseScriptsBytesMax, findings)
  return total
}

function missing(named: string, path: string, findings: Findings): void {
  findings.add(path, 'artefact_missing', `${named} has not been uploaded.`)
}

function limit(path: string, bytes: number, max: number, findings: Findings): void {
  findings.add(path, 'limit_exceeded', `${bytes} bytes; at most ${max}.`)
}

/** The manifests that are right, by locale. */
function checkRender(
  draft: Draft,
  { content, scriptBytes }: { content: Content | undefined; scriptBytes: number },
  findings: Findings,
): Map<string, Manifest> {
  const { locales, render = {} } = draft
  const wanted = new Set([locales.default, ...(locales.others ?? [])])
  for (const locale of Object.keys(render)) {
    if (wanted.has(locale)) continue
    findings.add(under('/render', locale), 'value_invalid', `"${locale}" is not one of the locales.`)
  }
  const right = new Map<string, Manifest>()
  for (const locale of wanted) {
    const named = Object.hasOwn(render, locale) ? render[locale]?.manifest : undefined
    if (named === undefined) {
      findings.add('/render', 'locale_incomplete', `Locale "${locale}" has no manifest.`)
      continue
    }
    const path = under('/render', locale, 'manifest')
    if (!content?.manifests.has(digestIn(named))) {
      missing(named, path, findings)
      continue
    }
    const manifest = content.manifests.get(digestIn(named))
    if (!checkManifest(manifest, path, findings)) continue
    right.set(locale, manifest)
    checkValues(manifest as unknown, path, findings)
    checkLocale({ draft, locale, manifest, path }, findings)
    const bytes = checkFiles(draft, { manifest, path, content }, findings) + scriptBytes
    if (bytes > releaseArtefactsBytesMax) limit(path, bytes, releaseArtefactsBytesMax, findings)
  }
  return right
}

function checkLocale(
  { draft, locale, manifest, path }: { draft: Draft; locale: string; manifest: Manifest; path: string },
  findings: Findings,
): void {
  for (const { id } of draft.screens ?? []) {
    if (manifest.screens.some((screen) => screen.id === id)) continue
    findings.add(path, 'screen_unrendered', `Screen "${id}" is missing from the ${locale} manifest.`)
  }
  for (const { action } of draft.graph.steps) {
    const { transition } = action as { transition?: JsonObject } // its shape was found right
    const id = transition?.type === 'custom' ? String(transition.transitionId) : undefined
    if (id === undefined || manifest.transitions.some((one) => one.id === id)) continue
    findings.add(path, 'locale_incomplete', `Locale "${locale}" has no transition "${id}".`)
  }
}

/** Whether all that it names was uploaded, as it says; and the bytes of that. */
function checkFiles(
  { screenBehaviors = [] }: Draft,
  { manifest, path, content }: { manifest: Manifest; path: string; content: Content },
  findings: Findings,
): number {
  const { scene, assets } = manifest
  const named = [{ ...scene, contentType: content.names.sceneMediaType }, ...assets.filter(isFile)]
  const sizes = new Map(named.map(({ sha256, contentType, sizeBytes }) => [fileOf(sha256, contentType), sizeBytes]))
  const known = new Set([...content.files.keys()].map((file) => file.slice(0, 64)))
  for (const [file, size] of sizes) {
    const [digest = '', type = ''] = file.split(' ')
    const stored = content.files.get(file)
    if (stored === undefined) missing(`sha256:${digest}${known.has(digest) ? ` as ${type}` : ''}`, path, findings)
    else if (stored !== size) {
      findings.add(path, 'value_invalid', `In the manifest, sha256:${digest} has ${size} bytes; it has ${stored}.`)
    }
  }
  const scripts = new Set(screenBehaviors.flatMap(({ script }) => (script === undefined ? [] : [digestIn(script)])))
  const digests = [...new Set([...sizes.keys()].map((file) => file.slice(0, 64)))]
  // Clients know a file by its hash: at one address, of one type.
  if (digests.length < sizes.size || digests.some((digest) => scripts.has(digest))) {
    findings.add(path, 'value_invalid', 'Equal bytes can be one file only: a scene, an asset of one type, or a script.')
  }
  return [...sizes.values()].reduce((sum, size) => sum + size, 0)
}

/** Screens that are shown ask something of the device, and the service can only go by what it was told of the oldest one. */
function checkRuntime(
  { draft, graph, manifests }: { draft: Draft; graph: Graph; manifests: Map<string, Manifest> },
  content: Content | undefined,
  findings: Findings,
): void {
  const runtime = content?.clientRuntime ?? null
  const needed = new Set([content?.names.native ?? '', ...[...manifests.values()].flatMap(capabilitiesOf)])
  for (const { key, screens } of graph.sections.values()) {
    if (screens.length === 0) continue
    const path = under(
      '/graph/steps',
      draft.graph.steps.findIndex(({ id }) => id === key),
    )
    if (runtime === null) {
      const message = `Section "${key}" presents screens, but the project has no client runtime setting.`
      findings.add(path, 'requirements_missing', message)
      continue
    }
    for (const capability of needed) {
      if (runtime.capabilities.includes(capability)) continue
      const message = `"${key}" needs capability "${capability}", which the client runtime setting lacks.`
      findings.add(path, 'capability_missing', message)
    }
  }
}
