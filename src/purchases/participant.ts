import type { Eraser, MergeParticipant } from '../customers/index.ts'
import { eraseRows, type Moved, moveRows, restoreRows } from './participant-store.ts'

/** Purchases and bindings follow the survivor; a split gives back the very ones. */
export const purchaseParticipant: MergeParticipant = {
  name: 'purchases',
  async merge(tx, scope, merges) {
    const notes = []
    for (const { sourceCustomerId, targetCustomerId } of merges) {
      const moved = await moveRows(tx, scope, { from: sourceCustomerId, to: targetCustomerId })
      notes.push(moved.lineages.length + moved.bindings.length === 0 ? null : { ...moved })
    }
    return notes
  },
  async split(tx, scope, { sourceCustomerId, targetCustomerId, moved }) {
    if (moved === null) return
    const { lineages, bindings } = moved as unknown as Moved // as `merge` gave it
    await restoreRows(tx, scope, { from: targetCustomerId, to: sourceCustomerId }, { lineages, bindings })
  },
}

/** A deleted customer leaves a tombstone on the lineage: it stays current, and grants nothing. */
export const purchaseEraser: Eraser = {
  name: 'purchases',
  async erase(tx, scope, { customerIds, distinctIds }) {
    await eraseRows(tx, scope, { customerIds, distinctIds })
    return true
  },
}
