/** Where an event stands among its customer's: its time in Unix milliseconds, and its position in the lane, in digits. */
export type Place = [ts: number, pos: string]

/** Whether a count that has come to `after` has met the event. */
export function isCounted(after: Place | null, [ts, pos]: Place): boolean {
  return after !== null && (ts < after[0] || (ts === after[0] && BigInt(pos) <= BigInt(after[1])))
}
