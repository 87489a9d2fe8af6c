import type pg from 'pg'
import { coalesce } from '../db/batch.ts'
import { isConnectionLoss, type Pool, sqlState, unavailable } from '../db/pool.ts'
import type { RawRow } from '../db/raw.ts'
import type { Clock } from '../kernel/clock.ts'
import { Refusal, refuse } from '../kernel/errors.ts'
import type { Directory } from '../tenancy/index.ts'
import { selectDeleted } from './access-store.ts'
import type { Catalogue, Catalogues } from './catalogue.ts'
import { decideLocked } from './consume-locked.ts'
import { Changed, type ConsumeAnswer, type ConsumeCommand, featureTypes, modeNumber, type Slot } from './slot.ts'
import type { Feature, FeatureType, UsageDecision } from './types.ts'
import { usageWithoutCustomer } from './usage.ts'
import { insertAccounts, type Probe, selectProbe, selectSurvivor } from './usage-store.ts'

export interface ConsumeOptions {
  /** Pipelined connections with the ledger's settings; one per lane is used at a time. */
  pool: Pool
  catalogues: Catalogues
  directory: Directory
  tombstoneKey: Buffer
  clock: Clock
}

const attemptsMax = 3

/**
 * Spends units. Commands of one customer keep their order, share a lane and therefore a transaction; the answer is given
 * after COMMIT and saved, so that a retry of the operation gets the very same decision.
 *
 * Throws `operation_conflict`, `customer_deleted`, `feature_not_found`, and `billing_unavailable` when it can't decide.
 */
export function createConsume(options: ConsumeOptions): (command: ConsumeCommand) => Promise<ConsumeAnswer> {
  const one = coalesce<ConsumeCommand, ConsumeAnswer | Refusal>({
    run: (commands) => options.pool.connected((client) => consumeBatch(options, client, commands)),
    // Two lanes measured better than one or four on two cores.
    lanes: 2,
    laneKey: (command) => `${command.scope.scopeId} ${command.distinctId}`,
    itemsMax: 512,
    waitingMax: 20_000,
    waitingPerKeyMax: 1000,
    waitMsMax: 2000,
    now: options.clock.now,
    splitOn: (error) => !(error instanceof Refusal) && !isConnectionLoss(error),
    overloaded: 'billing_unavailable',
  })
  return async (command) => {
    try {
      const answer = await one(command)
      if (answer instanceof Refusal) throw answer
      return answer
    } catch (error) {
      throw unavailable(error, 'billing_unavailable')
    }
  }
}

async function consumeBatch(
  options: ConsumeOptions,
  client: pg.PoolClient,
  commands: ConsumeCommand[],
): Promise<(ConsumeAnswer | Refusal)[]> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    try {
      return await attemptBatch(options, client, commands)
    } catch (error) {
      // A unique violation: another process decided one of the operations; the next probe finds its answer.
      if (!(error instanceof Changed) && sqlState(error) !== '23505') throw error
      await options.directory.refresh()
    }
  }
  throw refuse('billing_unavailable', { retryAfterS: 1 })
}

async function attemptBatch(
  options: ConsumeOptions,
  client: pg.PoolClient,
  commands: ConsumeCommand[],
): Promise<(ConsumeAnswer | Refusal)[]> {
  const slots = await probe(options, client, commands)
  const first = new Map<string, Slot>()
  const repeats: { slot: Slot; of: Slot }[] = []
  const pending: Slot[] = []
  for (const slot of slots) {
    if (slot.answer) continue
    const key = `${slot.command.scope.scopeId} ${slot.command.operationId}`
    const of = first.get(key)
    if (of) {
      repeats.push({ slot, of })
    } else {
      first.set(key, slot)
      pending.push(slot)
    }
  }
  await createOwnAccounts(client, pending)

  // Accounts that somebody else holds at the moment wait in a transaction of their own and stall nobody.
  const held = await decideLocked(client, pending, { wait: false })
  if (held.length > 0) await decideLocked(client, held, { wait: true })

  for (const { slot, of } of repeats) slot.answer = repeated(slot, of)
  return slots.map((slot) => slot.answer ?? refuse('internal_error'))
}

/** Finds customers, accounts and saved operations; answers everything that needs no lock, in the order of checks. */
async function probe(options: ConsumeOptions, client: pg.PoolClient, commands: ConsumeCommand[]): Promise<Slot[]> {
  const slots: Slot[] = []
  const probes: Probe[] = []
  for (const [n, command] of commands.entries()) {
    const catalogue = options.catalogues.current(command.scope) ?? (await options.catalogues.load(command.scope))
    const feature = catalogue.published.get(command.featureKey)
    slots.push({ command, catalogue, feature, customerId: '', accounts: new Map(), answer: undefined })
    const { scope, distinctId, operationId } = command
    for (const featureId of featureIds(catalogue, feature)) {
      probes.push({ n, scopeId: scope.scopeId, distinctId, featureId, operationId })
    }
  }
  const unknown: { slot: Slot; row: RawRow }[] = []
  for (const row of await selectProbe(client, probes)) {
    const slot = slots[Number(row[0])]
    if (!slot || slot.answer) continue
    const customerId = row[1]
    if (!customerId) {
      if (unknown.at(-1)?.slot !== slot) unknown.push({ slot, row })
      continue
    }
    slot.customerId = customerId
    if (row[4] !== null) slot.answer = await savedAnswer(client, slot, row)
    else if (!slot.feature) slot.answer = featureNotFound(slot.command)
    else if (row[2]) slot.accounts.set(Number(row[15]), BigInt(row[2]))
  }
  if (unknown.length > 0) await answerUnknown(options, client, unknown)
  return slots
}

/** No Feature has this number: asks about the customer and the operation alone. */
const noFeature = [0]

/** The Feature and every credit system that contains it. */
export function featureIds(catalogue: Catalogue, feature: Feature | undefined): number[] {
  if (!feature) return noFeature
  const pools = catalogue.poolsOf.get(feature.id)
  return pools ? [feature.id, ...pools.map((pool) => pool.feature.id)] : [feature.id]
}

async function answerUnknown(
  options: ConsumeOptions,
  client: pg.PoolClient,
  unknown: { slot: Slot; row: RawRow }[],
): Promise<void> {
  const ids = unknown.map(({ slot }) => ({ scopeId: slot.command.scope.scopeId, distinctId: slot.command.distinctId }))
  const deleted = await selectDeleted(client, ids, options.tombstoneKey)
  for (const [i, { slot, row }] of unknown.entries()) {
    if (deleted.has(i)) slot.answer = refuse('customer_deleted')
    else if (row[4] !== null) slot.answer = conflict(slot.command)
    else if (!slot.feature) slot.answer = featureNotFound(slot.command)
    else slot.answer = customerMissing(slot.feature.type)
  }
}

/** The saved decision when the command is the same one, whatever has happened to the catalogue since. */
async function savedAnswer(client: pg.PoolClient, slot: Slot, row: RawRow): Promise<ConsumeAnswer | Refusal> {
  const { command } = slot
  const same =
    row[4] === command.featureKey &&
    row[5] === command.entityId &&
    row[6] === String(modeNumber[command.mode]) &&
    row[7] === String(command.quantity)
  if (!same) return conflict(command)
  const customerId = row[3] ?? ''
  if (customerId !== slot.customerId) {
    // Both sides as the record they are today, so that a retry after an identify still replays.
    const survivor = await selectSurvivor(client, command.scope.scopeId, customerId)
    if (survivor !== slot.customerId) return conflict(command)
  }
  return {
    accepted: row[8] === 't',
    code: row[9] as UsageDecision['code'], // written from one
    type: featureTypes[Number(row[10])] ?? 'metered',
    balance: row[11] === null ? null : Number(row[11]),
    unlimited: row[12] === 't',
    active: row[13] === 't',
    occurredAt: Number(row[14]),
    replay: true,
  }
}

/** A second command with the same operation id in the same batch: the same input gets the same answer. */
function repeated(slot: Slot, of: Slot): ConsumeAnswer | Refusal {
  const a = slot.command
  const b = of.command
  const same =
    a.featureKey === b.featureKey &&
    a.entityId === b.entityId &&
    a.mode === b.mode &&
    a.quantity === b.quantity &&
    slot.customerId === of.customerId
  if (!same) return conflict(a)
  if (!of.answer || of.answer instanceof Refusal) return of.answer ?? refuse('internal_error')
  return { ...of.answer, replay: true }
}

/** A draw on a credit system alone still counts usage on the Feature's own account, which may not exist yet. */
async function createOwnAccounts(client: pg.PoolClient, slots: Slot[]): Promise<void> {
  const missing = slots.filter(
    (slot) =>
      slot.feature && slot.accounts.size > 0 && !slot.accounts.has(slot.feature.id) && slot.feature.type === 'metered',
  )
  if (missing.length === 0) return
  await insertAccounts(
    client,
    missing.map((slot) => ({
      scopeId: slot.command.scope.scopeId,
      customerId: slot.customerId,
      featureId: slot.feature?.id ?? 0,
    })),
  )
  throw new Changed('accounts were created')
}

function conflict(command: ConsumeCommand): Refusal {
  return refuse('operation_conflict', { details: { operationId: command.operationId } })
}

function featureNotFound(command: ConsumeCommand): Refusal {
  return refuse('feature_not_found', { details: { featureId: command.featureKey } })
}

function customerMissing(type: FeatureType): ConsumeAnswer {
  return { ...usageWithoutCustomer(type), type, occurredAt: null, replay: false }
}
