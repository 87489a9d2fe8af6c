import { isDeepStrictEqual } from 'node:util'
import { releaseArtefactsBytesMax, releaseScriptsBytesMax, sceneBytesMax, scriptBytesMax } from '../../kernel/limits.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import { type Artefact, fileAt } from '../artefacts/addresses.ts'
import type { Findings } from '../draft/findings.ts'
import { checkForms, type Forms, formsShape, type Groups, groupsShape, stateShape } from '../draft/forms.ts'
import { checkParts, digest, type Manifest, manifestParts, rid } from '../draft/manifest.ts'
import { controlsShape, placementsShape, viewModelValuesShape } from '../draft/screens.ts'
import {
  boolean,
  bytes,
  either,
  isObject,
  type JsonObject,
  list,
  number,
  object,
  pattern,
  type Shape,
  tagged,
  text,
  whole,
  word,
} from '../draft/shape.ts'
import { id } from '../draft/values.ts'

/** What clients ask of everything in a descriptor that only screens need. */

const nullOr = <T>(shape: Shape<T>): Shape<T | null> => either((one) => one === null, word(null), shape)
const many = { max: 256 }

const oneTime = ['consumable', 'nonConsumable'] as const
const store = tagged('platform', {
  apple_app_store: object({
    productId: bytes(256),
    productType: word('autoRenewable', 'nonRenewing', ...oneTime),
  }),
  google_play: object(
    { productId: bytes(256), productType: word('subscription', ...oneTime) },
    { basePlanId: bytes(256), purchaseOptionId: bytes(256) },
  ),
})
const preview = object({
  ...{ name: bytes(512), description: bytes(2048), price: bytes(128), period: bytes(64), periodLabel: bytes(128) },
  ...{ trialLabel: bytes(256), introOfferLabel: bytes(256), renewalLabel: bytes(256) },
  ...{ periodCount: whole(0, 10_000), hasTrial: boolean },
})
const intervals = ['lifetime', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'semiAnnual', 'year'] as const
const entitlement = object({
  ...{ id: rid, featureId: nullOr(rid), featureExternalId: nullOr(bytes(256)) },
  ...{ purchaseUsageFeatureIds: list(bytes(256), many), allowanceType: word('fixed', 'unlimited', null) },
  ...{ allowance: nullOr(number(0)), interval: word(...intervals, null) },
})
const product = object({
  ...{ id: rid, type: word('subscription', ...oneTime), store, preview, entitlements: list(entitlement, many) },
})

const script = object({
  protocol: word('screen-actions'),
  artifact: object({
    ...{ key: text(), sha256: digest, sizeBytes: whole(0, scriptBytesMax) },
    contentType: word('application/octet-stream'),
  }),
  exportedActionIds: list(id, { max: 1024 }),
})

const version = pattern(
  'a semantic version without a build',
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$/,
)
const small = whole(0, 65_535)
const requirements = object({
  ...{ minimumSdkVersion: version, runtimeRevision: rid },
  luau: object({ revision: rid, bytecodeVersions: list(small, { min: 1, max: 256 }) }),
  sceneFormat: object({ major: small, minor: small }),
  timezoneData: object({ format: word('iana-tzdb'), revision: rid, sha256: digest }),
  requiredCapabilities: list(id, many),
})

function renderShape(names: WireNames) {
  const scene = object({
    ...{ key: text(), sha256: digest, sizeBytes: whole(1, sceneBytesMax), contentType: word(names.sceneMediaType) },
  })
  const { screens, transitions, asset, videoElements } = manifestParts
  const addressed: Shape<object> = (value, path, findings) => {
    const { key: _, ...rest } = isObject(value) ? value : {}
    asset(isObject(value) ? rest : value, path, findings)
  }
  return object(
    {
      ...{ renderer: word(names.native), [names.native]: scene, screens, transitions },
      ...{ textInputs: list(id, { max: 0 }), assets: list(addressed, { max: 1024 }) },
    },
    { videoElements },
  )
}

/** Their shapes, for the descriptor's. */
export function showingShapes(names: WireNames) {
  return {
    products: list(product, many),
    placements: placementsShape,
    viewModelValues: viewModelValuesShape,
    screenBehaviors: list(object({ screenId: id, controls: controlsShape }, { script }), many),
    render: nullOr(renderShape(names)),
    requirements: nullOr(requirements),
    state: stateShape,
    responses: formsShape,
    ruleGroups: groupsShape,
  }
}

/** A descriptor's parts, whose shapes were found right. */
export interface ShowingParts {
  leg: {
    screens: { id: string }[]
    offers: { placementIds: string[] }[]
    steps: { kind: string; action?: JsonObject }[]
  }
  products: {
    id: string
    type: string
    store: JsonObject
    entitlements: { id: string; purchaseUsageFeatureIds: string[] }[]
  }[]
  placements: { id: string; productId: string; googlePlay?: object }[]
  screenBehaviors: {
    screenId: string
    controls: { actionId: string; behavior: { kind: string } }[]
    script?: { artifact: Artefact; exportedActionIds: string[] }
  }[]
  render: (Omit<Manifest, 'scene'> & Record<string, unknown>) | null
  requirements: { requiredCapabilities: string[]; luau: { bytecodeVersions: number[] } } | null
  state: object
  responses: Forms
  ruleGroups: Groups
}

/** The first thing that is wrong between them. */
export function checkShowing(names: WireNames, parts: ShowingParts, findings: Findings): string | undefined {
  return (
    checkSold(parts) ?? checkBehaviors(parts) ?? checkFormsOf(parts, findings) ?? checkRender(names, parts, findings)
  )
}

const ascends = (keys: (string | number)[]) => keys.every((key, i) => i === 0 || (keys[i - 1] ?? key) < key)
const same = (one: string[], other: string[]) => isDeepStrictEqual(one.toSorted(), other.toSorted())

function checkSold({ products, placements, leg }: ShowingParts): string | undefined {
  if (!ascends(products.map((one) => one.id))) return 'the products do not ascend'
  if (!ascends(placements.map((one) => one.id))) return 'the placements do not ascend'
  const stores = products.map((one) =>
    JSON.stringify(Object.entries(one.store).toSorted(([a], [b]) => (a < b ? -1 : 1))),
  )
  if (new Set(stores).size !== stores.length) return 'a store product is sold twice'
  for (const { id: productId, type, store: sold, entitlements } of products) {
    const { platform, productType, basePlanId, purchaseOptionId } = sold
    const isSubscription = type === 'subscription'
    const fits = isSubscription ? ['autoRenewable', 'nonRenewing', 'subscription'] : [type]
    if (!fits.includes(String(productType))) return `product ${productId} is sold as something else`
    const isPlay = platform === 'google_play'
    if (isPlay && (basePlanId !== undefined) !== isSubscription) return `product ${productId} has a base plan, or none`
    if (isPlay && purchaseOptionId !== undefined && isSubscription) return `product ${productId} has a purchase option`
    if (!ascends(entitlements.map((one) => one.id))) return `the entitlements of product ${productId} do not ascend`
    if (!entitlements.every((one) => ascends(one.purchaseUsageFeatureIds))) return 'the used Features do not ascend'
  }
  for (const { id: placementId, productId, googlePlay } of placements) {
    const of = products.find((one) => one.id === productId)
    if (!of) return `placement ${placementId} sells no product`
    if (googlePlay && of.store.platform !== 'google_play')
      return `placement ${placementId} has an offer of another store`
  }
  const bought = leg.steps.flatMap(({ action }) => (action?.type === 'purchase' ? [namedIn(action.placementId)] : []))
  const named = [...bought, ...leg.offers.flatMap(({ placementIds }) => placementIds)]
  const lost = named.find((one) => one !== undefined && !placements.some((placement) => placement.id === one))
  return lost === undefined ? undefined : `placement ${lost} does not exist`
}

/** Undefined: a view model names it. */
function namedIn(placementId: unknown): string | undefined {
  if (!isObject(placementId)) return String(placementId)
  return typeof placementId.literal === 'string' ? placementId.literal : undefined
}

function checkBehaviors({ screenBehaviors: all, leg: { screens } }: ShowingParts): string | undefined {
  const behaving = all.map(({ screenId }) => screenId)
  if (!ascends(behaving)) return 'the behaviours do not ascend'
  if (
    !same(
      behaving,
      screens.map((screen) => screen.id),
    )
  )
    return 'the behaviours are not those of the screens'
  for (const { screenId, controls, script: sent } of all) {
    if (!ascends(controls.map(({ actionId }) => actionId))) return `the controls of ${screenId} do not ascend`
    const scripted = controls.filter(({ behavior }) => behavior.kind === 'script').map(({ actionId }) => actionId)
    if ((sent !== undefined) !== scripted.length > 0) return `screen ${screenId} has a script, or none`
    if (sent && !isDeepStrictEqual(sent.exportedActionIds, scripted)) return `the script of ${screenId} exports others`
  }
  return undefined
}

function checkFormsOf({ state, responses, ruleGroups: groups }: ShowingParts, findings: Findings): string | undefined {
  checkForms(
    { state, forms: responses, groups },
    { state: '/state', forms: '/responses', groups: '/ruleGroups' },
    findings,
  )
  const [first] = findings.issues
  return first && `${first.path}: ${first.message}`
}

function checkRender(names: WireNames, parts: ShowingParts, findings: Findings): string | undefined {
  const { render, requirements: needed, leg } = parts
  if (leg.screens.length === 0) {
    return render === null && needed === null ? undefined : 'there is something to show, and no screen'
  }
  if (render === null || needed === null) return 'there is a screen, and nothing to show'
  if (
    !same(
      render.screens.map((one) => one.id),
      leg.screens.map((one) => one.id),
    )
  )
    return 'other screens are rendered'
  checkParts(render, findings)
  const [first] = findings.issues
  if (first) return `/render${first.path}: ${first.message}`
  if (!ascends(needed.luau.bytecodeVersions)) return 'the bytecode versions do not ascend'
  if (!ascends(needed.requiredCapabilities)) return 'the capabilities do not ascend'
  const assets: JsonObject[] = render.assets
  const keys = assets.map(({ key, assetUniqueName }) =>
    typeof key === 'string' ? key : `system-font:${String(assetUniqueName)}`,
  )
  if (!ascends(keys)) return 'the assets do not ascend'
  const has = (capability: string, needs: boolean) => !needs || needed.requiredCapabilities.includes(capability)
  const isThere = (what: (asset: JsonObject) => boolean) => assets.some(what)
  if (
    !has(
      'system-fonts',
      isThere(({ location }) => location === 'system'),
    )
  )
    return 'system-fonts is not asked for'
  if (
    !has(
      'video.playback.v1',
      isThere(({ kind }) => kind === 'video'),
    )
  )
    return 'video.playback.v1 is not asked for'
  return checkFiles(names, parts)
}

function checkFiles(names: WireNames, parts: ShowingParts): string | undefined {
  const files = artefactsIn(names, parts)
  for (const { key, sha256, contentType } of files) {
    const known = fileAt(names, key)
    if (known?.sha256 !== sha256 || known.contentType !== contentType) return `${key} is not the address of the file`
  }
  const distinct = new Map(files.map((file) => [file.sha256, file]))
  if (new Set(files.map((file) => JSON.stringify(file))).size !== distinct.size) return 'equal files are told apart'
  const bytesOf = (all: Artefact[]) => all.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  if (bytesOf([...distinct.values()]) > releaseArtefactsBytesMax) return 'the files are too large'
  const scripts = parts.screenBehaviors.flatMap(({ script: one }) => (one ? [one.artifact] : []))
  const total = bytesOf([...new Map(scripts.map((one) => [one.sha256, one])).values()])
  return total > releaseScriptsBytesMax ? 'the scripts are too large' : undefined
}

/** Every file that a device fetches for it. */
function artefactsIn(names: WireNames, { render, screenBehaviors }: Pick<ShowingParts, 'render' | 'screenBehaviors'>) {
  const scene = render?.[names.native]
  const assets: JsonObject[] = render?.assets ?? []
  const files = [...(isObject(scene) ? [scene] : []), ...assets.filter(({ key }) => key !== undefined)]
  const scripts = screenBehaviors.flatMap(({ script: one }) => (one ? [one.artifact] : []))
  // Their shapes were found right, or they are made by the compiler.
  return [...(files as unknown as Artefact[]), ...scripts].map(({ key, sha256, sizeBytes, contentType }) => {
    return { key, sha256, sizeBytes, contentType }
  })
}

/** Digests of the files that a compiled leg names. */
export function filesIn(names: WireNames, body: object): string[] {
  return artefactsIn(names, body as ShowingParts).map(({ sha256 }) => sha256) // made by the compiler
}
