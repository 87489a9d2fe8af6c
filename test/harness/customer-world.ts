import assert from 'node:assert/strict'
import { decide } from '../../src/customers/apply.ts'
import { customerIdFor } from '../../src/customers/customer-id.ts'
import type { Alias, CustomerRecord, JournalEntry, SliceState } from '../../src/customers/slice.ts'
import type { EventOutcome, LoggedEvent } from '../../src/events/index.ts'
import type { Scope } from '../../src/tenancy/index.ts'

type StoredAlias = Alias & { firstSeenAt: number; sincePos: number }
type StoredCustomer = CustomerRecord & { mergedInto: string | null }

/** The rows of one scope in memory, changed by decisions as the tables would be. */
export class CustomerWorld {
  readonly aliases = new Map<string, StoredAlias>()
  readonly customers = new Map<string, StoredCustomer>()
  readonly journal: (Omit<JournalEntry, 'event' | 'merge'> & { pos: number })[] = []
  readonly outcomes: EventOutcome[] = []
  readonly deleted: Set<string>
  readonly scope: Scope

  constructor(scope: Scope, deleted: string[] = []) {
    this.scope = scope
    this.deleted = new Set(deleted)
  }

  /** One slice of the lane. */
  run(events: LoggedEvent[]): EventOutcome[] {
    const base = this.outcomes.length
    const decision = decide(this.#state(events), events)
    for (const { expectedVersion, properties, times, ...row } of [...decision.births, ...decision.updates]) {
      const before = this.customers.get(row.id)
      assert.equal(before?.version ?? 0, expectedVersion)
      const columns = { properties: properties ?? before?.properties ?? null, times: times ?? before?.times ?? null }
      this.customers.set(row.id, { ...row, ...columns })
    }
    for (const { distinctId, customerId, identified, firstSeenAt, event, before } of [
      ...decision.newAliases,
      ...decision.movedAliases,
    ]) {
      const stored = this.aliases.get(distinctId)
      assert.equal(stored?.customerId ?? null, before)
      this.aliases.set(distinctId, {
        ...{ customerId, identified },
        firstSeenAt: stored?.firstSeenAt ?? firstSeenAt,
        sincePos: event === null ? (stored?.sincePos ?? -1) : base + event,
      })
    }
    for (const { event, merge, ...entry } of decision.journal) {
      if (merge !== null) assert.deepEqual(decision.merges[merge]?.targetCustomerId, entry.customerId)
      this.journal.push({ ...entry, pos: base + event })
    }
    this.outcomes.push(...decision.outcomes)
    return decision.outcomes
  }

  /** All rows, comparable: property sets without the order of their keys. */
  rows(): object {
    const parsed = (text: string | null) => JSON.parse(text ?? 'null') as object
    return {
      aliases: [...this.aliases].toSorted(byKey),
      customers: [...this.customers]
        .toSorted(byKey)
        .map(([, row]) => ({ ...row, properties: parsed(row.properties), times: parsed(row.times) })),
      journal: JSON.parse(JSON.stringify(this.journal)) as object,
      outcomes: this.outcomes,
    }
  }

  #state(events: LoggedEvent[]): SliceState {
    const unknown = events.map(({ distinctId }) => distinctId).filter((id) => !this.aliases.has(id))
    return {
      pos: BigInt(this.outcomes.length),
      aliases: new Map([...this.aliases].map(([id, { customerId, identified }]) => [id, { customerId, identified }])),
      customers: new Map(this.customers),
      deleted: this.deleted,
      births: new Map(unknown.map((id) => [id, { customerId: customerIdFor(this.scope, id, 0), generation: 0 }])),
    }
  }
}

function byKey([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1
}
