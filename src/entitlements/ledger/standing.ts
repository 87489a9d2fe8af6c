import type pg from 'pg'
import type { Pool } from '../../db/pool.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Refusal, refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Standing } from '../engine/state.ts'
import type { Account, Ms } from '../types.ts'
import { grantOf } from './grant-row.ts'
import { selectStandings, selectVersions } from './standing-store.ts'
import { selectDeleted } from './state-store.ts'
import { verb } from './verb.ts'

/** What moves whenever a customer's properties, identity or access move; time alone moves none of it. */
export interface Versions {
  /** Undefined when no record exists for the id. */
  customerId: string | undefined
  /** Database clock. */
  now: Ms
  /** Equal vectors mean that nothing was written in between. */
  vector: string
}

/** Accounts with their unsettled grants, by Feature id, and the versions of the same moment. */
export interface WholeStanding extends Standing, Versions {}

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

/** The cheap question before the dear one: has anything about the customer changed? Throws `customer_deleted`. */
export function createVersions({ pool, tombstoneKey, clock }: StandingOptions) {
  return verb<{ scope: Scope; distinctId: string }, Versions>({
    ...queue,
    now: () => clock.now(),
    run: (queries) =>
      pool.connected(async (client) => {
        const answers: Versions[] = []
        for (const row of await selectVersions(client, queries.map(idOf))) {
          answers[Number(row[0])] = {
            customerId: row[1] ?? undefined,
            now: Number(row[2]),
            vector: `${row[3]}.${row[4] ?? 0}`,
          }
        }
        return refuseDeleted(client, queries, answers, tombstoneKey)
      }),
  })
}

/** Everything a profile or a balance is made of. Throws `customer_deleted`. */
export function createStanding({ pool, tombstoneKey, clock }: StandingOptions) {
  return verb<Whose, WholeStanding>({
    ...queue,
    now: () => clock.now(),
    run: (queries) =>
      pool.connected(async (client) => {
        const found: Reading[] = queries.map(() => ({ accounts: new Map(), versions: 0n }))
        for (const row of await selectStandings(client, queries.map(idOf))) readRow(found[Number(row[0])], row)
        return refuseDeleted(client, queries, found.map(wholeOf), tombstoneKey)
      }),
  })
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
  version?: string
}

function readRow(reading: Reading | undefined, row: (string | null)[]): void {
  if (!reading) return
  if (row[1]) reading.customerId = row[1]
  reading.now ??= Number(row[2])
  reading.version ??= row[3] ?? ''
  if (row[4] === null) return
  const featureId = Number(row[5])
  let account = reading.accounts.get(featureId)
  if (!account) {
    account = accountOf(featureId, row)
    reading.accounts.set(featureId, account)
    reading.versions += account.version
  }
  if (row[9] !== null) account.grants.push(grantOf(row, 9))
}

function accountOf(featureId: number, row: (string | null)[]): Account {
  return {
    id: BigInt(row[4] ?? 0),
    featureId,
    used: BigInt(row[6] ?? 0),
    entities: new Map(),
    grants: [],
    lastAt: Number(row[7]),
    version: BigInt(row[8] ?? 0),
  }
}

/** No decision that is already made lies after the moment of the standing, whatever the clock says. */
function wholeOf({ accounts, versions, customerId, now = 0, version = '' }: Reading): WholeStanding {
  let moment = now
  for (const { lastAt } of accounts.values()) moment = Math.max(moment, lastAt)
  return { customerId, now: moment, vector: `${version}.${versions}`, accounts }
}

/** Ids that name nobody may be those of deleted customers. */
async function refuseDeleted<T extends Versions>(
  client: pg.PoolClient,
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
