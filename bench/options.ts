import { parseArgs } from 'node:util'

export const caseNames = [
  'event',
  'batch',
  'entitled',
  'entitled_1m',
  'consume',
  'consume_1k',
  'consume_100k',
  'consume_1m',
  'consume_hot',
  'profile_200',
  'profile_304',
  'customers',
  'profile_legs',
] as const
export type CaseName = (typeof caseNames)[number]

/** Seeding 100,000 customers and more takes minutes, so it is done only for those who ask. */
const onlyWhenAsked: CaseName[] = ['entitled_1m', 'consume_100k', 'consume_1m']

export interface Options {
  cases: CaseName[]
  /** Measured seconds of each round, and how many rounds each server gets in each case. */
  seconds: number
  rounds: number
  warmupS: number
  connections: number
  /** Calls of `/batch` under way at once: each carries a thousand events. */
  batchConnections: number
  /** Made before the first case, for the lane to keep up. */
  segments: number
  /** Where the figures are written as JSON. */
  json: string | undefined
}

export const usage = `npm run bench -- [--cases ${caseNames.join(',')}] [--seconds 5] [--rounds 3] [--warmup 1]
                 [--connections 128] [--batch-connections 8] [--segments 0] [--json FILE]`

/** Throws with one line for what it does not understand. */
export function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      cases: { type: 'string' },
      seconds: { type: 'string', default: '5' },
      rounds: { type: 'string', default: '3' },
      warmup: { type: 'string', default: '1' },
      connections: { type: 'string', default: '128' },
      'batch-connections': { type: 'string', default: '8' },
      segments: { type: 'string', default: '0' },
      json: { type: 'string' },
    },
  })
  return {
    cases: values.cases ? namesOf(values.cases) : caseNames.filter((name) => !onlyWhenAsked.includes(name)),
    seconds: numberOf('--seconds', values.seconds, 0.5, 600),
    rounds: wholeOf('--rounds', values.rounds, 100),
    warmupS: numberOf('--warmup', values.warmup, 0.1, 60),
    connections: wholeOf('--connections', values.connections, 4096),
    batchConnections: wholeOf('--batch-connections', values['batch-connections'], 1024),
    segments: wholeOf('--segments', values.segments, 200, 0),
    json: values.json,
  }
}

function namesOf(list: string): CaseName[] {
  return list.split(',').map((text) => {
    const name = caseNames.find((known) => known === text.trim())
    if (!name) throw new Error(`--cases: there is no case "${text}"; there are ${caseNames.join(', ')}`)
    return name
  })
}

function numberOf(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (!(value >= least && value <= most)) throw new Error(`${name} is a number from ${least} to ${most}`)
  return value
}

function wholeOf(name: string, text: string, most: number, least = 1): number {
  const value = numberOf(name, text, least, most)
  if (!Number.isInteger(value)) throw new Error(`${name} is a whole number`)
  return value
}
