import type { Account, Change, State, UsageCommand, UsageDecision } from '../../types.ts'
import { applyChanges } from '../apply.ts'
import { live, visible } from '../grant.ts'
import { order } from '../order.ts'
import { settle } from '../settle.ts'
import { stateOf } from '../state.ts'
import { decideUsage } from '../usage.ts'
import type { World } from './arbitrary.ts'

/** The pure functions with a memory: what a store does with them, without the store. */
export class Ledger {
  readonly world: World
  readonly accounts: Map<bigint, Account>
  readonly written: Change[] = []

  constructor(world: World) {
    this.world = structuredClone(world)
    const accounts = [this.world.own, ...this.world.pools.map((pool) => pool.account)]
    this.accounts = new Map(accounts.map((account) => [account.id, account]))
  }

  state(clock: number, entity: string | null): State {
    const { feature, pools } = this.world
    return stateOf({ poolsOf: new Map([[feature.id, pools]]) }, feature, {
      platform: null,
      entity,
      now: clock,
      accounts: new Map([...this.accounts.values()].map((account) => [account.featureId, account])),
    })
  }

  run(clock: number, entity: string | null, command: UsageCommand): UsageDecision & { occurredAt: number } {
    const state = this.state(clock, entity)
    const { decision, changes } = decideUsage(state, command)
    this.write(changes)
    for (const account of this.accounts.values()) account.lastAt = state.now
    return { ...decision, occurredAt: state.now }
  }

  /** Writes the resets that are due, without any command. */
  settle(clock: number, entity: string | null): void {
    const { now } = this.state(clock, entity)
    for (const account of this.accounts.values()) this.write(settle(account, entity, now))
  }

  write(changes: readonly Change[]): void {
    applyChanges(this.accounts, changes)
    this.written.push(...changes)
  }

  /** What an observer can tell apart at `now`, in draw order, whatever was written when. Settles everything. */
  standing(now: number): object[] {
    for (const entity of [null, 'a', 'b']) this.settle(now, entity)
    return [...this.accounts.values()].flatMap((account) =>
      [null, 'a', 'b'].map((entity) => ({
        account: account.id,
        used: account.used,
        entities: Object.fromEntries(account.entities),
        live: account.grants.some((grant) => live(grant, now) && visible(grant, entity)),
        grants: order(account.grants, entity, now)
          .filter((grant) => grant.rolledFrom === null || grant.remaining > 0n) // its units may be in a newer one
          .map(({ id, ...grant }) => ({ ...grant, id: id > 0n ? id : null })),
      })),
    )
  }
}
