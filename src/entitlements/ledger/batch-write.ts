import type { Fact } from '../../events/index.ts'
import { must } from '../../kernel/assert.ts'
import type { Account, Change, Grant, Ms, State, UsageDecision } from '../types.ts'
import { type AccountName, changedAccess, factsOf, type Happening } from './facts.ts'
import { type Decidable, featureTypes, modeNumber } from './slot.ts'
import type { EntryRow, OperationRow, RefillRow, UsageWrite } from './usage-write-store.ts'

/** A grant that a decision made: it has no number before it has its row. */
export type MadeGrant = Extract<Change, { kind: 'rollover' | 'grant' }>

/** What the decisions of one batch add up to: accounts and grants are written once, however many commands touched them. */
export class BatchWrite implements UsageWrite {
  readonly operations: OperationRow[] = []
  readonly entries: EntryRow[] = []
  readonly refills: RefillRow[] = []
  readonly made: MadeGrant[] = []
  readonly #told: { happening: Happening; name: AccountName }[] = []
  readonly #accounts = new Map<bigint, { account: Account; readVersion: bigint }>()
  readonly #grants = new Map<bigint, Grant>()
  readonly #entities = new Map<string, UsageWrite['entities'][number]>()

  get accounts(): Account[] {
    return this.#inOrder().map(({ account }) => account)
  }

  get readVersions(): bigint[] {
    return this.#inOrder().map(({ readVersion }) => readVersion)
  }

  /** Only the one statement of `writeUsage` is needed. */
  get plain(): boolean {
    return this.made.length + this.refills.length + this.#entities.size + this.#told.length === 0
  }

  /** What the customers' events tell of it, once all grants are numbered. */
  get facts(): Fact[] {
    return this.#told.flatMap(({ happening, name }) => factsOf(happening, name))
  }

  /** New grants are written with their own statement and so are not among these until something drew on them. */
  get grants(): Grant[] {
    return [...this.#grants.values()]
  }

  get entities(): UsageWrite['entities'] {
    return [...this.#entities.values()]
  }

  /** Takes up a decision whose changes were applied to the accounts already. */
  add(slot: Decidable, decision: UsageDecision, changes: readonly Change[], state: State, touched: Account[]): void {
    const { command } = slot
    for (const account of touched) {
      if (!this.#accounts.has(account.id)) this.#accounts.set(account.id, { account, readVersion: account.version })
    }
    if (changes.length > 0) this.#move(slot, changes, state, touched)
    // A spend that leaves something and only draws is told by nothing but its entries.
    if (changes.length > 0 && !(decision.active && changes.every(isSpend))) {
      this.#tell(slot, changes, state, { exhausted: !decision.active })
    }
    this.operations.push({
      scopeId: command.scope.scopeId,
      operationId: command.operationId,
      customerId: slot.customerId,
      featureKey: command.featureKey,
      entityId: command.entityId,
      mode: modeNumber[command.mode],
      quantity: command.quantity,
      accepted: decision.accepted,
      code: decision.code,
      featureType: featureTypes.indexOf(state.feature.type),
      balance: decision.balance,
      unlimited: decision.unlimited,
      active: decision.active,
      occurredAt: state.now,
      accountVersion: state.own?.version ?? 0n,
    })
  }

  /** The id PostgreSQL gave a rollover grant, wherever the grant is mentioned. */
  renumber(grant: Grant, id: bigint): void {
    for (const entry of this.entries) {
      if (entry.grantId === grant.id) entry.grantId = id
    }
    grant.id = id
  }

  #inOrder() {
    return [...this.#accounts.values()].sort((a, b) => (a.account.id < b.account.id ? -1 : 1))
  }

  #move({ command }: Decidable, changes: readonly Change[], state: State, touched: Account[]): void {
    for (const account of touched) {
      if (changes.some((change) => change.account === account.id)) account.version++
    }
    for (const [line, change] of changes.entries()) {
      const account = must(
        touched.find((one) => one.id === change.account),
        'a decision changes only the accounts it looked at',
      )
      if (change.kind === 'used') {
        if (change.entity === null) continue
        const entity = { accountId: account.id, entityId: change.entity, used: change.used }
        this.#entities.set(`${account.id} ${change.entity}`, entity)
        continue
      }
      const at = {
        at: state.now,
        scopeId: command.scope.scopeId,
        accountId: account.id,
        version: account.version,
        line,
      }
      this.entries.push({
        ...at,
        operationId: command.operationId,
        kind: change.kind,
        ...this.#movement(account, change, state),
      })
    }
  }

  #tell({ command }: Decidable, changes: readonly Change[], state: State, { exhausted }: { exhausted: boolean }): void {
    const { scope, distinctId, operationId } = command
    const pools = state.pools.map(({ account, feature }) => ({ account, feature, isOwn: false }))
    const own = state.own === null ? [] : [{ account: state.own, feature: state.feature, isOwn: true }]
    for (const { account, feature, isOwn } of [...own, ...pools]) {
      const mine = changes.filter((change) => change.account === account.id)
      const happening: Happening = {
        ...{ accountId: account.id, version: account.version, at: state.now, operationId },
        changes: mine,
        granted: mine.flatMap((change) => (change.kind === 'grant' ? [grantedBy(account, change)] : [])),
        exhausted: isOwn && exhausted,
        access: accessAfter(account, mine, state.now),
      }
      this.#told.push({ happening, name: { scopeId: scope.scopeId, distinctId, feature } })
    }
  }

  #movement(account: Account, change: Exclude<Change, { kind: 'used' }>, { now }: State) {
    if (change.kind === 'rollover' || change.kind === 'grant') {
      this.made.push(change)
      const { id, periodNo, amount } = change.grant
      return { grantId: id, period: periodNo, delta: amount, remaining: amount }
    }
    const grant = grantIn(account, change.grant)
    this.#grants.set(grant.id, grant)
    if (change.kind === 'lapse') this.refills.push(refillOf(change, grant, now))
    return { grantId: grant.id, period: change.period, delta: change.delta, remaining: change.remaining }
  }
}

function isSpend({ kind }: Change): boolean {
  return kind === 'draw' || kind === 'used'
}

function grantedBy({ offers }: Account, { offer: id, grant }: Extract<Change, { kind: 'grant' }>) {
  const offer = must(
    offers?.find((each) => each.id === id),
    'the offer was loaded',
  )
  return { grant, productId: offer.productId }
}

/** Only a new grant can change when access is live. */
function accessAfter({ grants }: Account, changes: readonly Change[], now: Ms): Happening['access'] {
  const made = changes.flatMap((change) => (change.kind === 'rollover' ? [change.grant] : []))
  if (made.length === 0) return null
  return changedAccess(
    grants.filter((grant) => !made.includes(grant)),
    grants,
    now,
  )
}

function grantIn(account: Account, id: bigint): Grant {
  return must(
    account.grants.find((grant) => grant.id === id),
    'a decision moves only grants it looked at',
  )
}

/** The period the grant was brought to guards the refill; a lapse always comes with one. */
function refillOf(lapse: Extract<Change, { kind: 'lapse' }>, grant: Grant, at: number): RefillRow {
  return { grantId: grant.id, periodNo: grant.periodNo, lapsed: -lapse.delta, rolled: lapse.rolled, at }
}
