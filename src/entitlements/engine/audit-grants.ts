import type { Ms, Units } from '../types.ts'
import type { AuditedEntry, AuditedGrant, Report } from './audit-rows.ts'

interface Trail {
  grant: AuditedGrant
  opened: boolean
  /** After the newest entry. */
  remaining: Units
  sum: Units
  period: bigint
  revoked: boolean
}

/** Follows each grant through its entries, in the order in which they were written. */
export class GrantTrails {
  readonly #trails: Map<bigint, Trail>
  readonly #report: Report

  constructor(grants: readonly AuditedGrant[], report: Report) {
    this.#report = report
    this.#trails = new Map(
      grants.map((grant) => [grant.id, { grant, opened: false, remaining: 0n, sum: 0n, period: 0n, revoked: false }]),
    )
  }

  /**
   * The entries of one instant, in the order of their accounts and versions. A grant that moved between accounts at this
   * very instant is followed through whichever account goes on from where it stood.
   */
  follow(entries: readonly AuditedEntry[]): void {
    for (const [grantId, own] of Map.groupBy(entries, (entry) => entry.grantId)) {
      const trail = this.#trails.get(grantId)
      if (!trail) continue
      const places = [...Map.groupBy(own, (entry) => entry.accountId).values()]
      while (places.length > 0) {
        const next = places.findIndex(([first]) => first && first.remaining - first.delta === trail.remaining)
        for (const entry of places.splice(Math.max(next, 0), 1).flat()) this.#step(trail, entry)
      }
    }
  }

  end(): void {
    for (const trail of this.#trails.values()) this.#end(trail)
  }

  #step(trail: Trail, entry: AuditedEntry): void {
    const { grant } = trail
    const { delta, remaining, kind } = entry
    const opens = kind === 'grant' || kind === 'rollover'
    if (opens === trail.opened) {
      this.#tell('chain', entry, trail.opened ? 'a movement' : 'grant or rollover first', kind)
    }
    if (opens && delta !== grant.amount) this.#tell('amount', entry, String(delta), String(grant.amount))
    if (remaining - delta !== trail.remaining) {
      this.#tell('chain', entry, `${trail.remaining} before`, `${remaining - delta} before`)
    }
    if (remaining < 0n || remaining > grant.amount) {
      this.#tell('chain', entry, `0 to ${grant.amount}`, String(remaining))
    }
    if (!movesAs(entry, grant)) this.#tell('chain', entry, `a ${kind}`, `${delta} to ${remaining}`)
    if (kind === 'refill' ? entry.period <= trail.period : entry.period !== trail.period) {
      this.#tell('period', entry, `${kind === 'refill' ? 'after ' : ''}${trail.period}`, String(entry.period))
    }
    if (kind === 'draw' && !wasLive(grant, entry.at)) {
      this.#tell('chain', entry, 'a live grant', `drawn at ${entry.at}`)
    }
    trail.opened = true
    trail.remaining = remaining
    trail.sum += delta
    trail.period = entry.period
    trail.revoked = kind === 'restore' ? false : trail.revoked || kind === 'revoke'
  }

  #end({ grant, opened, remaining, sum, period, revoked }: Trail): void {
    const ids = { scope: grant.scopeId, account: grant.accountId, grant: grant.id }
    if (!opened) this.#report({ rule: 'chain', ids, expected: 'a grant or rollover entry', found: 'none' })
    if (grant.remaining !== sum) {
      this.#report({ rule: 'remaining', ids, expected: `${sum} (sum of entries)`, found: String(grant.remaining) })
    }
    if (opened && grant.remaining !== remaining) {
      this.#report({ rule: 'remaining', ids, expected: `${remaining} (last entry)`, found: String(grant.remaining) })
    }
    if (grant.remaining < 0n || grant.remaining > grant.amount) {
      this.#report({ rule: 'remaining', ids, expected: `0 to ${grant.amount}`, found: String(grant.remaining) })
    }
    if (grant.hidden) {
      this.#report({ rule: 'hidden', ids, expected: 'ended, or drained for good', found: 'settled' })
    }
    if (grant.periodNo !== period) {
      this.#report({ rule: 'period', ids, expected: String(period), found: String(grant.periodNo) })
    }
    if ((grant.revokedAt !== null) !== revoked) {
      const found = grant.revokedAt === null ? 'not revoked' : `revoked at ${grant.revokedAt}`
      this.#report({ rule: 'revoked', ids, expected: revoked ? 'revoked' : 'not revoked', found })
    }
  }

  #tell(rule: 'chain' | 'amount' | 'period', entry: AuditedEntry, expected: string, found: string): void {
    this.#report({ rule, ids: entryIds(entry), expected, found })
  }
}

export function entryIds({ scopeId, accountId, grantId, version, line, operationId }: AuditedEntry) {
  const ids = { scope: scopeId, account: accountId, grant: grantId, version, line }
  return operationId === null ? ids : { ...ids, operation: operationId }
}

function movesAs({ kind, delta, remaining }: AuditedEntry, grant: AuditedGrant): boolean {
  switch (kind) {
    case 'draw':
      return delta < 0n
    case 'lapse':
      return delta <= 0n && remaining === 0n
    case 'refill':
      return remaining === grant.amount
    case 'revoke':
    case 'shrink':
      return delta <= 0n
    case 'restore':
      return delta >= 0n
    case 'extend':
      return delta === 0n
    case 'reverse':
      return delta > 0n
    default:
      return true
  }
}

/** Not by its expiry: a renewal may cut it afterwards. */
function wasLive({ effectiveAt, revokedAt }: AuditedGrant, at: Ms): boolean {
  return effectiveAt <= at && (revokedAt === null || at < revokedAt)
}
