import { assert } from '../kernel/assert.ts'
import type { Wire } from './types.ts'

/** A profile on its way out: what is the customer's own, then what everybody with the same arms is sent. */
export interface Body {
  /** Up to and including the facts. */
  text: string
  /** Arms and releases. It may be in other profiles too. */
  rest: Buffer
}

/** The arms, and the releases in their order, each as JSON. */
export interface Told {
  arms: readonly string[]
  releases: readonly Buffer[]
}

/** By the process's own addresses: the same for every profile. */
const heads = new WeakMap<Wire, string>()

/** Up to the facts. */
export function headOf(wire: Wire, features: object[]): string {
  let head = heads.get(wire)
  if (head === undefined) {
    const { names, renderBaseUrl, assetBaseUrl } = wire
    const delivery = { renderBaseUrl, assetBaseUrl }
    head = `${JSON.stringify({ schemaVersion: names.profileSchema, status: 'ok', delivery }).slice(0, -1)},"features":`
    heads.set(wire, head)
  }
  return `${head}${JSON.stringify(features)},"facts":`
}

const [beforeArms, beforeReleases, end] = [',"armedLegs":[', '],"releases":[', ']}']
const comma = 0x2c

/** Bytes of what `restOf` makes. */
export function restSizeOf({ arms, releases }: Told): number {
  let size = beforeArms.length + beforeReleases.length + end.length
  size += Math.max(arms.length - 1, 0) + Math.max(releases.length - 1, 0)
  for (const arm of arms) size += Buffer.byteLength(arm)
  for (const json of releases) size += json.length
  return size
}

/** One copy of each release: nothing of it is read or written as text again. */
export function restOf(told: Told): Buffer {
  const bytes = Buffer.allocUnsafeSlow(restSizeOf(told))
  let at = bytes.write(`${beforeArms}${told.arms.join(',')}${beforeReleases}`)
  for (const [i, json] of told.releases.entries()) {
    if (i > 0) bytes[at++] = comma
    at += json.copy(bytes, at)
  }
  assert(at + bytes.write(end, at) === bytes.length, 'every byte of a profile is written')
  return bytes
}

export function bytesOf({ text, rest }: Body): Buffer {
  return Buffer.concat([Buffer.from(text), rest])
}
