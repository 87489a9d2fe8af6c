import type { Units } from '../types.ts'
import type { AuditedAccount, AuditedOperation, Report, Standings } from './audit-rows.ts'
import type { Range } from './audit-spends.ts'
import { maxUnits, minUnits, storedUnitsMax } from './units.ts'

/**
 * Adds accepted operations up to what the counters must be. An account that no other was merged into is replayed exactly.
 * A merge adds counters at an instant that nothing records, so after one the increase of a `set_usage` is taken from what
 * it paid; covered by an unlimited grant it paid nothing, and is known only to lie between 0 and its quantity.
 */
export class Counters {
  readonly #ranges = new Map<bigint, Map<string | null, Range>>()
  readonly #isExact: (account: AuditedAccount) => boolean

  constructor(isExact: (account: AuditedAccount) => boolean) {
    this.#isExact = isExact
  }

  /** What an accepted operation adds, before looking at who paid. */
  increase(account: AuditedAccount, { mode, quantity, entityId }: AuditedOperation): Range {
    if (mode === 'consume') return { least: quantity, most: quantity }
    if (!this.#isExact(account)) return { least: 0n, most: quantity }
    const units = maxUnits(0n, quantity - this.#range(account, entityId).most)
    return { least: units, most: units }
  }

  raise(account: AuditedAccount, { entityId }: AuditedOperation, { least, most }: Range): void {
    const range = this.#range(account, entityId)
    range.least = minUnits(range.least + least, storedUnitsMax)
    range.most = minUnits(range.most + most, storedUnitsMax)
  }

  /** `family` are the accounts merged into `root`, and it. What a merged one still says is frozen: at most what it passed on. */
  compare(
    root: AuditedAccount,
    family: readonly AuditedAccount[],
    entities: Standings['entities'],
    report: Report,
  ): void {
    const stored = new Map<string | null, Units>(
      entities.filter((row) => row.accountId === root.id).map((row) => [row.entityId, row.used]),
    )
    stored.set(null, root.used)
    const known = new Set([
      ...stored.keys(),
      ...family.flatMap((each) => [...(this.#ranges.get(each.id)?.keys() ?? [])]),
    ])
    for (const entity of known) {
      const total: Range = { least: 0n, most: 0n }
      for (const each of family) {
        const range = this.#ranges.get(each.id)?.get(entity)
        total.least = minUnits(total.least + (range?.least ?? 0n), storedUnitsMax)
        total.most = minUnits(total.most + (range?.most ?? 0n), storedUnitsMax)
      }
      const found = stored.get(entity)
      if (found !== undefined ? found >= total.least && found <= total.most : total.least === 0n) continue
      const ids = { scope: root.scopeId, account: root.id, ...(entity === null ? {} : { entity }) }
      report({ rule: 'used', ids, expected: rangeText(total), found: found === undefined ? 'none' : String(found) })
    }
    for (const each of family) {
      const least = this.#ranges.get(each.id)?.get(null)?.least ?? 0n
      if (each.used >= least && each.used <= root.used) continue
      const ids = { scope: each.scopeId, account: each.id }
      report({ rule: 'used', ids, expected: `${least} to ${root.used}`, found: String(each.used) })
    }
  }

  #range({ id }: AuditedAccount, entity: string | null): Range {
    const ofAccount = this.#ranges.get(id) ?? new Map<string | null, Range>()
    this.#ranges.set(id, ofAccount)
    const range = ofAccount.get(entity) ?? { least: 0n, most: 0n }
    ofAccount.set(entity, range)
    return range
  }
}

export function rangeText({ least, most }: Range): string {
  return least === most ? String(least) : `${least} to ${most}`
}
