import {
  type At,
  also,
  areDistinct,
  ascending,
  type Check,
  digest,
  distinct,
  exact,
  flag,
  hold,
  id,
  integer,
  into,
  is,
  isObject,
  list,
  matching,
  nullOr,
  number,
  type Of,
  positive,
  rid,
  text,
  textUpTo,
} from './check.ts'
import type { Artefact } from './screen-behaviors.ts'

const mebibyte = 1024 * 1024
const exit = exact({ completeEventName: rid, durationMs: integer(0, 60_000) })
const side = exact({ completeEventName: rid })

const screen = exact(
  { id: rid, artboardId: rid, artboardName: id(), width: positive(16_384), height: positive(16_384) },
  { exit },
)
const transition = exact(
  {
    id: rid,
    kind: is('choreographed'),
    sourceScreenId: rid,
    destinationScreenId: rid,
    durationMs: integer(0, 60_000),
    incomingOnTop: flag,
    source: side,
    destination: side,
  },
  { reverse: exact({ source: side, destination: side }, { durationMs: integer(0, 60_000), incomingOnTop: flag }) },
)

const stored = { key: text, sha256: digest, sizeBytes: integer(0, 32 * mebibyte), contentType: text, required: flag }
const named = { authoredAssetId: integer(), assetUniqueName: rid }

const image = exact({
  kind: is('image'),
  ...stored,
  ...named,
  width: integer(1, 65_535),
  height: integer(1, 65_535),
})
const font = exact({
  kind: is('font'),
  ...stored,
  ...named,
  location: is('cdn'),
  family: also(id(), (family, at) => hold(at, family.toLowerCase() !== 'system', 'is not "system"')),
  weight: id(32),
  style: is('normal', 'italic'),
  format: is('ttf', 'otf'),
})
const systemFont = exact({
  kind: is('font'),
  location: is('system'),
  ...named,
  family: is('System'),
  weight: matching(/^[1-9]00$/),
  style: is('normal'),
  required: is(true),
})
const captionTrack = exact({
  streamIndex: integer(),
  codec: is('mov_text'),
  language: nullOr(textUpTo(128)),
  title: nullOr(textUpTo(512)),
})
const ascendingTracks = also(list(captionTrack, { max: 16 }), (tracks, at) =>
  hold(at, ascends(tracks.map((each) => each.streamIndex)), 'ascends by stream index'),
)
const video = exact({
  kind: is('video'),
  ...stored,
  ...named,
  sizeBytes: integer(1, 32 * mebibyte),
  sourceAssetKey: also(matching(/^asset:[A-Za-z0-9_-]+$/), (key, at) =>
    hold(at, key.length <= 128, 'has at most 128 units'),
  ),
  width: integer(1, 8192),
  height: integer(1, 8192),
  durationMs: integer(1),
  videoCodec: matching(/^avc[13]\.[0-9a-fA-F]{6}$/),
  audioCodec: nullOr(is('mp4a.40.2')),
  captionTracks: ascendingTracks,
})
const code = exact({ kind: is('script', 'shader'), ...stored })

type Stored = Of<typeof image> | Of<typeof font> | Of<typeof video> | Of<typeof code>
type Asset = Stored | Of<typeof systemFont>

const asset: Check<Asset> = (value, at): value is Asset => {
  const [kind, location] = isObject(value) ? [value.kind, value.location] : []
  if (kind === 'font') return location === 'system' ? systemFont(value, at) : also(font, checkAddress)(value, at)
  if (kind === 'image') return also(image, checkAddress)(value, at)
  if (kind === 'video') return also(video, checkAddress)(value, at)
  return also(code, checkAddress)(value, at)
}

const videoElement = exact({
  artboardId: rid,
  viewNodeId: rid,
  renderedNodeId: rid,
  componentId: integer(1, 4_294_967_295),
  readinessTimeoutSeconds: number(0, 60),
  optional: flag,
})
const videoElements = also(list(videoElement, { max: 4096 }), (all, at) => {
  const once = (of: (each: Of<typeof videoElement>) => unknown) =>
    areDistinct(all.map((each) => JSON.stringify([each.artboardId, of(each)])))
  hold(
    at,
    once((each) => each.viewNodeId),
    'has each node of an artboard once',
  )
  hold(
    at,
    once((each) => each.componentId),
    'has each component of an artboard once',
  )
})

const parts = {
  screens: distinct(list(screen, { min: 1, max: 256 }), (each) => each.id, 'screen id'),
  transitions: distinct(list(transition, { max: 1024 }), (each) => each.id, 'transition id'),
  // Its element shape is not fixed: a publication has none.
  textInputs: list(text, { max: 0 }),
  assets: ascending(list(asset, { max: 1024 }), sortKey, 'key'),
}
type Parts = { [K in keyof typeof parts]: Of<(typeof parts)[K]> }
export interface Render extends Parts {
  scene: Artefact
}

/** The scene and what it is made of; its own key is the word that names the renderer. */
export const render: Check<Record<string, unknown> & Parts> = (value, at): value is Record<string, unknown> & Parts => {
  const native = nativeOf(at.namespace)
  const scene = exact({
    key: text,
    sha256: digest,
    sizeBytes: integer(1, 64 * mebibyte),
    contentType: is(`application/vnd.${at.namespace}.scene`),
  })
  const whole = exact({ renderer: is(native), [native]: also(scene, checkSceneKey), ...parts }, { videoElements })
  return also(whole as Check<Parts>, checkParts)(value, at)
}

/** The word for the renderer, its scenes and their files. */
export function nativeOf(namespace: string): string {
  return namespace.slice(0, 3)
}

function checkSceneKey({ key, sha256 }: { key: string; sha256: string }, at: At): void {
  hold(into(at, 'key'), key === `renders/sha256/${sha256}.${nativeOf(at.namespace)}`, 'is the address of the content')
}

function checkParts({ screens, transitions, assets }: Parts, at: At): void {
  const shown = new Set(screens.map((each) => each.id))
  transitions.forEach(({ sourceScreenId, destinationScreenId }, index) => {
    const here = into(into(at, 'transitions'), index)
    hold(here, shown.has(sourceScreenId) && shown.has(destinationScreenId), 'leads from a screen to a screen')
  })
  const authored = assets.flatMap((each) => ('assetUniqueName' in each ? [each] : []))
  const here = into(at, 'assets')
  hold(here, areDistinct(authored.map((each) => each.assetUniqueName)), 'has each unique name once')
  hold(here, areDistinct(authored.map((each) => String(each.authoredAssetId))), 'has each authored id once')
  const sources = assets.flatMap((each) => (each.kind === 'video' ? [each.sourceAssetKey] : []))
  hold(here, areDistinct(sources), 'has each source of a video once')
}

function checkAddress(sent: Stored, at: At): void {
  const known = fileTypes(sent).find(({ contentType }) => contentType === sent.contentType)
  hold(into(at, 'contentType'), known !== undefined, 'is a type of this kind')
  const addressed = known === undefined || sent.key === `assets/sha256/${sent.sha256}.${known.extension}`
  hold(into(at, 'key'), addressed, 'is the address of the content')
}

function fileTypes(sent: Stored): { contentType: string; extension: string }[] {
  const binary = { contentType: 'application/octet-stream', extension: 'bin' }
  switch (sent.kind) {
    case 'image':
      return ['png', 'jpeg', 'webp'].map((each) => ({
        contentType: `image/${each}`,
        extension: each === 'jpeg' ? 'jpg' : each,
      }))
    case 'font':
      return [{ contentType: `font/${sent.format}`, extension: sent.format }, binary]
    case 'video':
      return [{ contentType: 'video/mp4', extension: 'mp4' }]
    case 'script':
    case 'shader':
      return [binary]
  }
}

function sortKey(each: Asset): string {
  return 'key' in each ? each.key : `system-font:${each.assetUniqueName}`
}

/** What clients download of it, the scene first. */
export function artefactsOf(sent: Record<string, unknown> & Parts, namespace: string): Artefact[] {
  const scene = sent[nativeOf(namespace)] as Artefact // shown by `render`
  return [scene, ...sent.assets.flatMap((each) => ('key' in each ? [each] : []))]
}

/** What a device must be able to do for it. */
export function capabilitiesOf({ assets }: Parts): string[] {
  const needs = (has: boolean, capability: string) => (has ? [capability] : [])
  return [
    ...needs(
      assets.some((each) => each.kind === 'font' && each.location === 'system'),
      'system-fonts',
    ),
    ...needs(
      assets.some((each) => each.kind === 'video'),
      'video.playback.v1',
    ),
  ]
}

function ascends(numbers: number[]): boolean {
  return numbers.every((each, index) => index === 0 || (numbers[index - 1] ?? each) < each)
}
