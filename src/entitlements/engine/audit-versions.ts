import type { AuditedAccount, Report } from './audit-rows.ts'

interface Known {
  last: bigint
  /** How many versions have a cause on record. */
  explained: bigint
  /** Those of the instant under way, with the operation that caused each. */
  now: Map<bigint, string | null>
}

/** What the versions of accounts were used for. */
export class Versions {
  readonly #known = new Map<bigint, Known>()
  readonly #touched = new Set<Known>()

  /** False when the version is not later than all before this instant, or caused by something else. */
  note(accountId: bigint, version: bigint, operationId: string | null): boolean {
    const known = this.#known.get(accountId) ?? { last: 0n, explained: 0n, now: new Map() }
    this.#known.set(accountId, known)
    const isNew = version > known.last && (!known.now.has(version) || known.now.get(version) === operationId)
    known.now.set(version, operationId)
    this.#touched.add(known)
    return isNew
  }

  /** The instant is over. */
  close(): void {
    for (const known of this.#touched) {
      known.explained += BigInt(known.now.size)
      for (const version of known.now.keys()) if (version > known.last) known.last = version
      known.now.clear()
    }
    this.#touched.clear()
  }

  /** Merges and registrations raise a version without a row, so where there were any, versions may lack a cause. */
  compare(account: AuditedAccount, isWhole: boolean, report: Report): void {
    const { explained, last } = this.#known.get(account.id) ?? { explained: 0n, last: 0n }
    const ids = { scope: account.scopeId, account: account.id }
    const found = String(account.version)
    if (account.version < last) report({ rule: 'version', ids, expected: `at least ${last}`, found })
    else if (isWhole && account.version !== explained) {
      report({ rule: 'version', ids, expected: `${explained} (entries and operations)`, found })
    }
  }
}
