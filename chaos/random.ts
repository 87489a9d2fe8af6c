import { hash } from 'node:crypto'

/** Choices that follow from a seed and a name alone: the same on every machine and in every process. */
export interface Random {
  /** A whole number from 0 to `limit` − 1. */
  below(limit: number): number
  /** True with this probability. */
  chance(probability: number): boolean
  pick<Value>(values: readonly Value[]): Value
  shuffled<Value>(values: readonly Value[]): Value[]
  uuid(): string
}

/** A stream of its own for every list of names. */
export function randomOf(seed: string, ...names: (string | number)[]): Random {
  const bytes = hash('sha256', JSON.stringify([seed, ...names]), 'buffer')
  let [a, b, c, d] = [0, 4, 8, 12].map((at) => bytes.readInt32LE(at)) as [number, number, number, number] // four of four

  /** 32 bits, by sfc32: small, fast, and without the patterns of a linear generator. */
  function next(): number {
    const sum = (((a + b) | 0) + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + sum) | 0
    return sum >>> 0
  }

  const below = (limit: number) => Math.floor((next() / 2 ** 32) * limit)
  const hex = () => next().toString(16).padStart(8, '0')
  return {
    below,
    chance: (probability) => next() < probability * 2 ** 32,
    pick: (values) => values[below(values.length)] as (typeof values)[number], // below the length; callers give some
    shuffled(values) {
      const left = [...values]
      return values.map(() => left.splice(below(left.length), 1)[0] as (typeof values)[number]) // one is left each time
    },
    uuid() {
      const [e, f, g, h] = [hex(), hex(), hex(), hex()]
      return `${e}-${f.slice(0, 4)}-4${f.slice(5)}-8${g.slice(1, 4)}-${g.slice(4)}${h}`
    },
  }
}
