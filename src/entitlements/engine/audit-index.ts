import type {
  AuditedAccount,
  AuditedCost,
  AuditedFeature,
  AuditedGrant,
  AuditedOperation,
  Standings,
} from './audit-rows.ts'

/** Standings, found by what rows name them by. */
export class AuditIndex {
  readonly accounts: ReadonlyMap<bigint, AuditedAccount>
  /** By the account that is not merged: it, and those merged into it. */
  readonly families: ReadonlyMap<bigint, AuditedAccount[]>
  readonly grants: ReadonlyMap<bigint, AuditedGrant>
  readonly #byOwner: ReadonlyMap<string, AuditedAccount>
  readonly #features: ReadonlyMap<number, AuditedFeature>
  readonly #byKey: ReadonlyMap<string, AuditedFeature>
  readonly #costs: ReadonlyMap<string, AuditedCost>
  readonly #customers: ReadonlyMap<string, string | null>
  readonly #survivors: ReadonlySet<string>
  readonly #split: ReadonlySet<bigint>
  readonly #kin = new Map<bigint, bigint>()

  constructor({ accounts, grants, features, costs, customers }: Standings) {
    this.grants = new Map(grants.map((grant) => [grant.id, grant]))
    this.accounts = new Map(accounts.map((account) => [account.id, account]))
    this.families = Map.groupBy(accounts, ({ id, mergedInto }) => mergedInto ?? id)
    this.#byOwner = new Map(accounts.map((account) => [`${ownerKey(account)} ${account.featureId}`, account]))
    this.#features = new Map(features.map((feature) => [feature.id, feature]))
    this.#byKey = new Map(features.map((feature) => [`${feature.scopeId} ${feature.key}`, feature]))
    this.#costs = new Map(costs.map((cost) => [`${cost.system} ${cost.member}`, cost]))
    this.#customers = customers
    const merged = [...customers].filter(([, into]) => into !== null)
    this.#survivors = new Set(merged.map(([key]) => this.#chain(key).at(-1) ?? key))
    this.#split = new Set(accounts.flatMap(({ id, splitFrom }) => (splitFrom ? [id, splitFrom] : [])))
    for (const { id, mergedInto, splitFrom } of accounts) {
      if (mergedInto) this.#join(id, mergedInto)
      if (splitFrom) this.#join(id, splitFrom)
    }
  }

  /** The account that an operation was decided on: of its customer, or of the one that took the account over in a merge. */
  accountOf(operation: AuditedOperation): AuditedAccount | undefined {
    const feature = this.featureNamed(operation)
    if (!feature) return undefined
    const owner = this.#chain(ownerKey(operation)).find((key) => this.#byOwner.has(`${key} ${feature.id}`))
    return this.#byOwner.get(`${owner} ${feature.id}`)
  }

  featureNamed({ scopeId, featureKey }: AuditedOperation): AuditedFeature | undefined {
    return this.#byKey.get(`${scopeId} ${featureKey}`)
  }

  cost(system: number, member: number): { cost: AuditedCost | undefined; scale: number } {
    return { cost: this.#costs.get(`${system} ${member}`), scale: this.#features.get(system)?.scale ?? 0 }
  }

  rootOf(accountId: bigint): bigint {
    return this.accounts.get(accountId)?.mergedInto ?? accountId
  }

  /** Equal for accounts that were one at some time: grants went to and fro between them. */
  kinOf(accountId: bigint): bigint {
    let kin = accountId
    for (let next = this.#kin.get(kin); next !== undefined; next = this.#kin.get(kin)) kin = next
    return kin
  }

  /** The customer that owns it by now. */
  ownerOf(account: AuditedAccount): string {
    return this.#chain(ownerKey(account)).at(-1) ?? ownerKey(account)
  }

  /** No merge has raised its version or its counters. */
  isUnmerged(account: AuditedAccount): boolean {
    const isWhole = account.mergedInto === null && !this.#split.has(account.id)
    return isWhole && this.hasOwnCounters(account) && !this.#survivors.has(ownerKey(account))
  }

  /** What it counted is all its own: nothing was merged into it, be it for a time. */
  hasOwnCounters({ id, mergedInto }: AuditedAccount): boolean {
    if (this.#split.has(id)) return false
    const family = this.families.get(mergedInto ?? id)?.length ?? 1
    return family === 1 || (family === 2 && mergedInto !== null)
  }

  #join(a: bigint, b: bigint): void {
    const [from, to] = [this.kinOf(a), this.kinOf(b)]
    if (from !== to) this.#kin.set(from, to)
  }

  /** The record, and those it became through merges. */
  #chain(key: string): string[] {
    const chain = [key]
    for (let at = this.#next(key); at !== undefined && !chain.includes(at); at = this.#next(at)) chain.push(at)
    return chain
  }

  #next(key: string): string | undefined {
    const into = this.#customers.get(key)
    return into ? `${key.slice(0, key.indexOf(' '))} ${into}` : undefined
  }
}

/** How `Standings.customers` names a customer. */
export function ownerKey({ scopeId, customerId }: { scopeId: number; customerId: string }): string {
  return `${scopeId} ${customerId}`
}
