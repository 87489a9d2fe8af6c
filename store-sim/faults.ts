import { setTimeout as sleep } from 'node:timers/promises'
import { Type } from 'typebox'
import { chance } from './ids.ts'
import { type Signing, wrongSignings } from './pki/sign.ts'
import { appleError, googleError, Refusal } from './refusal.ts'
import type { Sim, World } from './world.ts'

export const faultKinds = [
  'rate_limited',
  'server_error',
  'hang',
  'unauthorized',
  'forbidden',
  'not_found',
  'truncated_json',
  'oversized',
  'slow_body',
  'drop',
  'duplicate',
  'reorder',
  'delay',
  'ocsp_down',
  'ocsp_revoked',
  'clock_skew',
  'wrong_audience',
  'unknown_state',
  'dead_token',
  ...wrongSignings,
] as const
export type FaultKind = (typeof faultKinds)[number]

export interface Fault {
  kind: FaultKind
  /** `*` stands for anything. Notifications go to `/notify/appstore` and `/notify/playstore`, devices ask `/device/…`. */
  path?: string
  probability?: number
  /** How often it still strikes. */
  count?: number
  /** `not_found`: so long after the purchase; `delay`, `clock_skew`, `hang`, `slow_body` and `Retry-After`: by so much. */
  seconds?: number
  /** The App Store's error code, where one status has several: of `not_found` and `server_error`. */
  code?: number
}

export const faultShape = Type.Object(
  {
    kind: Type.Enum(faultKinds),
    path: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    probability: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    seconds: Type.Optional(Type.Number({ minimum: -604_800, maximum: 604_800 })),
    code: Type.Optional(Type.Integer({ minimum: 4_000_000, maximum: 5_999_999 })),
  },
  { additionalProperties: false },
)

const hangSecondsMax = 60
const secondsOf: Partial<Record<FaultKind, number>> = {
  hang: 30,
  slow_body: 30,
  rate_limited: 5,
  not_found: 30,
  delay: 60,
  clock_skew: 300,
}

/** The fault of one of these kinds that strikes here and now, used up by one. */
export function strike(
  world: World,
  path: string,
  kinds: readonly FaultKind[],
): (Fault & { seconds: number }) | undefined {
  for (const fault of world.faults) {
    if (!kinds.includes(fault.kind) || fault.count === 0 || !matches(fault.path ?? '*', path)) continue
    if (fault.probability !== undefined && chance(world, 'fault') >= fault.probability) continue
    if (fault.count !== undefined) fault.count -= 1
    return { ...fault, seconds: fault.seconds ?? secondsOf[fault.kind] ?? 0 }
  }
  return undefined
}

/** How what is signed for this path is signed. */
export function signingAt(world: World, path: string): Signing {
  return wrongSignings.find((kind) => strike(world, path, [kind]) !== undefined) ?? 'genuine'
}

export function skewMsAt(world: World, path: string): number {
  return (strike(world, path, ['clock_skew'])?.seconds ?? 0) * 1000
}

/** Waits as long as a fault says, within a minute. */
export function holdUp(seconds: number): Promise<void> {
  return sleep(Math.min(Math.max(seconds, 0), hangSecondsMax) * 1000, undefined, { ref: false })
}

/** Makes a store's call fail as told, in the words of that store. Says which fault it was, for the log. */
export async function failAsTold(sim: Sim, path: string): Promise<string | undefined> {
  const fault = strike(sim.world, path, ['rate_limited', 'server_error', 'hang', 'unauthorized', 'forbidden'])
  if (fault === undefined) return undefined
  if (fault.kind === 'hang') {
    await holdUp(fault.seconds)
    return fault.kind
  }
  if (path.startsWith('/stripe/')) throw stripeFault(fault)
  throw path.startsWith('/play/') ? googleFault(fault) : appleFault(fault, sim.wall())
}

function appleFault({ kind, seconds, code }: Fault & { seconds: number }, wall: number): Refusal {
  if (kind === 'rate_limited') {
    const body = { errorCode: 4290000, errorMessage: 'Rate limit exceeded.' }
    return new Refusal(429, body, { 'retry-after': String(wall + seconds * 1000) }) // an instant, in milliseconds
  }
  if (kind === 'unauthorized') return new Refusal(401, 'Unauthenticated\n')
  if (kind === 'forbidden') return appleError(403, 4030000, 'Forbidden.')
  return appleError(500, code ?? 5000000, 'An unknown error occurred.')
}

function googleFault({ kind, seconds }: Fault & { seconds: number }): Refusal {
  if (kind === 'rate_limited') {
    const { status, body } = googleError(429, 'Quota exceeded.', 'RESOURCE_EXHAUSTED', 'rateLimitExceeded')
    return new Refusal(status, body, { 'retry-after': String(seconds) })
  }
  if (kind === 'unauthorized')
    return googleError(401, 'Request had invalid authentication credentials.', 'UNAUTHENTICATED', 'authError')
  if (kind === 'forbidden')
    return googleError(403, 'The current user has insufficient permissions.', 'PERMISSION_DENIED', 'permissionDenied')
  return googleError(500, 'Internal error encountered.', 'INTERNAL', 'internalError')
}

function stripeFault({ kind, seconds }: Fault & { seconds: number }): Refusal {
  const error = (type: string) => ({ error: { type, message: 'The simulator was told to fail.' } })
  if (kind === 'rate_limited') return new Refusal(429, error('rate_limit'), { 'retry-after': String(seconds) })
  if (kind === 'unauthorized') return new Refusal(401, error('invalid_request_error'))
  if (kind === 'forbidden') return new Refusal(403, error('invalid_request_error'))
  return new Refusal(500, error('api_error'))
}

function matches(pattern: string, path: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`).test(path)
}
