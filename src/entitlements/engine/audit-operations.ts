import { Counters, rangeText } from './audit-counters.ts'
import { entryIds } from './audit-grants.ts'
import type { AuditIndex } from './audit-index.ts'
import type { AuditedAccount, AuditedEntry, AuditedOperation, Report, Rule } from './audit-rows.ts'
import { heldAfter, implausible, paidUnits, type Range } from './audit-spends.ts'
import type { Versions } from './audit-versions.ts'
import { maxUnits, minUnits } from './units.ts'

/** Holds saved operations against the entries that paid for them, one instant after another. */
export class Operations {
  readonly counters: Counters
  readonly #index: AuditIndex
  readonly #versions: Versions
  readonly #report: Report

  constructor(index: AuditIndex, versions: Versions, report: Report) {
    this.#index = index
    this.#versions = versions
    this.#report = report
    this.counters = new Counters((account) => index.hasOwnCounters(account))
  }

  /** `entries` are those of the same instant, in order. */
  judge(operations: readonly AuditedOperation[], entries: readonly AuditedEntry[]): void {
    const draws = Map.groupBy(ofKind(entries, 'draw'), keyOf)
    const returns = Map.groupBy(ofKind(entries, 'reverse'), keyOf)
    for (const operation of operations.toSorted(asDecided)) {
      const paying = operation.returned ? returns : draws
      const mine = paying.get(keyOf(operation)) ?? []
      paying.delete(keyOf(operation))
      if (operation.returned) this.#reversal(operation, mine, operation.returned)
      else this.#spend(operation, mine)
    }
    for (const [first] of [...draws.values(), ...returns.values()]) {
      if (!first) continue
      this.#report({ rule: 'operation', ids: entryIds(first), expected: 'its operation', found: 'none' })
    }
  }

  #spend(operation: AuditedOperation, draws: AuditedEntry[]): void {
    const account = this.#index.accountOf(operation)
    const feature = this.#index.featureNamed(operation)
    if (account && operation.version > account.version) {
      this.#tell('version', operation, `at most ${account.version}`, String(operation.version))
    }
    const held = account && feature ? heldAfter(draws, account, feature.scale) : 0n
    const odd = implausible(operation, held)
    if (odd !== null) this.#tell('answer', operation, 'an answer that the service gives', odd)
    const paysNothing = !operation.accepted || operation.unlimited
    if (paysNothing && draws.length > 0) {
      this.#tell('operation', operation, 'no entries', `${draws.length} draws`)
    }
    if (new Set(draws.map(({ line }) => line)).size < draws.length) {
      this.#tell('version', operation, 'each line once', 'one twice')
    }
    if (!operation.accepted) return
    if (!account || !feature) {
      this.#tell('place', operation, 'an account', 'none')
      return
    }
    for (const draw of draws) {
      if (this.#isPayer(draw, account, operation.entityId)) continue
      this.#report({ rule: 'place', ids: entryIds(draw), ...belongs })
    }

    const wanted = this.counters.increase(account, operation)
    const paid = operation.unlimited ? { ...wanted, wrong: null } : this.#paid(operation, draws, account, feature)
    const increase: Range = { least: maxUnits(wanted.least, paid.least), most: minUnits(wanted.most, paid.most) }
    if (paid.wrong !== null || increase.least > increase.most) {
      this.#tell('cost', operation, `${rangeText(wanted)} paid`, paid.wrong ?? `${rangeText(paid)} paid`)
      increase.least = wanted.least
      increase.most = wanted.most
    }
    this.counters.raise(account, operation, increase)
    this.#version(operation, account, draws, increase)
  }

  #paid(
    operation: AuditedOperation,
    draws: AuditedEntry[],
    own: AuditedAccount,
    feature: NonNullable<ReturnType<AuditIndex['featureNamed']>>,
  ) {
    const costs = (system: number) => this.#index.cost(system, feature.id)
    return paidUnits(draws, operation, { feature, own, accounts: this.#index.accounts, costs })
  }

  /** Of the same customer, whose grants the operation's entity sees. */
  #isPayer(draw: AuditedEntry, own: AuditedAccount, entity: string | null): boolean {
    const payer = this.#index.accounts.get(draw.accountId)
    const grant = this.#index.grants.get(draw.grantId)
    if (!payer || !grant || (grant.entityId !== null && grant.entityId !== entity)) return false
    if (payer.id === own.id) return true
    return payer.featureId !== own.featureId && this.#index.ownerOf(payer) === this.#index.ownerOf(own)
  }

  /** An increase has a version of the account to itself, which it shares with its own draws. */
  #version(operation: AuditedOperation, account: AuditedAccount, draws: AuditedEntry[], { least }: Range): void {
    if (least === 0n) return
    for (const draw of draws) {
      if (draw.accountId !== account.id || draw.version === operation.version) continue
      this.#tell('version', operation, `${draw.version} (its entries)`, String(operation.version))
      return
    }
    if (operation.at > account.lastAt) {
      this.#tell('clock', operation, `at most ${account.lastAt}`, String(operation.at))
    }
    if (!this.#versions.note(account.id, operation.version, operation.operationId)) {
      this.#tell('version', operation, 'a later version of its own', String(operation.version))
    }
  }

  #reversal(
    operation: AuditedOperation,
    returned: AuditedEntry[],
    saved: NonNullable<AuditedOperation['returned']>,
  ): void {
    const text = (parts: { grantId: bigint; units: bigint }[]) =>
      parts
        .map(({ grantId, units }) => `${units} to grant ${grantId}`)
        .toSorted()
        .join(', ') || 'nothing'
    const [expected, found] = [text(saved), text(returned.map(({ grantId, delta }) => ({ grantId, units: delta })))]
    if (expected !== found) this.#tell('operation', operation, expected, found)
  }

  #tell(rule: Rule, operation: AuditedOperation, expected: string, found: string): void {
    const { scopeId, customerId, operationId, version } = operation
    const ids = { scope: scopeId, customer: customerId, operation: operationId, version }
    this.#report({ rule, ids, expected, found })
  }
}

const belongs = { expected: 'a grant that the customer and the entity may draw on', found: 'another' }

function keyOf({ scopeId, operationId }: { scopeId: number; operationId: string | null }): string {
  return `${scopeId} ${operationId}`
}

function ofKind(entries: readonly AuditedEntry[], kind: string): AuditedEntry[] {
  return entries.filter((entry) => entry.kind === kind)
}

/** Those that share a version added nothing, except for the one that made it: the consume, or the highest total. */
function asDecided(a: AuditedOperation, b: AuditedOperation): number {
  if (a.version !== b.version) return a.version < b.version ? -1 : 1
  if (a.mode !== b.mode) return a.mode === 'consume' ? -1 : 1
  return a.quantity > b.quantity ? -1 : Number(a.quantity < b.quantity)
}
