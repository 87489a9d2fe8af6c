import type pg from 'pg'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { entityCountersMax } from '../../kernel/limits.ts'
import { applyChange } from '../engine/apply.ts'
import { accountsOf, stateOf } from '../engine/state.ts'
import { decideUsage } from '../engine/usage.ts'
import type { State } from '../types.ts'
import type { BatchWrite } from './batch-write.ts'
import type { Decidable } from './slot.ts'
import { selectEntityCounts } from './state-store.ts'

/** Decides in arrival order; each decision is applied to the loaded accounts, so that the next one sees it. */
export async function decideAll(
  client: pg.PoolClient,
  pending: Decidable[],
  now: number,
  batch: BatchWrite,
): Promise<void> {
  const counts = await entityCounts(client, pending)
  for (const slot of pending) {
    const { command, inquiry, holder, feature } = slot
    const { platform } = command.scope
    const entity = command.entityId
    const { catalogue } = inquiry
    const at = now + catalogue.clockOffsetMs
    const state = stateOf(catalogue, feature, { now: at, accounts: holder.accounts, platform, entity })
    if (joins(state) && countOf(counts, state) >= entityCountersMax) slot.answer = tooManyEntities()
    else decide(slot, state, batch, counts)
  }
}

function decide(slot: Decidable, state: State, batch: BatchWrite, counts: Map<bigint, number>): void {
  const touched = accountsOf(state)
  const joining = joins(state)
  const { decision, changes } = decideUsage(state, slot.command)
  for (const change of changes) {
    const account = touched.find((one) => one.id === change.account)
    applyChange(must(account, 'a decision changes only the accounts it looked at'), change)
  }
  if (joining && !joins(state) && state.own) counts.set(state.own.id, countOf(counts, state) + 1)
  for (const account of touched) account.lastAt = state.now
  batch.add(slot, decision, changes, state, touched)
  slot.answer = { ...decision, type: state.feature.type, occurredAt: state.now, replay: false }
}

/** The entity has no counter in the account yet. */
function joins({ own, entity }: State): boolean {
  return own !== null && entity !== null && !own.entities.has(entity)
}

function countOf(counts: Map<bigint, number>, { own }: State): number {
  return own ? (counts.get(own.id) ?? 0) : 0
}

/** Entities per account, read only where a new one might join. */
async function entityCounts(client: pg.PoolClient, pending: Decidable[]): Promise<Map<bigint, number>> {
  const ids = new Set<bigint>()
  for (const { command, holder, feature } of pending) {
    const own = holder.accounts.get(feature.id)
    if (own && command.entityId !== null && !own.entities.has(command.entityId)) ids.add(own.id)
  }
  if (ids.size === 0) return new Map()
  const asked = [...ids]
  const counts = await selectEntityCounts(client, asked)
  return new Map(asked.map((id, i) => [id, must(counts[i], 'one for each')]))
}

function tooManyEntities() {
  return refuse('invalid_request', {
    message: `The customer has ${entityCountersMax} entities of this Feature already.`,
    issues: [{ path: 'entityId', message: 'no further entity can be counted' }],
  })
}
