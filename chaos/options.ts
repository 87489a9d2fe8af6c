import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'

export interface Options {
  /** Of trouble; starting, settling and proving come on top. */
  durationMs: number
  seed: string
}

export const usage = 'npm run chaos -- [--minutes 2] [--seed WORD]'
const minutesMax = 7 * 24 * 60

/** Throws with one line for what it does not understand. */
export function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: { minutes: { type: 'string', default: '2' }, seed: { type: 'string' } },
  })
  const minutes = Number(values.minutes)
  if (!(minutes >= 0.1 && minutes <= minutesMax)) throw new Error(`--minutes is a number from 0.1 to ${minutesMax}`)
  const seed = values.seed ?? String(randomInt(1, 2 ** 31))
  if (!/^[\w-]{1,64}$/.test(seed)) throw new Error('--seed is 1 to 64 letters, digits, _ or -')
  return { durationMs: minutes * 60_000, seed }
}
