import type { Consumer, LaneEvent } from '../types.ts'
import { addToRollup, summableMax } from './rollup-store.ts'

/** Zones are ahead of UTC by quarters of an hour: every bucket of a trend is made of whole slots. */
export const slotMs = 15 * 60_000

/** Events of one name and app in one quarter of an hour. */
export interface Slot {
  event: string
  /** '' for a backend. */
  appId: string
  /** Unix milliseconds. */
  at: number
  count: number
  /** Events that have a value, and what these sum up to: null beyond what can be added. */
  valued: number
  sum: number | null
}

/** Counts the events of a slice, in the transaction that stores them. */
export const countEvents: Consumer = async (tx, scope, slice) => {
  await addToRollup(tx, scope, slotsOf(slice))
}

/** In the order of the primary key: two transactions that write the same slots then wait for one another at most. */
export function slotsOf(events: readonly LaneEvent[]): Slot[] {
  const slots = new Map<string, Slot>()
  for (const { name, appId, at, payload } of events) {
    const slotAt = Math.floor(at / slotMs) * slotMs
    const key = `${slotAt} ${appId ?? ''} ${name}`
    let slot = slots.get(key)
    if (!slot) {
      slot = { event: name, appId: appId ?? '', at: slotAt, count: 0, valued: 0, sum: 0 }
      slots.set(key, slot)
    }
    slot.count++
    if (payload.value === undefined) continue
    slot.valued++
    slot.sum = added(slot.sum, payload.value)
  }
  return [...slots.values()].toSorted((a, b) => compare(a.event, b.event) || a.at - b.at || compare(a.appId, b.appId))
}

function added(sum: number | null, value: number): number | null {
  if (sum === null) return null
  const next = sum + value
  return Math.abs(next) <= summableMax ? next : null
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
