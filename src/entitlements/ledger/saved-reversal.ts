import type { Obstacle } from '../engine/reverse.ts'
import type { Ms, Units } from '../types.ts'
import type { EntryDetail } from './entry-detail.ts'

/** Units of one grant, in its own stored units. */
export interface ReversedPart {
  grantId: bigint
  feature: { key: string; scale: number }
  units: Units
}

/** What came of giving an operation's units back; decided once, and the answer ever after. */
export interface SavedReversal extends EntryDetail {
  id: string
  /** Last drawn first. */
  returned: ReversedPart[]
  notReturned: (ReversedPart & { reason: Obstacle })[]
  occurredAt: Ms
}

/** Units and ids as text: they may exceed what a JSON number holds exactly. */
export function reversalJson(reversal: SavedReversal): string {
  return JSON.stringify(reversal, (_key, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
}

export function savedReversal(json: string): SavedReversal {
  const saved = JSON.parse(json) as Stored // written by reversalJson
  return { ...saved, returned: saved.returned.map(partOf), notReturned: saved.notReturned.map(partOf) }
}

type AsText<Part> = Omit<Part, 'grantId' | 'units'> & { grantId: string; units: string }

type Stored = Omit<SavedReversal, 'returned' | 'notReturned'> & {
  returned: AsText<ReversedPart>[]
  notReturned: AsText<ReversedPart & { reason: Obstacle }>[]
}

function partOf<Part extends { grantId: string; units: string }>(part: Part) {
  return { ...part, grantId: BigInt(part.grantId), units: BigInt(part.units) }
}
