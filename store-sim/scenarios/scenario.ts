import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Fault } from '../faults.ts'
import type { Store } from '../world.ts'

/** A story that is data: what happens in a store, and what the service has to say after each step. */
export interface Scenario {
  name: string
  says: string
  store: Store
  /** Of the app in the service, `PATCH /apps/{id}/store_settings`. */
  settings?: Record<string, unknown>
  steps: Step[]
}

export type Step =
  /** Somebody buys; `as` is how later steps name the purchase. Other fields are those of `POST /sim/{store}/purchases`. */
  | { buy: { as: string; account: string; productId: string; customer?: string } & Record<string, unknown> }
  /** A verb of the simulator; `as` names the purchase that comes of it. `$p.transactionId` stands for that of what `p` holds. */
  | { verb: { of: string; does: string; with?: Record<string, unknown>; as?: string } }
  /** The app hands a purchase to the service. */
  | { submit: Submission }
  | { clock: { by: string } }
  | { identify: { from: string; to: string } }
  | { faults: Fault[] }
  /** The service is down, or up again: only where the runner started it. */
  | { service: 'stop' | 'start' }
  /** Waits until the service acknowledged to Play. */
  | { acknowledged: string }
  | { entitled: Expectation[] }
  | { invariants: 'hold' }

export interface Submission {
  of: string
  customer: string
  status: number
  code?: string
  detail?: string
  replay?: boolean
  consume?: boolean
  environment?: 'live'
}

export interface Expectation {
  customer: string
  feature: string
  allowed: boolean
  balance?: number
}

const folder = import.meta.dirname

export function readScenarios(): Scenario[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return files.toSorted((a, b) => a.localeCompare(b)).map(readScenario)
}

function readScenario(file: string): Scenario {
  return JSON.parse(readFileSync(join(folder, file), 'utf8')) as Scenario // written by us, held by a test
}

export function needsOwnService({ steps }: Scenario): boolean {
  return steps.some((step) => 'service' in step)
}
