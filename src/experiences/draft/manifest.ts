import { assetBytesMax, draftScreensMax, sceneBytesMax } from '../../kernel/limits.ts'
import { assetKey } from '../artefacts/addresses.ts'
import { Findings, under } from './findings.ts'
import {
  boolean,
  either,
  isObject,
  list,
  number,
  object,
  pattern,
  type Shape,
  type Shaped,
  text,
  that,
  whole,
  word,
} from './shape.ts'
import { id } from './values.ts'

/** What the screen exporter says of one locale: the scene, and everything that it needs, as descriptors carry it but for addresses. */

export const rid = that<string>(
  'text of 1 to 128 characters without NUL',
  (one) => typeof one === 'string' && one !== '' && one.length <= 128 && !one.includes('\0'),
)
export const digest = pattern('a SHA-256 in hexadecimal digits, lower case', /^[a-f0-9]{64}$/)
const above0 = (max: number) =>
  that<number>(`a number above 0, at most ${max}`, (one) => typeof one === 'number' && one > 0 && one <= max)
const ms = whole(0, 60_000)
const side = object({ completeEventName: rid })
const nullOr = <T>(shape: Shape<T>): Shape<T | null> => either((one) => one === null, word(null), shape)

const screen = object(
  { id: rid, artboardId: rid, artboardName: id, width: above0(16_384), height: above0(16_384) },
  { exit: object({ completeEventName: rid, durationMs: ms }) },
)
const transition = object(
  {
    ...{ id: rid, kind: word('choreographed'), sourceScreenId: rid, destinationScreenId: rid, durationMs: ms },
    ...{ incomingOnTop: boolean, source: side, destination: side },
  },
  { reverse: object({ source: side, destination: side }, { durationMs: ms, incomingOnTop: boolean }) },
)

const file = { sha256: digest, sizeBytes: whole(0, assetBytesMax), required: boolean }
const named = { authoredAssetId: whole(0, Number.MAX_SAFE_INTEGER), assetUniqueName: rid }
const binary = word('application/octet-stream')

const image = object({
  ...{ kind: word('image'), ...file, ...named, width: whole(1, 65_535), height: whole(1, 65_535) },
  contentType: word('image/png', 'image/jpeg', 'image/webp'),
})
const family = that<string>(
  'a name of 1 to 256 characters, not "system"',
  (one) => typeof one === 'string' && one !== '' && one.length <= 256 && one.toLowerCase() !== 'system',
)
const fontOf = (format: 'ttf' | 'otf') =>
  object({
    ...{ kind: word('font'), location: word('cdn'), ...file, ...named, family, weight: text({ max: 32 }) },
    ...{ style: word('normal', 'italic'), format: word(format) },
    contentType: word(`font/${format}`, 'application/octet-stream'),
  })
const systemFont = object({
  ...{ kind: word('font'), location: word('system'), ...named, family: word('System') },
  ...{ weight: pattern('"100" to "900"', /^[1-9]00$/), style: word('normal'), required: word(true) },
})
const track = object({
  streamIndex: whole(0, Number.MAX_SAFE_INTEGER),
  codec: word('mov_text'),
  language: nullOr(text({ min: 0, max: 128 })),
  title: nullOr(text({ min: 0, max: 512 })),
})
const video = object({
  ...{ kind: word('video'), ...file, ...named, sizeBytes: whole(1, assetBytesMax), contentType: word('video/mp4') },
  sourceAssetKey: pattern('asset: and a name', /^asset:[A-Za-z0-9_-]{1,122}$/),
  ...{ width: whole(1, 8192), height: whole(1, 8192), durationMs: whole(1, Number.MAX_SAFE_INTEGER) },
  videoCodec: pattern('a codec such as avc1.64001f', /^avc[13]\.[0-9a-fA-F]{6}$/),
  audioCodec: nullOr(word('mp4a.40.2')),
  captionTracks: list(track, { max: 16 }),
})
const code = object({ kind: word('script', 'shader'), ...file, contentType: binary })

export type FileAsset =
  | Shaped<typeof image>
  | Shaped<ReturnType<typeof fontOf>>
  | Shaped<typeof video>
  | Shaped<typeof code>
export type Asset = FileAsset | Shaped<typeof systemFont>

const asset: Shape<Asset> = (value, path, findings) => {
  const { kind, location, format } = isObject(value) ? value : {}
  if (kind === 'font' && location === 'system') systemFont(value, path, findings)
  else if (kind === 'font') fontOf(format === 'otf' ? 'otf' : 'ttf')(value, path, findings)
  else if (kind === 'image') image(value, path, findings)
  else if (kind === 'video') video(value, path, findings)
  else code(value, path, findings)
}

const videoElement = object({
  ...{ artboardId: rid, viewNodeId: rid, renderedNodeId: rid, componentId: whole(1, 4_294_967_295) },
  ...{ readinessTimeoutSeconds: number(0, 60), optional: boolean },
})

export const manifestParts = {
  screens: list(screen, { min: 1, max: draftScreensMax }),
  transitions: list(transition, { max: 1024 }),
  asset,
  videoElements: list(videoElement, { max: 4096 }),
}
const manifest = object(
  {
    scene: object({ sha256: digest, sizeBytes: whole(1, sceneBytesMax) }),
    screens: manifestParts.screens,
    transitions: manifestParts.transitions,
    assets: list(asset, { max: 1024 }),
  },
  {
    // What it may hold is not fixed in this version of the format.
    textInputs: list(
      that<never>('left out', () => false),
      { max: 0 },
    ),
    videoElements: manifestParts.videoElements,
  },
)
export type Manifest = Shaped<typeof manifest>

export function isFile(one: Asset): one is FileAsset {
  return 'sha256' in one
}

/** By what assets are told apart, and in what order they are sent. */
export function sortKeyOf(one: Asset): string {
  return isFile(one) ? assetKey(one.sha256, one.contentType) : `system-font:${one.assetUniqueName}`
}

/** What a device must be able to do for it, besides rendering. */
export function capabilitiesOf({ assets }: Manifest): string[] {
  const fonts = assets.some((one) => !isFile(one)) ? ['system-fonts'] : []
  return assets.some(({ kind }) => kind === 'video') ? [...fonts, 'video.playback.v1'] : fonts
}

/** What is wrong with a manifest, told at the place in the draft that names it. */
export function checkManifest(value: unknown, path: string, findings: Findings): value is Manifest {
  const own = new Findings()
  manifest(value, '', own)
  if (own.issues.length === 0) checkParts(value as Manifest, own) // its shape was just found right
  for (const { path: inside, message } of own.issues) {
    findings.add(path, 'value_invalid', `In the manifest, ${inside === '' ? 'at the root' : inside}: ${message}`)
  }
  return own.issues.length === 0
}

/** What clients ask of the parts of a scene beyond their shapes. */
export function checkParts(
  { screens, transitions, assets, videoElements = [] }: Omit<Manifest, 'scene'>,
  findings: Findings,
): void {
  const once = (part: string, keys: string[], what: string) => {
    const seen = new Set<string>()
    const twice = keys.findIndex((key) => seen.size === seen.add(key).size)
    if (twice >= 0) findings.add(under('', part, twice), 'id_duplicate', `${what} ${keys[twice] ?? ''} is there twice.`)
  }
  once(
    'screens',
    screens.map(({ id: one }) => one),
    'Screen',
  )
  once(
    'transitions',
    transitions.map(({ id: one }) => one),
    'Transition',
  )
  once('assets', assets.map(sortKeyOf), 'Asset')
  const authored = assets.flatMap((one) => ('assetUniqueName' in one ? [one] : []))
  once(
    'assets',
    authored.map((one) => one.assetUniqueName),
    'Asset',
  )
  once(
    'assets',
    authored.map((one) => String(one.authoredAssetId)),
    'Asset',
  )
  once(
    'assets',
    assets.flatMap((one) => (one.kind === 'video' ? [one.sourceAssetKey] : [])),
    'Video',
  )
  once(
    'videoElements',
    videoElements.map((one) => `${one.artboardId} ${one.viewNodeId}`),
    'Node',
  )
  once(
    'videoElements',
    videoElements.map((one) => `${one.artboardId} ${one.componentId}`),
    'Component',
  )
  const known = new Set(screens.map(({ id: one }) => one))
  for (const [i, { sourceScreenId, destinationScreenId }] of transitions.entries()) {
    if (known.has(sourceScreenId) && known.has(destinationScreenId)) continue
    findings.add(under('/transitions', i), 'value_invalid', 'This must lead from a screen to a screen.')
  }
  for (const [i, one] of assets.entries()) {
    const indexes = one.kind === 'video' ? one.captionTracks.map(({ streamIndex }) => streamIndex) : []
    if (indexes.every((index, n) => n === 0 || (indexes[n - 1] ?? index) < index)) continue
    findings.add(under('/assets', i, 'captionTracks'), 'value_invalid', 'This must ascend by streamIndex.')
  }
}
