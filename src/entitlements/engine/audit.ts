import { entryIds, GrantTrails } from './audit-grants.ts'
import { AuditIndex } from './audit-index.ts'
import { Operations } from './audit-operations.ts'
import { auditRefills } from './audit-refills.ts'
import type { AuditedEntry, AuditedGrant, Finding, Happenings, Report, Standings } from './audit-rows.ts'
import { Versions } from './audit-versions.ts'

/** Everything at once, for ledgers that fit in memory. */
export function audit(standings: Standings, happenings: Happenings): Finding[] {
  const findings: Finding[] = []
  const whole = new Audit(standings, (finding) => findings.push(finding))
  whole.take(happenings)
  whole.end()
  return findings
}

/**
 * Holds real rows against the ledger's rules. Standings come first; then what happened, in order of time and in portions of
 * whole instants, so that a history of any length passes through bounded memory.
 */
export class Audit {
  readonly #report: Report
  readonly #standings: Standings
  readonly #index: AuditIndex
  readonly #trails: GrantTrails
  readonly #versions = new Versions()
  readonly #operations: Operations

  constructor(standings: Standings, report: Report) {
    this.#report = report
    this.#standings = standings
    this.#index = new AuditIndex(standings)
    this.#trails = new GrantTrails(standings.grants, report)
    this.#operations = new Operations(this.#index, this.#versions, report)
    for (const account of standings.accounts) this.#merged(account)
    for (const grant of standings.grants) this.#place(grant)
  }

  take({ entries, operations, refills }: Happenings): void {
    const entriesAt = Map.groupBy(entries, ({ at }) => at)
    const operationsAt = Map.groupBy(operations, ({ at }) => at)
    const refillsAt = Map.groupBy(refills, ({ at }) => at)
    const instants = new Set([...entriesAt.keys(), ...operationsAt.keys(), ...refillsAt.keys()])
    for (const at of [...instants].sort((a, b) => a - b)) {
      const now = (entriesAt.get(at) ?? []).toSorted((a, b) => this.#order(a, b))
      const steps = [...Map.groupBy(now, ({ accountId, version }) => `${accountId} ${version}`).values()]
      this.#trails.follow(now)
      for (const step of steps) this.#step(step)
      auditRefills(steps, refillsAt.get(at) ?? [], this.#index.grants, this.#report)
      this.#operations.judge(operationsAt.get(at) ?? [], now)
      this.#versions.close()
    }
  }

  end(): void {
    this.#trails.end()
    const { accounts, entities } = this.#standings
    for (const account of accounts) {
      const isWhole = this.#index.isUnmerged(account) && !entities.some((entity) => entity.accountId === account.id)
      this.#versions.compare(account, isWhole, this.#report)
    }
    for (const [id, family] of this.#index.families) {
      const root = this.#index.accounts.get(id)
      if (root) this.#operations.counters.compare(root, family, entities, this.#report)
    }
  }

  #merged(account: Standings['accounts'][number]): void {
    if (account.mergedInto === null) return
    const target = this.#index.accounts.get(account.mergedInto)
    const fits = target?.mergedInto === null && target.featureId === account.featureId
    if (fits && target.scopeId === account.scopeId) return
    const ids = { scope: account.scopeId, account: account.id }
    const expected = 'an account of the same Feature that is not merged'
    this.#report({ rule: 'merged_into', ids, expected, found: String(account.mergedInto) })
  }

  #place({ id, accountId, scopeId, featureId }: AuditedGrant): void {
    const account = this.#index.accounts.get(accountId)
    const ids = { scope: scopeId, account: accountId, grant: id }
    if (account && account.mergedInto !== null) {
      this.#report({ rule: 'merged_into', ids, expected: 'no grants', found: 'a grant' })
    }
    if (account?.scopeId === scopeId && account.featureId === featureId) return
    const found = account ? `${account.scopeId}, Feature ${account.featureId}` : 'no account'
    this.#report({ rule: 'place', ids, expected: `an account of scope ${scopeId}, Feature ${featureId}`, found })
  }

  /** All entries of one version of an account: what one command caused there. */
  #step(step: AuditedEntry[]): void {
    const [first] = step
    const account = first && this.#index.accounts.get(first.accountId)
    if (!account) return
    const tell = (rule: 'version' | 'clock' | 'place', expected: string, found: string, entry = first) =>
      this.#report({ rule, ids: entryIds(entry), expected, found })
    const cause = step.find(({ kind }) => causes.has(kind))
    if (!this.#versions.note(account.id, first.version, cause?.operationId ?? null)) {
      tell('version', 'a later version', String(first.version))
    }
    if (first.at > account.lastAt) tell('clock', `at most ${account.lastAt}`, String(first.at))
    if (new Set(step.map(({ line }) => line)).size < step.length) tell('version', 'each line once', 'one twice')
    if (step.some(({ operationId }) => operationId !== first.operationId)) tell('version', 'one operation', 'several')
    if (step.every(({ kind }) => consequences.has(kind))) tell('version', 'a cause', 'its consequences only')
    for (const entry of step) {
      const grant = this.#index.grants.get(entry.grantId)
      const isHome = grant && this.#index.kinOf(grant.accountId) === this.#index.kinOf(entry.accountId)
      if (!isHome) tell('place', 'a grant of its account', grant ? `of account ${grant.accountId}` : 'none', entry)
      if (entry.scopeId !== account.scopeId) tell('place', `scope ${account.scopeId}`, String(entry.scopeId), entry)
    }
  }

  /** Merged accounts before those they were merged into. */
  #order(a: AuditedEntry, b: AuditedEntry): number {
    return (
      this.#isRoot(a) - this.#isRoot(b) ||
      compare(a.accountId, b.accountId) ||
      compare(a.version, b.version) ||
      a.line - b.line
    )
  }

  #isRoot({ accountId }: AuditedEntry): number {
    return Number(this.#index.rootOf(accountId) === accountId)
  }
}

/** Those of an operation. A grant has one only when an entity's first use opened it. */
const causes = new Set(['draw', 'reverse', 'grant'])

/** Written because something else was: never alone. */
const consequences = new Set(['lapse', 'refill', 'rollover'])

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : Number(a > b)
}
