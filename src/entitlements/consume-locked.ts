import type pg from 'pg'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import { entityCountersMax } from '../kernel/limits.ts'
import { applyChanges } from './apply.ts'
import { BatchWrite } from './batch-write.ts'
import { grantOf } from './grant-row.ts'
import { Changed, type Slot } from './slot.ts'
import { accountsOf, stateOf } from './state.ts'
import type { Account, State } from './types.ts'
import { decideUsage } from './usage.ts'
import { lockAccounts, selectEntities, selectEntityCounts, selectGrants, selectMoment } from './usage-store.ts'
import { writeEntities, writeRefills, writeRollover, writeUsage } from './usage-write-store.ts'

/**
 * One transaction: lock, load, decide, write. Gives back the commands whose accounts somebody else held (never any when
 * waiting). "No grant", "drained" and "expired" are decided in here, under the lock, never by a filter in front of it.
 */
export async function decideLocked(client: pg.PoolClient, slots: Slot[], { wait }: { wait: boolean }): Promise<Slot[]> {
  if (slots.length === 0) return []
  const scopeIds = [...new Set(slots.map((slot) => slot.command.scope.scopeId))]
  const ids = [...new Set(slots.flatMap((slot) => [...slot.accounts.values()]))]
  try {
    const ledger = await load(client, slots, ids, scopeIds, wait)
    const held: Slot[] = []
    const batch = new BatchWrite()
    for (const slot of slots) {
      if (!isLocked(slot, ledger)) held.push(slot)
      else decide(slot, ledger, batch)
    }
    await save(client, batch)
    return held
  } catch (error) {
    for (const slot of slots) slot.answer = undefined
    await client.query('rollback')
    throw error
  }
}

interface Ledger {
  /** Database clock, read after the locks. */
  now: number
  accounts: Map<bigint, Account>
  entityCounts: Map<bigint, number>
}

/** Sent in one go; the server runs the statements in order, and the load after the lock. */
async function load(
  client: pg.PoolClient,
  slots: Slot[],
  ids: bigint[],
  scopeIds: number[],
  wait: boolean,
): Promise<Ledger> {
  const entities = slots.flatMap(({ command, accounts }) => {
    const { entityId } = command
    return entityId === null ? [] : [...accounts.values()].map((accountId) => ({ accountId, entityId }))
  })
  const [, lockRows, grantRows, entityRows, countRows, moment] = await settled([
    client.query('begin'),
    lockAccounts(client, ids, wait),
    selectGrants(client, ids),
    entities.length === 0 ? [] : selectEntities(client, entities),
    entities.length === 0 ? [] : selectEntityCounts(client, [...new Set(entities.map((entity) => entity.accountId))]),
    selectMoment(client, scopeIds),
  ] as const)

  const accounts = new Map<bigint, Account>()
  const customers = new Map<bigint, string>()
  for (const row of lockRows) {
    const id = BigInt(row[0] ?? 0)
    customers.set(id, row[1] ?? '')
    accounts.set(id, {
      id,
      featureId: Number(row[2]),
      used: BigInt(row[3] ?? 0),
      entities: new Map(),
      grants: [],
      lastAt: Number(row[4]),
      version: BigInt(row[5] ?? 0),
    })
  }
  for (const row of grantRows) {
    const grant = grantOf(row, 0)
    accounts.get(grant.accountId)?.grants.push(grant)
  }
  for (const row of entityRows) {
    accounts
      .get(BigInt(row[0] ?? 0))
      ?.entities.set(row[1] ?? '', { used: BigInt(row[2] ?? 0), registered: row[3] === 't' })
  }
  checkUnchanged(slots, scopeIds, moment.revisions, customers)
  const entityCounts = new Map(countRows.map((row) => [BigInt(row[0] ?? 0), Number(row[1])]))
  return { now: moment.now, accounts, entityCounts }
}

/** A merge re-points accounts, a publish raises the revision: either way the probe looked at something else. */
function checkUnchanged(slots: Slot[], scopeIds: number[], revisions: bigint[], customers: Map<bigint, string>): void {
  for (const slot of slots) {
    const revision = must(revisions[scopeIds.indexOf(slot.command.scope.scopeId)], 'a revision for each scope')
    if (revision > slot.catalogue.revision) throw new Changed('the catalogue changed')
    for (const id of slot.accounts.values()) {
      const customer = customers.get(id)
      if (customer !== undefined && customer !== slot.customerId) throw new Changed('the customer was merged')
    }
  }
}

function isLocked({ accounts }: Slot, ledger: Ledger): boolean {
  for (const id of accounts.values()) {
    if (!ledger.accounts.has(id)) return false
  }
  return true
}

function decide(slot: Slot, ledger: Ledger, batch: BatchWrite): void {
  const { command } = slot
  const state = stateFor(slot, ledger)
  const touched = accountsOf(state)
  const newEntity = state.own !== null && command.entityId !== null && !state.own.entities.has(command.entityId)
  if (newEntity && countOf(ledger, state.own) >= entityCountersMax) {
    slot.answer = refuse('invalid_request', {
      message: `The customer has ${entityCountersMax} entities of this Feature already.`,
      issues: [{ path: 'entityId', message: 'no further entity can be counted' }],
    })
    return
  }
  const { decision, changes } = decideUsage(state, command)
  applyChanges(ledger.accounts, changes)
  if (newEntity && changes.length > 0 && state.own)
    ledger.entityCounts.set(state.own.id, countOf(ledger, state.own) + 1)
  for (const account of touched) account.lastAt = state.now
  batch.add(slot, decision, changes, state, touched)
  slot.answer = { ...decision, type: state.feature.type, occurredAt: state.now, replay: false }
}

function countOf(ledger: Ledger, account: Account | null): number {
  return account ? (ledger.entityCounts.get(account.id) ?? 0) : 0
}

/** What the command looks at. */
function stateFor(slot: Slot, ledger: Ledger): State {
  const feature = must(slot.feature, 'commands without a Feature were answered before')
  const accounts = new Map<number, Account>()
  for (const [featureId, id] of slot.accounts)
    accounts.set(featureId, must(ledger.accounts.get(id), 'the account is locked'))
  const { scope, entityId } = slot.command
  return stateOf(slot.catalogue, feature, { platform: scope.platform, entity: entityId, now: ledger.now, accounts })
}

/** Rollover grants get their numbers first; then one statement writes everything, and COMMIT follows it without waiting. */
async function save(client: pg.PoolClient, batch: BatchWrite): Promise<void> {
  for (const { from, period, grant } of batch.rollovers) {
    batch.renumber(grant, await writeRollover(client, from, period, grant))
  }
  await settled([
    batch.refills.length === 0 ? undefined : writeRefills(client, batch.refills),
    batch.entities.length === 0 ? undefined : writeEntities(client, batch.entities),
    writeUsage(client, batch),
    client.query('commit'),
  ] as const)
}

/** Waits for all of a pipeline, so that nothing is under way any more when the first error is thrown. */
async function settled<const T extends readonly unknown[]>(
  work: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const results = await Promise.allSettled(work)
  const failed = results.find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
  return results.map((result) => (result as PromiseFulfilledResult<unknown>).value) as {
    -readonly [K in keyof T]: Awaited<T[K]>
  } // none rejected
}
