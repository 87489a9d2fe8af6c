import { assert } from '../kernel/assert.ts'
import type { Wire } from './types.ts'

/** The text before the releases, and the releases in their order, each as JSON. */
export interface Body {
  front: string
  releases: readonly Buffer[]
}

/** Up to the facts. */
export function headOf({ names, renderBaseUrl, assetBaseUrl }: Wire, features: object[]): string {
  const delivery = { renderBaseUrl, assetBaseUrl }
  const head = JSON.stringify({ schemaVersion: names.profileSchema, status: 'ok', delivery, features })
  return `${head.slice(0, -1)},"facts":`
}

export function frontOf(head: string, facts: string, arms: readonly string[]): string {
  return `${head}${facts},"armedLegs":[${arms.join(',')}],"releases":[`
}

export function sizeOf({ front, releases }: Body): number {
  let size = Buffer.byteLength(front) + Math.max(releases.length - 1, 0) + end.length
  for (const json of releases) size += json.length
  return size
}

/** One copy of each release: nothing of it is read or written as text again. */
export function bytesOf(body: Body): Buffer {
  const bytes = Buffer.allocUnsafe(sizeOf(body))
  let at = bytes.write(body.front)
  for (const [i, json] of body.releases.entries()) {
    if (i > 0) bytes[at++] = comma
    at += json.copy(bytes, at)
  }
  assert(at + end.copy(bytes, at) === bytes.length, 'every byte of a profile is written')
  return bytes
}

const comma = 0x2c
const end = Buffer.from(']}')
