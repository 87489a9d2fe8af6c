import { conversionAgeMsMax } from '../../kernel/limits.ts'
import type { Moment, Ms } from '../types.ts'

/** A journey whose goal may still be met. */
export interface Watch {
  journeyId: string
  windowMs: Ms
  basis: Moment | null
}

/** Of an event that would meet a goal: never later than it was received; null: too old when it was taken. */
export function goalMoment({ at, receivedAt, uuid }: { at: Ms; receivedAt: Ms; uuid: string }): Moment | null {
  if (receivedAt - at > conversionAgeMsMax) return null
  return { eventId: uuid, occurredAt: Math.min(at, receivedAt) }
}

/** Which of the journeys an event converts: of those it lies in the window of, the one with the newest basis, then the lowest id. */
export function attribute(watches: readonly Watch[], event: Moment): string | null {
  const candidates = watches.filter((watch) => isInside(watch, event))
  const [first] = candidates.toSorted(
    (a, b) => (b.basis?.occurredAt ?? 0) - (a.basis?.occurredAt ?? 0) || (a.journeyId < b.journeyId ? -1 : 1),
  )
  return first?.journeyId ?? null
}

/** After the basis, at the same instant by id, and not after the window, whose end counts. */
export function isInside({ basis, windowMs }: Pick<Watch, 'basis' | 'windowMs'>, event: Moment): boolean {
  if (basis === null) return false
  const after = event.occurredAt - basis.occurredAt
  return after === 0 ? event.eventId > basis.eventId : after > 0 && after <= windowMs
}
