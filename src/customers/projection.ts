import type { Tx } from '../db/pool.ts'
import { type JsonObject, type Projection, StaleSlice } from '../events/index.ts'
import { assert } from '../kernel/assert.ts'
import type { Scope } from '../tenancy/index.ts'
import { decide } from './apply.ts'
import { loadSlice } from './load.ts'
import { stillStands } from './load-store.ts'
import type { CustomerWrite, Decision, SliceState } from './slice.ts'
import type { CustomerMerge, MergeParticipant } from './types.ts'
import { insertAliases, insertCustomers, insertJournal, updateAliases, updateCustomers } from './write-store.ts'

export interface ProjectionOptions {
  /** Of the instance; tombstones are keyed hashes so that they name nobody. */
  tombstoneKey: Buffer
  participants: readonly MergeParticipant[]
}

/** Identity and properties as the lane runs them. */
export function createProjection({ tombstoneKey, participants }: ProjectionOptions): Projection<SliceState, Decision> {
  return {
    load: (pool, scope, events) => pool.connected((client) => loadSlice(client, scope, events, { tombstoneKey })),
    decide: (_scope, state, events) => decide(state, events),
    async write(tx, scope, decision, positions) {
      if (commandsCameBetween(decision, positions)) await confirm(tx, scope, decision, tombstoneKey)
      await writeDecision(tx, scope, decision, positions)
      await writeJournal(tx, scope, decision, positions, participants)
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
export async function writeDecision(tx: Tx, scope: Scope, decision: Decision, positions: bigint[]): Promise<void> {
  const { births, updates, newAliases, movedAliases } = decision
  if (births.length > 0) await insertCustomers(tx, scope, births.toSorted(byId))
  if (updates.length > 0) await updateCustomers(tx, scope, updates.toSorted(byId))
  if (newAliases.length > 0) await insertAliases(tx, scope, newAliases.toSorted(byDistinctId), positions)
  if (movedAliases.length > 0) await updateAliases(tx, scope, movedAliases.toSorted(byDistinctId), positions)
}

/** Lets the participants move what is theirs, and keeps what was decided with all that a split needs. */
export async function writeJournal(
  tx: Tx,
  scope: Scope,
  { merges, journal }: Decision,
  positions: bigint[],
  participants: readonly MergeParticipant[],
): Promise<void> {
  if (journal.length === 0) return
  const placed = journal.map((entry) => {
    const pos = positions[entry.event]
    assert(pos !== undefined, 'the event has a position')
    return { ...entry, pos }
  })
  const joined = placed.flatMap(({ merge, pos }) => {
    const pair = merge === null ? undefined : merges[merge]
    return pair ? [{ ...pair, position: pos }] : []
  })
  // Last: it locks ledger accounts, which others wait for.
  const elsewhere = joined.length === 0 ? [] : await moveElsewhere(tx, scope, joined, participants)
  await insertJournal(
    tx,
    scope,
    placed.map(({ event: _event, moved, merge, ...row }) => {
      const whole = merge === null ? moved : { ...moved, elsewhere: elsewhere[merge] ?? null }
      return { ...row, joined: merge !== null, moved: whole && JSON.stringify(whole) }
    }),
  )
}

/** For each merge what the participants said, under their names. */
async function moveElsewhere(
  tx: Tx,
  scope: Scope,
  merges: CustomerMerge[],
  participants: readonly MergeParticipant[],
): Promise<JsonObject[]> {
  const moved = merges.map<JsonObject>(() => ({}))
  for (const { name, merge } of participants) {
    const results = await merge(tx, scope, merges)
    assert(results.length === merges.length, 'each merge has its result')
    for (const [i, notes] of moved.entries()) notes[name] = results[i] ?? null
  }
  return moved
}

function byId(a: CustomerWrite, b: CustomerWrite): number {
  return a.id < b.id ? -1 : 1
}

function byDistinctId(a: { distinctId: string }, b: { distinctId: string }): number {
  return a.distinctId < b.distinctId ? -1 : 1
}
