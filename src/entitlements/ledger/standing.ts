import type pg from 'pg'
import type { Pool } from '../../db/pool.ts'
import { verb } from '../../db/verb.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Refusal, refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Standing } from '../engine/state.ts'
import type { Account, Ms } from '../types.ts'
import { grantOf } from './grant-row.ts'
import { selectStandings } from './standing-store.ts'
import { selectDeleted } from './state-store.ts'

/** Accounts with their unsettled grants, by Feature id. */
export interface WholeStanding extends Standing {
  /** Undefined when no record exists for the id. */
  customerId: string | undefined
  /** Sum of the versions of the accounts: it moves with whatever is written of access and balances. */
  versions: bigint
}

export interface StandingOptions {
  /** Pipelined connections with the ledger's settings. */
  pool: Pool
  tombstoneKey: Buffer
  clock: Clock
}

/** A customer by an id of theirs, or by the record. */
export type Whose = { scope: Scope; distinctId: string } | { scope: Scope; customerId: string }

const queue = {
  lanes: 2,
  itemsMax: 256,
  waitingMax: 20_000,
  waitMsMax: 2000,
  overloaded: 'service_unavailable',
} as const

/** Everything balances are made of. Throws `customer_deleted`. */
export function createStanding({ pool, tombstoneKey, clock }: StandingOptions) {
  return verb<Whose, WholeStanding>({
    ...queue,
    now: () => clock.now(),
    run: (queries) =>
      pool.connected(async (client) => {
        return refuseDeleted(client, queries, await readStandings(client, queries), tombstoneKey)
      }),
  })
}

/** One for each query, in order. On a pipelined connection, in whatever transaction it has open. */
export async function readStandings(client: pg.ClientBase, queries: Whose[]): Promise<WholeStanding[]> {
  const found: Reading[] = queries.map(() => ({ accounts: new Map(), versions: 0n }))
  for (const row of await selectStandings(client, queries.map(idOf))) readRow(found[Number(row[0])], row)
  return found.map(wholeOf)
}

function idOf(whose: Whose) {
  const { scopeId } = whose.scope
  if ('distinctId' in whose) return { scopeId, distinctId: whose.distinctId, customerId: null }
  return { scopeId, distinctId: null, customerId: whose.customerId }
}

/** A standing while its rows come in. */
interface Reading {
  accounts: Map<number, Account>
  versions: bigint
  customerId?: string
  now?: Ms
}

function readRow(reading: Reading | undefined, row: (string | null)[]): void {
  if (!reading) return
  if (row[1]) reading.customerId = row[1]
  reading.now ??= Number(row[2])
  if (row[3] === null) return
  const featureId = Number(row[4])
  let account = reading.accounts.get(featureId)
  if (!account) {
    account = accountOf(featureId, row)
    reading.accounts.set(featureId, account)
    reading.versions += account.version
  }
  if (row[8] !== null) account.grants.push(grantOf(row, 8))
}

function accountOf(featureId: number, row: (string | null)[]): Account {
  return {
    id: BigInt(row[3] ?? 0),
    featureId,
    used: BigInt(row[5] ?? 0),
    entities: new Map(),
    grants: [],
    lastAt: Number(row[6]),
    version: BigInt(row[7] ?? 0),
  }
}

/** No decision that is already made lies after the moment of the standing, whatever the clock says. */
function wholeOf({ accounts, versions, customerId, now = 0 }: Reading): WholeStanding {
  let moment = now
  for (const { lastAt } of accounts.values()) moment = Math.max(moment, lastAt)
  return { customerId, now: moment, accounts, versions }
}

/** Ids that name nobody may be those of deleted customers: a refusal instead of the answer. */
export async function refuseDeleted<T extends { customerId: string | undefined }>(
  client: pg.ClientBase,
  queries: Whose[],
  answers: T[],
  tombstoneKey: Buffer,
): Promise<(T | Refusal)[]> {
  const unknown = queries.flatMap((whose, i) =>
    'distinctId' in whose && answers[i]?.customerId === undefined
      ? [{ i, scopeId: whose.scope.scopeId, distinctId: whose.distinctId }]
      : [],
  )
  if (unknown.length === 0) return answers
  const deleted = await selectDeleted(client, unknown, tombstoneKey)
  const refused = new Set(unknown.filter((_, n) => deleted.has(n)).map(({ i }) => i))
  return answers.map((answer, i) => (refused.has(i) ? refuse('customer_deleted') : answer))
}
