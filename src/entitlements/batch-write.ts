import { must, unreachable } from '../kernel/assert.ts'
import { featureTypes, modeNumber, type Slot } from './slot.ts'
import type { Account, Change, Grant, State, UsageDecision } from './types.ts'
import type { EntryRow, OperationRow, RefillRow, UsageWrite } from './usage-write-store.ts'

/** What the decisions of one batch add up to: accounts and grants are written once, however many commands touched them. */
export class BatchWrite implements UsageWrite {
  readonly operations: OperationRow[] = []
  readonly entries: EntryRow[] = []
  readonly refills: RefillRow[] = []
  readonly rollovers: { from: bigint; period: bigint; grant: Grant }[] = []
  readonly #accounts = new Map<bigint, Account>()
  readonly #grants = new Map<bigint, Grant>()
  readonly #entities = new Map<string, UsageWrite['entities'][number]>()

  get accounts(): Account[] {
    return [...this.#accounts.values()]
  }

  /** Rollover grants are written with their own statement and so are not among these until something drew on them. */
  get grants(): Grant[] {
    return [...this.#grants.values()]
  }

  get entities(): UsageWrite['entities'] {
    return [...this.#entities.values()]
  }

  /** Takes up a decision whose changes were applied to the accounts already. */
  add(slot: Slot, decision: UsageDecision, changes: readonly Change[], state: State, touched: Account[]): void {
    const { command } = slot
    for (const account of touched) this.#accounts.set(account.id, account)
    if (changes.length > 0) this.#move(slot, changes, state, touched)
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

  #move(slot: Slot, changes: readonly Change[], state: State, touched: Account[]): void {
    const changed = new Set<Account>()
    const accountOf = (id: bigint): Account => {
      const account = must(
        touched.find((one) => one.id === id),
        'a decision changes only the accounts it looked at',
      )
      if (!changed.has(account)) {
        changed.add(account)
        account.version++
      }
      return account
    }
    for (const [line, change] of changes.entries()) {
      const account = accountOf(change.account)
      const entry = (grantId: bigint, period: bigint, delta: bigint, remaining: bigint): void => {
        const { scope, operationId } = slot.command
        const { id: accountId, version } = account
        const { kind } = change as Exclude<Change, { kind: 'used' }> // counters have no entry
        this.entries.push({
          at: state.now,
          scopeId: scope.scopeId,
          accountId,
          version,
          line,
          operationId,
          kind,
          grantId,
          period,
          delta,
          remaining,
        })
      }
      switch (change.kind) {
        case 'used':
          if (change.entity !== null) {
            const entity = { accountId: account.id, entityId: change.entity, used: change.used }
            this.#entities.set(`${account.id} ${change.entity}`, entity)
          }
          break
        case 'rollover':
          this.rollovers.push(change)
          entry(change.grant.id, change.grant.periodNo, change.grant.amount, change.grant.amount)
          break
        case 'lapse':
          this.refills.push(refillOf(change, grantIn(account, change.grant), state.now))
          this.#grants.set(change.grant, grantIn(account, change.grant))
          entry(change.grant, change.period, change.delta, change.remaining)
          break
        case 'refill':
        case 'draw':
          this.#grants.set(change.grant, grantIn(account, change.grant))
          entry(change.grant, change.period, change.delta, change.remaining)
          break
        default:
          unreachable(change)
      }
    }
  }
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
