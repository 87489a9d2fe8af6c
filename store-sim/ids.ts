import { createHash } from 'node:crypto'

/** What ids are made of: the same seed and the same steps give the same ids. */
export interface Seeded {
  seed: string
  counters: Record<string, number>
}

/** Unique within its kind; looks like the store's own numbers. */
export function numberId(world: Seeded, kind: string, prefix: string, digits: number): string {
  const ofSeed = String(digest(world, 'numbers', 0).readUInt32BE() % 10_000).padStart(4, '0')
  return prefix + ofSeed + String(step(world, kind)).padStart(digits, '0')
}

export function uuid(world: Seeded, kind: string): string {
  const bytes = digest(world, kind, step(world, kind)).subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Letters and digits as stores write them, of any length. */
export function opaque(world: Seeded, kind: string, length: number): string {
  const n = step(world, kind)
  let text = ''
  for (let part = 0; text.length < length; part++) text += digest(world, `${kind}/${part}`, n).toString('hex')
  return text.slice(0, length)
}

/** From 0 up to 1, for faults that strike now and then. */
export function chance(world: Seeded, kind: string): number {
  return digest(world, kind, step(world, kind)).readUInt32BE() / 2 ** 32
}

function step(world: Seeded, kind: string): number {
  const n = (world.counters[kind] ?? 0) + 1
  world.counters[kind] = n
  return n
}

function digest(world: Seeded, kind: string, n: number): Buffer {
  return createHash('sha256').update(`${world.seed}/${kind}/${n}`).digest()
}
