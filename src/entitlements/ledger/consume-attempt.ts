import type pg from 'pg'
import { sqlState } from '../../db/pool.ts'
import { pipeline } from '../../db/raw.ts'
import { appendFacts } from '../../events/index.ts'
import { must } from '../../kernel/assert.ts'
import { type Refusal, refuse } from '../../kernel/errors.ts'
import { accountWaitMsMax } from '../../kernel/limits.ts'
import type { Catalogues } from '../catalogue/catalogue.ts'
import { BatchWrite } from './batch-write.ts'
import { decideAll } from './consume-decide.ts'
import { type Inquiry, loadState } from './load-state.ts'
import { answerKnown, repeated } from './saved-answer.ts'
import { Changed, type ConsumeAnswer, type ConsumeCommand, type Decidable, type Slot } from './slot.ts'
import { selectMoment } from './state-store.ts'
import { insertAccounts, lockAccounts, selectOperations } from './usage-store.ts'
import { writeEntities, writeOpened, writeRefills, writeRollover, writeUsage } from './usage-write-store.ts'

export interface AttemptOptions {
  catalogues: Catalogues
  tombstoneKey: Buffer
}

type Answers = (ConsumeAnswer | Refusal)[]

/** Instead of an answer: somebody else holds the command's accounts at the moment. */
export const held = Symbol('held')

/** Load, decide, write, in two round trips. The write is refused by its version guard if anything moved since the load. */
export async function attempt(
  options: AttemptOptions,
  client: pg.PoolClient,
  commands: ConsumeCommand[],
): Promise<Answers> {
  const loaded = await load(options, client, commands)
  const batch = new BatchWrite()
  await decideAll(client, loaded.pending, loaded.now, batch)
  await save(client, batch)
  return answersOf(loaded)
}

/**
 * The same under locks, taken in id order. Without waiting, a command whose accounts somebody else has locked is `held`, so
 * that it stalls nobody else's; waiting, it throws `billing_unavailable` when that takes too long.
 */
export async function attemptLocked(
  options: AttemptOptions,
  client: pg.PoolClient,
  commands: ConsumeCommand[],
  { wait }: { wait: boolean },
): Promise<(ConsumeAnswer | Refusal | typeof held)[]> {
  const before = await load(options, client, commands)
  await client.query('begin')
  try {
    if (wait) await client.query(`set local lock_timeout = '${accountWaitMsMax}ms'`)
    const ids = [...new Set(before.pending.flatMap(accountIds))].sort((a, b) => (a < b ? -1 : 1))
    const locked = await lockAccounts(client, ids, wait)
    const isFree = (slot: Slot) => accountIds(slot).every((id) => locked.has(id))
    const notFree = new Set(before.pending.filter((slot) => !isFree(slot)).map((slot) => slot.command))
    for (const { slot, of } of before.repeats) if (notFree.has(of.command)) notFree.add(slot.command)
    const free = commands.filter((command) => !notFree.has(command))

    // A later statement than the lock: what is read now can't move any more.
    const loaded = await load(options, client, free)
    if (!loaded.pending.every(isFree)) throw new Changed('the accounts are others now')
    const batch = new BatchWrite()
    await decideAll(client, loaded.pending, loaded.now, batch)
    await write(client, batch, { commit: false })
    await client.query('commit')
    const answers = new Map(answersOf(loaded).map((answer, i) => [free[i], answer]))
    return commands.map((command) => answers.get(command) ?? held)
  } catch (error) {
    await client.query('rollback')
    throw wait && sqlState(error) === lockTimeout
      ? refuse('billing_unavailable', { retryAfterS: 1, cause: error })
      : error
  }
}

const lockTimeout = '55P03'

function accountIds({ holder }: Slot): bigint[] {
  return [...holder.accounts.values()].map((account) => account.id)
}

/** What is known of a command without deciding it: its answer, or nothing yet. */
export async function lookUp(options: AttemptOptions, client: pg.PoolClient, command: ConsumeCommand): Promise<Slot> {
  const { slots } = await loadSlots(options, client, [command])
  return must(slots[0], 'one for each')
}

/**
 * One command inside the transaction of the caller, who commits. Waits for the accounts as long as the transaction's
 * `lock_timeout` lets it; what it throws leaves the transaction to be rolled back.
 */
export async function attemptWithin(
  options: AttemptOptions,
  client: pg.PoolClient,
  command: ConsumeCommand,
): Promise<ConsumeAnswer | Refusal> {
  const before = await load(options, client, [command])
  const ids = before.pending.flatMap(accountIds).sort((a, b) => (a < b ? -1 : 1))
  const locked = await lockAccounts(client, ids, true)
  const loaded = await load(options, client, [command])
  if (!loaded.pending.flatMap(accountIds).every((id) => locked.has(id)))
    throw new Changed('the accounts are others now')
  const batch = new BatchWrite()
  await decideAll(client, loaded.pending, loaded.now, batch)
  await write(client, batch, { commit: false })
  return must(answersOf(loaded)[0], 'one for each')
}

interface Loaded {
  /** Database clock. */
  now: number
  slots: Slot[]
  /** Those that need a decision, each operation once. */
  pending: Decidable[]
  /** Further commands with the operation id of a pending one. */
  repeats: { slot: Slot; of: Slot }[]
}

async function load(options: AttemptOptions, client: pg.PoolClient, commands: ConsumeCommand[]): Promise<Loaded> {
  const { slots, now } = await loadSlots(options, client, commands)
  const sorted = { now, slots, ...sortOut(slots) }
  await createOwnAccounts(client, sorted.pending)
  return sorted
}

/** State, saved operations and the moment, sent together. Answers everything that needs no decision. */
async function loadSlots(
  options: AttemptOptions,
  client: pg.PoolClient,
  commands: ConsumeCommand[],
): Promise<{ now: number; slots: Slot[] }> {
  const inquiries: Inquiry[] = []
  for (const { scope, distinctId, entityId, featureKey } of commands) {
    const catalogue = options.catalogues.current(scope) ?? (await options.catalogues.load(scope))
    inquiries.push({ scope, distinctId, entityId, catalogue, feature: catalogue.published.get(featureKey) })
  }
  const scopeIds = [...new Set(commands.map((command) => command.scope.scopeId))]
  const [{ holders }, saved, { now, revisions }] = await pipeline(client, () => [
    loadState(client, inquiries, options.tombstoneKey),
    selectOperations(
      client,
      commands.map(({ scope, operationId }) => ({ scopeId: scope.scopeId, operationId })),
    ),
    selectMoment(client, scopeIds),
  ])
  for (const { scope, catalogue } of inquiries) {
    const revision = must(revisions[scopeIds.indexOf(scope.scopeId)], 'one for each scope')
    if (revision > catalogue.revision) throw new Changed('the catalogue changed')
  }
  const slots = commands.map((command, i): Slot => {
    const inquiry = must(inquiries[i], 'one for each')
    return { command, inquiry, holder: must(holders[i], 'one for each'), answer: undefined }
  })
  await answerKnown(client, slots, saved)
  return { now, slots }
}

function sortOut(slots: Slot[]): Pick<Loaded, 'pending' | 'repeats'> {
  const first = new Map<string, Slot>()
  const pending: Decidable[] = []
  const repeats: Loaded['repeats'] = []
  for (const slot of slots) {
    const key = `${slot.command.scope.scopeId} ${slot.command.operationId}`
    const of = first.get(key)
    if (slot.answer) {
      // Had the earlier one been decided and saved before, that would have been looked at before Feature and customer.
      if (of && !slot.holder.deleted) repeats.push({ slot, of })
    } else if (of) {
      repeats.push({ slot, of })
    } else {
      const { holder, inquiry } = slot
      const decidable = Object.assign(slot, {
        customerId: must(holder.customerId, 'unknown customers were answered'),
        feature: must(inquiry.feature, 'unknown Features were answered'),
      })
      first.set(key, decidable)
      pending.push(decidable)
    }
  }
  return { pending, repeats }
}

/** A draw on a credit system alone still counts usage on the Feature's own account, which may not exist yet. */
async function createOwnAccounts(client: pg.PoolClient, pending: Decidable[]): Promise<void> {
  const missing = pending.filter(({ holder, feature }) => holder.accounts.size > 0 && !holder.accounts.has(feature.id))
  if (missing.length === 0) return
  await insertAccounts(
    client,
    missing.map(({ command, customerId, feature }) => {
      return { scopeId: command.scope.scopeId, customerId, featureId: feature.id }
    }),
  )
  throw new Changed('accounts were created')
}

function answersOf({ slots, repeats }: Loaded): Answers {
  for (const { slot, of } of repeats) slot.answer = repeated(slot, of)
  return slots.map((slot) => must(slot.answer, 'every command was answered'))
}

/** In a transaction of its own; when the one statement is enough, that is one. */
async function save(client: pg.PoolClient, batch: BatchWrite): Promise<void> {
  if (batch.operations.length === 0) return
  if (batch.plain) return writeUsage(client, batch)
  // The write fails where somebody came in between; behind it COMMIT is then a rollback.
  if (batch.made.length === 0) return write(client, batch, { commit: true })
  await client.query('begin')
  try {
    await write(client, batch, { commit: false })
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

/** New grants get their numbers first; all else goes out in one piece, with `commit` as a transaction of its own. */
async function write(client: pg.PoolClient, batch: BatchWrite, { commit }: { commit: boolean }): Promise<void> {
  if (batch.operations.length === 0) return
  for (const made of batch.made) {
    const number = made.kind === 'grant' ? await writeOpened(client, made) : await writeRollover(client, made)
    batch.renumber(made.grant, number)
  }
  const { refills, entities, facts } = batch
  await pipeline(client, () => [
    ...(commit ? [client.query('begin')] : []),
    ...(refills.length > 0 ? [writeRefills(client, refills)] : []),
    ...(entities.length > 0 ? [writeEntities(client, entities)] : []),
    writeUsage(client, batch),
    ...(facts.length > 0 ? [appendFacts({ client }, facts)] : []),
    ...(commit ? [client.query('commit')] : []),
  ])
}
