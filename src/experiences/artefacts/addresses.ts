import { assetBytesMax, manifestBytesMax, sceneBytesMax } from '../../kernel/limits.ts'
import type { WireNames } from '../../kernel/wire-names.ts'

/** A file that clients fetch: under an address made of its hash, so that it can never become another. */
export interface Artefact {
  key: string
  sha256: string
  sizeBytes: number
  contentType: string
}

/** Endings by type. A manifest has none: it is read by the compiler only. */
const endings: Record<string, string> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'font/ttf': 'ttf',
  'font/otf': 'otf',
  'video/mp4': 'mp4',
  'application/octet-stream': 'bin',
}
export const manifestType = 'application/json'

/** Everything that may be uploaded, with the most bytes it may have. */
export function uploadTypes({ sceneMediaType }: WireNames): ReadonlyMap<string, number> {
  const assets = Object.keys(endings).map((type) => [type, assetBytesMax] as const)
  return new Map([[sceneMediaType, sceneBytesMax], [manifestType, manifestBytesMax], ...assets])
}

export function sceneKey({ native }: WireNames, sha256: string): string {
  return `renders/sha256/${sha256}.${native}`
}

export function assetKey(sha256: string, contentType: string): string {
  return `assets/sha256/${sha256}.${endings[contentType] ?? ''}`
}

export function scriptKey(sha256: string): string {
  return `screen-behavior/sha256/${sha256}.bin`
}

/** What lies at an address; undefined for one that is none. */
export function fileAt(names: WireNames, key: string): { sha256: string; contentType: string } | undefined {
  const [, folder, sha256 = '', ending] = /^([a-z-]+)\/sha256\/([a-f0-9]{64})\.([a-z0-9]+)$/.exec(key) ?? []
  if (folder === 'renders') return ending === names.native ? { sha256, contentType: names.sceneMediaType } : undefined
  if (folder === 'screen-behavior')
    return ending === 'bin' ? { sha256, contentType: 'application/octet-stream' } : undefined
  const found = Object.entries(endings).find(([, known]) => known === ending)
  return folder === 'assets' && found ? { sha256, contentType: found[0] } : undefined
}
