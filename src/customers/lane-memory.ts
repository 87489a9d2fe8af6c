import { LRUCache } from 'lru-cache'
import { lanesAtOnce, rememberedNamesMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import type { Alias, CustomerRecord, Decision, SliceState } from './slice.ts'

/** Whom distinct ids name, as of a position of their lane. */
interface Known {
  pos: bigint
  aliases: LRUCache<string, Alias>
  /** Without properties. */
  customers: LRUCache<string, CustomerRecord>
}

/** Of the names of a slice, those that are remembered. */
export interface Recalled {
  pos: bigint
  aliases: Map<string, Alias>
  customers: Map<string, CustomerRecord>
}

/**
 * Whom the distinct ids of a lane's last slices name, so that the next slice need not read them again: a quarter of what a
 * slice cost PostgreSQL. Customers change by slices of their lane and by commands only, and both take positions; so what is
 * remembered holds as long as every position since was this memory's own. Whoever writes a slice compares the positions, and
 * reads again what was decided on when they differ.
 *
 * Properties are not kept: they are large, and stored as PostgreSQL writes them.
 */
export class LaneMemory {
  readonly #lanes = new LRUCache<number, Known>({ max: 2 * lanesAtOnce })

  /** `wanted`: distinct ids and whether their customers' properties are needed. Null: nothing is remembered. */
  recall({ scopeId }: Scope, wanted: ReadonlyMap<string, boolean>): Recalled | null {
    const known = this.#lanes.get(scopeId)
    if (!known) return null
    const recalled: Recalled = { pos: known.pos, aliases: new Map(), customers: new Map() }
    for (const [distinctId, whole] of wanted) {
      const alias = whole ? undefined : known.aliases.get(distinctId)
      const customer = alias && known.customers.get(alias.customerId)
      if (!customer) continue
      recalled.aliases.set(distinctId, alias)
      recalled.customers.set(customer.id, customer)
    }
    return recalled
  }

  /** After the commit of a slice. `before` and `after`: the positions of the lane around its events. */
  keep({ scopeId }: Scope, decision: Decision, { before, after }: { before: bigint; after: bigint }): void {
    const { state, births, updates, newAliases, movedAliases } = decision
    let known = this.#lanes.get(scopeId)
    if (!known || known.pos !== before || state.pos !== before) {
      known = {
        pos: before,
        aliases: new LRUCache({ max: rememberedNamesMax }),
        customers: new LRUCache({ max: rememberedNamesMax }),
      }
      this.#lanes.set(scopeId, known)
    }
    known.pos = after
    const { aliases, customers } = known
    for (const [distinctId, alias] of state.aliases) if (!aliases.has(distinctId)) aliases.set(distinctId, alias)
    for (const record of state.customers.values())
      if (!customers.has(record.id)) customers.set(record.id, withoutProperties(record))
    for (const { distinctId, customerId, identified } of [...newAliases, ...movedAliases])
      aliases.set(distinctId, { customerId, identified })
    for (const { mergedInto, ...record } of [...births, ...updates]) {
      if (mergedInto !== null) customers.delete(record.id)
      else customers.set(record.id, withoutProperties(record))
    }
  }

  /** A slice was not committed, as far as we know. */
  forget({ scopeId }: Scope): void {
    this.#lanes.delete(scopeId)
  }
}

function withoutProperties(record: Omit<CustomerRecord, 'properties' | 'times'>): CustomerRecord {
  const { id, identified, createdAt, version, generation, aliasCount } = record
  return { id, identified, createdAt, version, generation, aliasCount, properties: null, times: null }
}

/** The state of a slice all of whose names are remembered. */
export function stateOf({ pos, aliases, customers }: Recalled): SliceState {
  return { pos, aliases, customers, deleted: new Set(), births: new Map() }
}
