import type { Tx } from '../db/pool.ts'
import { type Projection, StaleSlice } from '../events/index.ts'
import { assert } from '../kernel/assert.ts'
import type { Scope } from '../tenancy/index.ts'
import { decide } from './apply.ts'
import { loadSlice } from './load.ts'
import { stillStands } from './load-store.ts'
import type { CustomerWrite, Decision, MergedPair, SliceState } from './slice.ts'
import { insertAliases, insertCustomers, insertJournal, updateAliases, updateCustomers } from './write-store.ts'

/**
 * Moves what other modules keep for the sources to the targets, in the transaction of the merges. Gives for each merge, in
 * order, what a split needs to undo it: JSON that is kept in the merge journal.
 */
export type OnMerge = (tx: Tx, scope: Scope, merges: MergedPair[]) => Promise<unknown[]>

export interface ProjectionOptions {
  /** Of the instance; tombstones are keyed hashes so that they name nobody. */
  tombstoneKey: Buffer
  onMerge: OnMerge
}

/** Identity and properties as the lane runs them. */
export function createProjection({ tombstoneKey, onMerge }: ProjectionOptions): Projection<SliceState, Decision> {
  return {
    load: (pool, scope, events) => pool.connected((client) => loadSlice(client, scope, events, tombstoneKey)),
    decide: (_scope, state, events) => decide(state, events),
    async write(tx, scope, decision, positions) {
      if (commandsCameBetween(decision, positions)) await confirm(tx, scope, decision, tombstoneKey)
      await writeDecision(tx, scope, decision, positions)
      await writeJournal(tx, scope, decision, positions, onMerge)
    },
  }
}

/** Whether the lane gave positions away since the slice was loaded. Dropped events take none. */
function commandsCameBetween({ state, outcomes }: Decision, positions: bigint[]): boolean {
  return positions[0] !== state.pos + (outcomes[0]?.kind === 'applied' ? 1n : 0n)
}

/**
 * What commands changed need not be among the rows that the slice writes: an event alone leaves its customer as it is, but
 * must not be recorded for one that was merged or deleted meanwhile.
 */
async function confirm(tx: Tx, scope: Scope, { state, newAliases }: Decision, tombstoneKey: Buffer): Promise<void> {
  const seen = new Set([...state.aliases.keys(), ...newAliases.map(({ distinctId }) => distinctId)])
  const distinctIds = [...seen].filter((distinctId) => !state.deleted.has(distinctId))
  const stands = await stillStands(tx.client, scope, {
    tombstoneKey,
    customers: [...state.customers.values()],
    distinctIds,
    named: distinctIds.map((distinctId) => state.aliases.get(distinctId)?.customerId ?? null),
  })
  if (!stands) throw new StaleSlice('a command changed a customer of the slice')
}

/** In the order of the ids, so that two writers never wait for each other. */
async function writeDecision(tx: Tx, scope: Scope, decision: Decision, positions: bigint[]): Promise<void> {
  const { births, updates, newAliases, movedAliases } = decision
  if (births.length > 0) await insertCustomers(tx, scope, births.toSorted(byId))
  if (updates.length > 0) await updateCustomers(tx, scope, updates.toSorted(byId))
  if (newAliases.length > 0) await insertAliases(tx, scope, newAliases.toSorted(byDistinctId), positions)
  if (movedAliases.length > 0) await updateAliases(tx, scope, movedAliases.toSorted(byDistinctId), positions)
}

async function writeJournal(
  tx: Tx,
  scope: Scope,
  { merges, journal }: Decision,
  positions: bigint[],
  onMerge: OnMerge,
): Promise<void> {
  if (journal.length === 0) return
  // Last: it locks ledger accounts, which others wait for.
  const elsewhere = merges.length === 0 ? [] : await onMerge(tx, scope, merges)
  assert(elsewhere.length === merges.length, 'each merge has its result')
  await insertJournal(
    tx,
    scope,
    journal.map(({ event, moved, merge, ...entry }) => {
      const pos = positions[event]
      assert(pos !== undefined, 'the event has a position')
      const whole = merge === null ? moved : { ...moved, elsewhere: elsewhere[merge] }
      return { ...entry, pos, moved: whole && JSON.stringify(whole) }
    }),
  )
}

function byId(a: CustomerWrite, b: CustomerWrite): number {
  return a.id < b.id ? -1 : 1
}

function byDistinctId(a: { distinctId: string }, b: { distinctId: string }): number {
  return a.distinctId < b.distinctId ? -1 : 1
}
