import { must } from '../../kernel/assert.ts'
import type { Platform } from '../../tenancy/index.ts'
import { assetKey, sceneKey, scriptKey } from '../artefacts/addresses.ts'
import { type Content, digestIn, fileOf } from '../draft/content.ts'
import type { Draft } from '../draft/draft.ts'
import type { Graph, Section, Target } from '../draft/graph.ts'
import { capabilitiesOf, isFile, type Manifest, sortKeyOf } from '../draft/manifest.ts'
import { linkFor, productFor } from '../draft/products.ts'
import { offerEvents } from '../draft/routes.ts'
import type { Screen } from '../draft/screens.ts'
import { placementIn } from '../draft/selling.ts'

type Landing = (target: Target) => string

export function screenOf({ id, responseCaptures = [], defaultViewModelName, defaultInstanceId }: Screen): object {
  return {
    ...{ id, responseCaptures: responseCaptures.toSorted() },
    ...(defaultViewModelName === undefined ? {} : { defaultViewModelName }),
    ...(defaultInstanceId === undefined ? {} : { defaultInstanceId }),
  }
}

/** Where screens lead whose offer makes no sense any more, or may make none. */
export function offerRoutes({ screens }: Section, landingAt: Landing): object[] {
  return screens.flatMap(({ id, offer }) => {
    if (!offer) return []
    const host = { kind: 'screen', screenId: id }
    return [
      { host, eventName: offerEvents.alreadyEntitled, entryStepId: landingAt(offer.onAlreadyEntitled) },
      { host, eventName: offerEvents.accessUnknown, entryStepId: landingAt(offer.onAccessUnknown) },
    ]
  })
}

export function offersOf({ screens }: Section, landingAt: Landing): object[] {
  return screens.flatMap(({ id: screenId, offer }) => {
    if (!offer) return []
    const { placementIds, onAlreadyEntitled, onAccessUnknown } = offer
    const steps = { alreadyEntitledStepId: landingAt(onAlreadyEntitled), unknownStepId: landingAt(onAccessUnknown) }
    return [{ screenId, placementIds, ...steps }]
  })
}

interface Shown {
  platform: Platform
  content: Content
  draft: Draft
  graph: Graph
  section: Section
}

interface Variant {
  locales: string[]
  parts: object
}

/** Everything that only screens need, once for all locales that have the same manifest; null: nothing shows. */
export function variantsOf({ locales, render = {} }: Draft, shown: Shown | null): Variant[] {
  const all = [locales.default, ...(locales.others ?? [])]
  if (shown === null) {
    const none = { products: [], placements: [], viewModelValues: [], screenBehaviors: [], render: null }
    return [{ locales: all, parts: { ...none, requirements: null, state: {}, responses: {}, ruleGroups: [] } }]
  }
  const byManifest = Map.groupBy(all, (locale) => must(render[locale], 'every locale has a manifest').manifest)
  const common = commonParts(shown)
  return [...byManifest].map(([named, same]) => {
    // Validation found its shape right.
    const manifest = shown.content.manifests.get(digestIn(named)) as Manifest
    const parts = { ...common, render: renderOf(manifest, shown), requirements: requirementsOf(manifest, shown) }
    return { locales: same, parts }
  })
}

function commonParts(shown: Shown): object {
  const { draft, content, section } = shown
  const byId = (a: { screenId: string }, b: { screenId: string }) => (a.screenId < b.screenId ? -1 : 1)
  const screenBehaviors = section.screens.map(({ id }) => behaviorOf(draft, content, id)).toSorted(byId)
  const { viewModelValues = [], state = {}, responseForms: responses = {}, ruleGroups = [] } = draft
  return { ...soldIn(shown), viewModelValues, screenBehaviors, state, responses, ruleGroups }
}

function behaviorOf({ screenBehaviors = [] }: Draft, content: Content, screenId: string) {
  const { controls = [], script } = screenBehaviors.find((one) => one.screenId === screenId) ?? {}
  const sorted = controls.toSorted((a, b) => (a.actionId < b.actionId ? -1 : 1))
  if (script === undefined) return { screenId, controls: sorted }
  const sha256 = digestIn(script)
  const contentType = 'application/octet-stream'
  const sizeBytes = must(content.files.get(fileOf(sha256, contentType)), 'validation found it')
  const artifact = { key: scriptKey(sha256), sha256, sizeBytes, contentType }
  const exportedActionIds = sorted.filter(({ behavior }) => behavior.kind === 'script').map(({ actionId }) => actionId)
  return { screenId, controls: sorted, script: { protocol: 'screen-actions', artifact, exportedActionIds } }
}

/** Placements that the leg can sell, and their Products; all of them where a view model names one. */
function soldIn({ draft, platform, content, section }: Shown) {
  const bought = section.steps
    .filter(({ action }) => action.type === 'purchase')
    .map(({ action }) => placementIn(action.placementId))
  const named = new Set([...bought, ...section.screens.flatMap(({ offer }) => offer?.placementIds ?? [])])
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)
  const placements = (draft.placements ?? []).filter(({ id }) => named.has(null) || named.has(id)).toSorted(byId)
  const found = placements.map((placement) => {
    const product = must(content.products.get(placement.productId), 'validation found it')
    return { placement, product, link: linkFor(product, platform) }
  })
  const products = [...new Map(found.map(({ product }) => [product.id, product])).values()].toSorted(byId)
  return {
    products: products.map((product) => must(productFor(product, platform), 'validation found its link')),
    placements: found.map(({ placement: { id, appStore, googlePlay }, product, link }) => {
      const offer = googlePlay ?? (link?.offerId == null ? undefined : { offerId: link.offerId })
      return {
        ...{ id, productId: product.id },
        ...(platform === 'ios' && appStore ? { appStore } : {}),
        ...(platform === 'android' && offer ? { googlePlay: offer } : {}),
      }
    }),
  }
}

/** Of the manifest what the leg's screens need; assets can't be told apart by screen. */
function renderOf({ scene, screens, transitions, assets, videoElements = [] }: Manifest, { content, section }: Shown) {
  const { names } = content
  const shown = new Set(section.screens.map(({ id }) => id))
  const own = screens.filter(({ id }) => shown.has(id))
  const boards = new Set(own.map(({ artboardId }) => artboardId))
  const videos = videoElements.filter(({ artboardId }) => boards.has(artboardId))
  return {
    renderer: names.native,
    [names.native]: { key: sceneKey(names, scene.sha256), ...scene, contentType: names.sceneMediaType },
    screens: own,
    transitions: transitions.filter((one) => shown.has(one.sourceScreenId) && shown.has(one.destinationScreenId)),
    textInputs: [],
    assets: assets
      .map((one) => (isFile(one) ? { ...one, key: assetKey(one.sha256, one.contentType) } : one))
      .toSorted((a, b) => (sortKeyOf(a) < sortKeyOf(b) ? -1 : 1)),
    ...(videos.length === 0 ? {} : { videoElements: videos }),
  }
}

/** The oldest build in the field, and what it must be able to do for this. */
function requirementsOf(manifest: Manifest, { content: { names, clientRuntime } }: Shown): object {
  const runtime = must(clientRuntime, 'validation asked for it')
  const { luau, scene_format: sceneFormat, timezone_data: timezoneData } = runtime
  return {
    minimumSdkVersion: runtime.minimum_sdk_version,
    runtimeRevision: runtime.runtime_revision,
    luau: { revision: luau.revision, bytecodeVersions: luau.bytecode_versions },
    sceneFormat,
    timezoneData,
    requiredCapabilities: [names.native, ...capabilitiesOf(manifest)].toSorted(),
  }
}
