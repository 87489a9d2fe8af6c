import { eventsPerBatch, type Job } from './job.ts'
import type { CaseName, Options } from './options.ts'
import { contestedCustomer, contestedUnits, featureId } from './seed.ts'

export const serverNames = ['echo', 'naive', 'turnpike'] as const
export type ServerName = (typeof serverNames)[number]

/** Customers that requests are spread over, where a case does not say otherwise. */
const spread = 10_000
/** Different batches that a floor which keeps nothing unique is sent over and over. */
const bodiesToRepeat = 64
/** Batches made for each second of a round: more than 200,000 events a second are not expected of anything here. */
const bodiesPerS = 200

type Asked = Pick<Job, 'request' | 'expect'>

export interface Call {
  server: ServerName
  apiKey: string
  /** For cases of the Workspace API. */
  secretKey?: string
  /** First 24 characters of the round's ids. */
  idPrefix: string
}

export function customersOf(name: CaseName): number {
  if (name === 'consume_1m' || name === 'entitled_1m') return 1_000_000
  if (name === 'consume_100k') return 100_000
  if (name === 'consume_1k') return 1000
  return name === 'consume_hot' ? 1 : spread
}

/** Events or units behind one right answer. */
export function itemsOf(name: CaseName): number {
  return name === 'batch' ? eventsPerBatch : 1
}

/** A closed loop at full speed, as every server of the case gets it. */
export function jobOf(name: CaseName, call: Call, options: Options): Omit<Job, 'port'> {
  const { seconds, warmupS, connections, batchConnections } = options
  return {
    connections: name === 'batch' ? batchConnections : connections,
    warmupS,
    seconds,
    requestsMax: name === 'batch' && call.server !== 'echo' ? bodiesFor(options) : Number.MAX_SAFE_INTEGER,
    ratePerS: null,
    ...asked(name, call, options),
  }
}

/** More spending at once than the customer has units: exactly the units are to be accepted. */
export function contestedJob(call: Call, { warmupS, seconds, connections }: Options): Omit<Job, 'port'> {
  const { apiKey, idPrefix } = call
  return {
    connections,
    warmupS,
    seconds,
    requestsMax: 2 * contestedUnits,
    ratePerS: null,
    request: { kind: 'consume', apiKey, featureId, idPrefix, customers: 1, firstCustomer: contestedCustomer },
    expect: { ...expect(['"accepted":true']), denied: '"code":"insufficient_balance"' },
  }
}

function asked(name: CaseName, { server, apiKey, secretKey = apiKey, idPrefix }: Call, options: Options): Asked {
  const customers = customersOf(name)
  const answers = (markers: string[]) => expect(server === 'echo' ? [apiKey] : markers)
  switch (name) {
    case 'event': {
      const request = { kind: 'event', apiKey, idPrefix, customers } as const
      return { request, expect: answers(['"status":"ok"', '"accepted":1,', '"queued":true']) }
    }
    case 'batch': {
      const again = server === 'echo'
      const bodies = again ? bodiesToRepeat : bodiesFor(options)
      const request = { kind: 'batch', apiKey, idPrefix, customers, bodies, again } as const
      return { request, expect: { ...expect(['"status":"success"', `"accepted":${eventsPerBatch}`]), echoes: false } }
    }
    case 'entitled':
    case 'entitled_1m': {
      const request = { kind: 'entitled', apiKey, featureId, customers } as const
      return { request, expect: answers(['"allowed":true', '"code":"feature_found"']) }
    }
    case 'consume':
    case 'consume_1k':
    case 'consume_100k':
    case 'consume_1m':
    case 'consume_hot': {
      const request = { kind: 'consume', apiKey, featureId, idPrefix, customers, firstCustomer: 0 } as const
      return { request, expect: answers(['"accepted":true', '"code":"consumed"', '"idempotentReplay":false']) }
    }
    case 'profile_200': {
      const request = { kind: 'profile', apiKey, customers, etag: 'none' } as const
      return { request, expect: answers(['"status":"ok"', `"id":"${featureId}"`]) }
    }
    case 'profile_legs': {
      const request = { kind: 'profile', apiKey, customers, etag: 'none' } as const
      const legs = server === 'turnpike' ? ['"binding":{"type":"new"}', '"descriptorSizeBytes":4096'] : []
      return { request, expect: answers(['"status":"ok"', ...legs]) }
    }
    case 'profile_304': {
      const etag = server === 'echo' ? 'made_up' : 'learn'
      const request = { kind: 'profile', apiKey, customers, etag } as const
      if (server === 'echo') return { request, expect: { ...answers([]), echoes: false } }
      return { request, expect: { ...expect([]), status: 304 } }
    }
    case 'customers': {
      const request = { kind: 'customer', secretKey: server === 'naive' ? apiKey : secretKey, customers } as const
      return { request, expect: expect(server === 'echo' ? [] : ['"object":"list"', '"object":"customer"']) }
    }
  }
}

function expect(markers: string[]): Job['expect'] {
  return { status: 200, markers, echoes: true, denied: null }
}

function bodiesFor({ seconds, warmupS }: Options): number {
  return Math.ceil((seconds + warmupS) * bodiesPerS)
}
