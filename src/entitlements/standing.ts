import { coalesce } from '../db/batch.ts'
import { isConnectionLoss, type Pool, unavailable } from '../db/pool.ts'
import type { Clock } from '../kernel/clock.ts'
import { Refusal, refuse } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { grantOf } from './grant-row.ts'
import { selectStandings, selectVersions } from './standing-store.ts'
import type { Standing } from './state.ts'
import { selectDeleted } from './state-store.ts'
import type { Account, Ms } from './types.ts'

/** What moves whenever a customer's properties, identity or access move; time alone moves none of it. */
export interface Versions {
  /** Undefined when no record exists for the id. */
  customerId: string | undefined
  /** Database clock. */
  now: Ms
  /** Equal vectors mean that nothing was written in between. */
  vector: string
}

export interface StandingOptions {
  /** Pipelined connections with the ledger's settings. */
  pool: Pool
  tombstoneKey: Buffer
  clock: Clock
}

const queue = { lanes: 1, itemsMax: 256, waitingMax: 20_000, waitMsMax: 2000 }
const splitOn = (error: unknown) => !(error instanceof Refusal) && !isConnectionLoss(error)

/** The cheap question before the dear one: has anything about the customer changed? Throws `customer_deleted`. */
export function createVersions({ pool, tombstoneKey, clock }: StandingOptions) {
  const one = coalesce<{ scope: Scope; distinctId: string }, Versions | Refusal>({
    ...queue,
    now: () => clock.now(),
    splitOn,
    run: (queries) =>
      pool.connected(async (client) => {
        const ids = queries.map(({ scope, distinctId }) => ({ scopeId: scope.scopeId, distinctId }))
        const answers: (Versions | Refusal)[] = []
        for (const row of await selectVersions(client, ids)) {
          const vector = `${row[3]}.${row[4] ?? 0}`
          answers[Number(row[0]) - 1] = { customerId: row[1] ?? undefined, now: Number(row[2]), vector }
        }
        const unknown = answers.flatMap((answer, i) => (answer instanceof Refusal || answer.customerId ? [] : [i]))
        if (unknown.length > 0) {
          const asked = unknown.map((i) => ids[i] ?? { scopeId: 0, distinctId: '' })
          for (const deleted of await selectDeleted(client, asked, tombstoneKey)) {
            answers[unknown[deleted] ?? -1] = refuse('customer_deleted')
          }
        }
        return answers
      }),
  })
  return async (query: { scope: Scope; distinctId: string }): Promise<Versions> => {
    try {
      const answer = await one(query)
      if (answer instanceof Refusal) throw answer
      return answer
    } catch (error) {
      throw unavailable(error, 'service_unavailable')
    }
  }
}

/** All accounts of a customer with their unsettled grants, by Feature id, at the database clock. */
export function createStanding({ pool, clock }: StandingOptions) {
  const one = coalesce<{ scope: Scope; customerId: string }, Standing>({
    ...queue,
    now: () => clock.now(),
    splitOn,
    run: (queries) =>
      pool.connected(async (client) => {
        const customers = queries.map(({ scope, customerId }) => ({ scopeId: scope.scopeId, customerId }))
        const standings: { now: Ms; accounts: Map<number, Account> }[] = customers.map(() => ({
          now: 0,
          accounts: new Map(),
        }))
        for (const row of await selectStandings(client, customers)) {
          const standing = standings[Number(row[0]) - 1]
          if (!standing) continue
          standing.now = Math.max(standing.now, Number(row[1]), Number(row[5] ?? 0))
          if (row[2] === null) continue
          const account = accountOf(standing.accounts, row)
          if (row[7] !== null) account.grants.push(grantOf(row, 7))
        }
        return standings
      }),
  })
  return async (query: { scope: Scope; customerId: string }): Promise<Standing> => {
    try {
      return await one(query)
    } catch (error) {
      throw unavailable(error, 'service_unavailable')
    }
  }
}

function accountOf(accounts: Map<number, Account>, row: (string | null)[]): Account {
  const featureId = Number(row[3])
  const found = accounts.get(featureId)
  if (found) return found
  const account: Account = {
    id: BigInt(row[2] ?? 0),
    featureId,
    used: BigInt(row[4] ?? 0),
    entities: new Map(),
    grants: [],
    lastAt: Number(row[5]),
    version: BigInt(row[6] ?? 0),
  }
  accounts.set(featureId, account)
  return account
}
