import type { Pool, Tx } from '../db/pool.ts'
import { eraseLog, type LogPlace, repointEvents } from '../events/index.ts'
import { assert, must, unreachable } from '../kernel/assert.ts'
import { appendStatementMsMax, settleRowsMax, settleSliceMsMax } from '../kernel/limits.ts'
import { type Change, eraseJournal, lockNextChange, saveWork, settleChange } from './settle-store.ts'
import type { Eraser, Erasure } from './types.ts'

export interface SettleOptions {
  erasers: readonly Eraser[]
  now: () => number
  /** Until nobody can append any more what was sent before a deletion. */
  appendsEndMs?: number
}

/** What is left of a deletion: whom it is about, which erasers have ended, how far the log is read. */
interface DeletionWork extends Erasure {
  ended?: string[]
  log?: LogPlace
  /** Then they run once more, for what was written by whoever had looked before the deletion, or was taken from the log. */
  logEnded?: boolean
}

interface SplitWork {
  distinct_ids: string[]
}

/** Appends that began before a deletion, and two clocks that differ a little. */
const appendsEndMsDefault = appendStatementMsMax + 5000

/**
 * Does what merges, splits and deletions leave to be done, a slice of well below a second at a time, for one scope after
 * another in the order of its lane: points stored events at the customer that they belong to now, and erases the deleted.
 * Any number of processes may, and a crash repeats a slice at most. Gives the scope it worked on, to go on after it; null
 * when there was nothing behind `afterScope`.
 */
export async function settleChanges(
  pool: Pool,
  options: SettleOptions,
  afterScope: number,
): Promise<{ scopeId: number; isMore: boolean } | null> {
  return pool.transaction(async (tx) => {
    const startedAt = options.now()
    const first = await lockNextChange(tx, { afterScope })
    if (!first) return null
    const { scopeId } = first.scope
    for (let change: Change | undefined = first; change; change = await lockNextChange(tx, { scopeId })) {
      const state = await settleOne(tx, change, options)
      if (state !== 'settled') return { scopeId, isMore: state === 'more' }
      await settleChange(tx, change)
      if (options.now() - startedAt > settleSliceMsMax) return { scopeId, isMore: true }
    }
    return { scopeId, isMore: false }
  })
}

type State = 'settled' | 'more' | 'later'

async function settleOne(tx: Tx, change: Change, options: SettleOptions): Promise<State> {
  const { scope, kind, customerId, sourceCustomerId, work } = change
  switch (kind) {
    case 'merge': {
      const from = must(sourceCustomerId, 'a change without two records was settled at once')
      return moved(await repointEvents(tx, scope, { from, to: customerId, distinctIds: null, limit: settleRowsMax }))
    }
    case 'split': {
      const { distinct_ids: distinctIds } = work as SplitWork // written by splitMerge
      const to = must(sourceCustomerId, 'somebody came out')
      return moved(await repointEvents(tx, scope, { from: customerId, to, distinctIds, limit: settleRowsMax }))
    }
    case 'delete':
      return erase(tx, change, work as DeletionWork, options) // written by deleteCustomer and below
    default:
      return unreachable(kind)
  }
}

function moved(rows: number): State {
  assert(rows <= settleRowsMax, 'no more than asked for')
  return rows < settleRowsMax ? 'settled' : 'more'
}

/** One slice of one eraser; the log, and all of them once more, when nobody is at work any more who had not seen the deletion. */
async function erase(tx: Tx, change: Change, work: DeletionWork, options: SettleOptions): Promise<State> {
  const { scope } = change
  const { ended = [] } = work
  const eraser = [journal, ...options.erasers].find(({ name }) => !ended.includes(name))
  if (eraser) {
    const isEnd = await eraser.erase(tx, scope, work)
    if (isEnd) await saveWork(tx, change, { ...work, ended: [...ended, eraser.name] })
    return 'more'
  }
  if (work.logEnded) return 'settled'
  if (options.now() < change.at + (options.appendsEndMs ?? appendsEndMsDefault)) return 'later'
  const log = await eraseLog(tx, scope, work, work.log ?? null)
  // A lane that is behind may have set one of these rows aside until now.
  await saveWork(tx, change, log === null ? { ...work, ended: [], logEnded: true } : { ...work, log })
  return 'more'
}

/** What was decided stays for the ledger's audit; whom it was about goes. */
const journal: Eraser = {
  name: 'merge_journal',
  async erase(tx, scope, whom) {
    await eraseJournal(tx, scope, whom)
    return true
  },
}
