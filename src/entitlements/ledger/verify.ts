import type pg from 'pg'
import type { Pool } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { Audit } from '../engine/audit.ts'
import type { Finding } from '../engine/audit-rows.ts'
import { auditedEntry, auditedOperation, auditedRefill, loadStandings } from './audit-load.ts'
import {
  type Cursor,
  type Owner,
  openEntries,
  openOperations,
  openRefills,
  selectOwners,
  selectStrays,
} from './audit-store.ts'

export interface LedgerVerification {
  accounts: number
  grants: number
  operations: number
  entries: number
  findings: number
}

export interface VerifyOptions {
  onFinding: (finding: Finding) => void
  /** Absent: every project and environment. */
  scopeId?: number
  /** Ends it between two pages. */
  signal?: AbortSignal
}

/** Customers whose standings are in memory together, rows of history read at once, and stray rows reported per table. */
const ownersPerPage = 500
const rowsPerFetch = 2000
const straysMax = 1000

const nobody: Owner = { scopeId: -(2 ** 31), customerId: '00000000-0000-0000-0000-000000000000' }

/**
 * Recomputes every balance, counter and decision from the ledger's entries and operations, and reports where the tables say
 * something else. Reads customers by the page, each page in a snapshot of its own; takes no locks, writes nothing, and may
 * run beside the service.
 */
export async function verifyLedger(
  pool: Pool,
  { onFinding, scopeId, signal }: VerifyOptions,
): Promise<LedgerVerification> {
  const counts: LedgerVerification = { accounts: 0, grants: 0, operations: 0, entries: 0, findings: 0 }
  const report = (finding: Finding) => {
    counts.findings++
    onFinding(finding)
  }
  const scope = scopeId ?? null
  for (let after: Owner | undefined = nobody; after !== undefined; ) {
    signal?.throwIfAborted()
    const from: Owner = after
    after = await snapshot(pool, async (client) => {
      await client.query(lookUps)
      const { owners, last } = await selectOwners(client, { after: from, scopeId: scope, limit: ownersPerPage })
      if (owners.length > 0) await verifyPage(client, owners, counts, report)
      return last
    })
  }
  await snapshot(pool, async (client) => {
    for (const { table, scopeId, id, missing } of await selectStrays(client, { scopeId: scope, limit: straysMax })) {
      const ids = { ...(scopeId === null ? {} : { scope: scopeId }), [table]: id }
      report({ rule: 'place', ids, expected: missing, found: 'none' })
    }
  })
  return counts
}

async function verifyPage(
  client: pg.PoolClient,
  owners: Owner[],
  counts: LedgerVerification,
  report: (finding: Finding) => void,
): Promise<void> {
  const { standings, records } = await loadStandings(client, owners)
  const audit = new Audit(standings, report)
  counts.accounts += standings.accounts.length
  counts.grants += standings.grants.length
  const accountIds = standings.accounts.map(({ id }) => id)
  const [entries, operations, refills] = [
    new History(await openEntries(client, accountIds), auditedEntry),
    new History(await openOperations(client, records), auditedOperation),
    new History(
      await openRefills(
        client,
        standings.grants.map(({ id }) => id),
      ),
      auditedRefill,
    ),
  ]
  const all = [entries, operations, refills]
  while (await anyLeft(all)) {
    // Behind this instant nothing more can come from any of the three.
    const until = Math.min(...all.map((history) => history.knownUntil))
    const happenings = {
      entries: entries.takeBefore(until),
      operations: operations.takeBefore(until),
      refills: refills.takeBefore(until),
    }
    counts.entries += happenings.entries.length
    counts.operations += happenings.operations.length
    audit.take(happenings)
    // One instant fills all that was read: it has to be whole.
    for (const history of all) if (history.knownUntil === until) await history.more()
  }
  audit.end()
}

async function anyLeft(all: { isLeft: () => Promise<boolean> }[]): Promise<boolean> {
  let isAny = false
  for (const history of all) isAny = (await history.isLeft()) || isAny
  return isAny
}

/** Rows of one kind in order of time. */
class History<Row extends { at: number }> {
  readonly #cursor: Cursor
  readonly #parse: (row: (string | null)[]) => Row
  #rows: Row[] = []
  #isEnded = false

  constructor(cursor: Cursor, parse: (row: (string | null)[]) => Row) {
    this.#cursor = cursor
    this.#parse = parse
  }

  /** The instant from which on more rows may come. */
  get knownUntil(): number {
    return this.#isEnded ? Number.POSITIVE_INFINITY : must(this.#rows.at(-1), 'read before it is asked').at
  }

  async isLeft(): Promise<boolean> {
    if (this.#rows.length === 0) await this.more()
    return this.#rows.length > 0
  }

  async more(): Promise<void> {
    if (this.#isEnded) return
    const rows = await this.#cursor.next(rowsPerFetch)
    this.#isEnded = rows.length < rowsPerFetch
    this.#rows = this.#rows.concat(rows.map((row) => this.#parse(row)))
  }

  takeBefore(instant: number): Row[] {
    const end = this.#rows.findIndex((row) => row.at >= instant)
    return this.#rows.splice(0, end < 0 ? this.#rows.length : end)
  }
}

/** Waiting for a slow disk or for our own arithmetic is not a fault here. */
const settings = `
  set local statement_timeout = '30min';
  set local idle_in_transaction_session_timeout = '5min'`

/** A page is a chain of index look-ups. Left to choose, the planner reads whole tables for each, and a million accounts take hours. */
const lookUps = `
  set local enable_seqscan = off;
  set local enable_bitmapscan = off;
  set local enable_hashjoin = off;
  set local enable_mergejoin = off`

function snapshot<T>(pool: Pool, read: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  return pool.transaction(async ({ client }) => {
    await client.query('set transaction isolation level repeatable read, read only')
    await client.query(settings)
    return read(client)
  })
}
