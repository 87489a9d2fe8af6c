import { circuitFailuresMax, circuitRestMs, circuitRestMsMax } from '../kernel/limits.ts'
import type { Ms } from './types.ts'

/** Whether a store is asked at all. After failures in a row its calls rest; then one of them tries, and the others wait for it. */
export type Circuit =
  | { kind: 'closed'; failures: number }
  /** `openings`: how often in a row, this one included. */
  | { kind: 'open'; until: Ms; openings: number }
  | { kind: 'trying'; openings: number }

export const closed: Circuit = { kind: 'closed', failures: 0 }

/** Whoever waits for the one that tries asks again after this. */
const besideTryMs = 1000

/** `restMs` 0: the call may be made, and has to `leave`. Pure. */
export function enter(circuit: Circuit, now: Ms): { restMs: number; circuit: Circuit } {
  switch (circuit.kind) {
    case 'closed':
      return { restMs: 0, circuit }
    case 'open': {
      if (now < circuit.until) return { restMs: circuit.until - now, circuit }
      return { restMs: 0, circuit: { kind: 'trying', openings: circuit.openings } }
    }
    case 'trying':
      return { restMs: besideTryMs, circuit }
  }
}

/** `unknown`: the caller gave up before the store had its time. Pure. */
export function leave(circuit: Circuit, how: 'answered' | 'failed' | 'unknown', now: Ms): Circuit {
  if (how === 'answered') return closed
  switch (circuit.kind) {
    case 'closed': {
      const failures = circuit.failures + (how === 'failed' ? 1 : 0)
      return failures < circuitFailuresMax ? { kind: 'closed', failures } : opened(1, now)
    }
    // A call from before it opened.
    case 'open':
      return circuit
    case 'trying':
      return how === 'failed'
        ? opened(circuit.openings + 1, now)
        : { kind: 'open', until: now, openings: circuit.openings }
  }
}

function opened(openings: number, now: Ms): Circuit {
  const restMs = Math.min(circuitRestMs * 2 ** (openings - 1), circuitRestMsMax)
  return { kind: 'open', until: now + restMs, openings }
}
