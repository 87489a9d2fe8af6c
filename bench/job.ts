/** What run.ts tells a generator process on its standard input, and what comes back on its output, a JSON line each. */

export type RequestSpec =
  | { kind: 'event'; apiKey: string; idPrefix: string; customers: number }
  /** `bodies` different compressed batches are made beforehand; `again` sends them over and over, for servers that keep nothing unique. */
  | { kind: 'batch'; apiKey: string; idPrefix: string; customers: number; bodies: number; again: boolean }
  | { kind: 'entitled'; apiKey: string; featureId: string; customers: number }
  | {
      kind: 'consume'
      apiKey: string
      featureId: string
      idPrefix: string
      customers: number
      /** Customers `firstCustomer` to `firstCustomer + customers - 1` spend. */
      firstCustomer: number
    }
  /** `GET /v1/customers?distinct_id=`, with the key in a header. */
  | { kind: 'customer'; secretKey: string; customers: number }
  /** `learn` asks for every customer's profile once and then sends its ETag; `made_up` sends one that fits no profile. */
  | { kind: 'profile'; apiKey: string; customers: number; etag: 'none' | 'learn' | 'made_up' }

export interface Job {
  port: number
  connections: number
  /** Seconds that are sent and acknowledged but not measured. */
  warmupS: number
  seconds: number
  /** The round ends early when so many were sent. */
  requestsMax: number
  /** Requests per second to keep; null sends the next one as soon as a connection is free. */
  ratePerS: number | null
  request: RequestSpec
  expect: {
    status: number
    /** Every right answer holds all of these in its body. */
    markers: string[]
    /** The answer also holds the id, customer or ETag of its request. */
    echoes: boolean
    /** An answer of the same status that holds this one is right too, and counted apart as denied. */
    denied: string | null
  }
}

/** Events in one `/batch` call. */
export const eventsPerBatch = 1000

export interface Outcome {
  /** Requests sent, the warm-up included: ids 0 to sent − 1 were used. */
  sent: number
  /** Right answers, the warm-up included; `denied` are not among them. */
  acknowledged: number
  denied: number
  wrong: number
  /** The first few wrong answers, in words. */
  complaints: string[]
  /** Right answers inside the measured window, its length, and their latency. */
  measured: number
  measuredS: number
  p50Ms: number
  p99Ms: number
  maxMs: number
  /** Processor time of the generator in the measured window. */
  cpuMs: number
}

export type GeneratorLine =
  | { phase: 'ready' }
  | { phase: 'measuring' }
  | { phase: 'measured' }
  | { phase: 'done'; outcome: Outcome }
