import type { AppleApp } from './appstore/types.ts'
import type { Clock } from './clock/clock.ts'
import type { Fault } from './faults.ts'
import type { Seeded } from './ids.ts'
import type { KeyRing } from './pki/keys.ts'
import type { PlayApp } from './playstore/types.ts'
import type { Cards } from './stripe/cards.ts'

/** All there is, as plain JSON: what the snapshot holds. */
export interface World extends Seeded {
  keys: KeyRing
  apps: SimApp[]
  faults: Fault[]
  log: LogEntry[]
  /** Made when it is first asked for. */
  cards?: Cards
}

export type Store = 'appstore' | 'playstore'
export type SimApp = AppleApp | PlayApp

/** What both kinds of app have; `id` is the bundle id or the package name. */
export interface AppBase {
  id: string
  clock: Clock
  target: Target | null
  connection: Connection | null
  deliveries: Delivery[]
}

/** Where notifications go. Pub/Sub fills in all of it, the App Store needs the address only. */
export interface Target {
  url: string
  audience: string
  email: string
  subscription: string
}

/** A test app of the service whose clock and entitlements the simulator may touch. */
export interface Connection {
  workspaceBaseUrl: string
  secretKey: string
  appId: string
  projectId: string
  /** The test key devices of this app use: the page asks with it what customers may do. */
  publishableKey: string | null
  environmentHeader: string
  accountTokenNamespace: string | null
  clockAheadMs: number
  /** Whether the project's test clock can be moved: a service without one knows the wall clock only. */
  hasTestClock: boolean
}

/** A notification on its way, or gone. */
export interface Delivery {
  id: string
  /** For people: `DID_RENEW`, `SUBSCRIPTION_RENEWED`. */
  label: string
  createdAt: number
  /** Null: delivered, dropped or given up. */
  nextAt: number | null
  attempts: { at: number; result: string }[]
  retries: boolean
  payload: Record<string, unknown>
  /** What the App Store signed at the first attempt: retries carry the same. */
  signedPayload?: string
}

export interface LogEntry {
  n: number
  /** Simulated time where there is one. */
  at: string
  kind: 'call' | 'delivery' | 'control'
  what: string
  status: number | string
  fault?: string
  detail?: unknown
}

const logMax = 2_000

/** What a running simulator has beside its world. */
export interface Sim {
  world: World
  url: string
  wall: () => number
  /** Notes that the snapshot is out of date. */
  changed: () => void
  /** Control verbs and due events run one after the other; what the service reads never waits for them. */
  turn: <T>(work: () => Promise<T>) => Promise<T>
}

export function log(sim: Sim, entry: Omit<LogEntry, 'n' | 'at'>, at = sim.wall()): void {
  const { world } = sim
  const last = world.log.at(-1)?.n ?? 0
  world.log.push({ n: last + 1, at: new Date(at).toISOString(), ...entry })
  if (world.log.length > logMax) world.log.splice(0, world.log.length - logMax)
}
