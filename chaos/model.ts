/**
 * What a sequence of events makes of customers, told again in a few lines and apart from the service's code: properties by
 * directives, and identities by `$identify`. Only what the load sends: legal ids, live order, values that are legal.
 */

export type Value = string | number

/** One event of a story: at most one merge, then directives. */
export interface Step {
  distinctId: string
  /** The `$anon_distinct_id` of an `$identify`. */
  joins?: string
  setOnce?: Record<string, Value>
  set?: Record<string, Value>
  increment?: Record<string, number>
  unset?: string[]
}

export interface Person {
  distinctIds: string[]
  identified: boolean
  properties: Record<string, Value>
}

export class Model {
  readonly #named = new Map<string, Person>()

  apply(step: Step): void {
    if (step.joins !== undefined) this.#join(step.distinctId, step.joins)
    const person = this.#named.get(step.distinctId) ?? this.#birth(step.distinctId)
    const properties = new Map(Object.entries(person.properties))
    for (const [key, value] of Object.entries(step.setOnce ?? {})) if (!properties.has(key)) properties.set(key, value)
    for (const [key, value] of Object.entries(step.set ?? {})) properties.set(key, value)
    for (const [key, amount] of Object.entries(step.increment ?? {})) {
      const value = properties.get(key) ?? 0
      if (typeof value === 'number') properties.set(key, value + amount)
    }
    for (const key of step.unset ?? []) properties.delete(key)
    person.properties = Object.fromEntries(properties)
  }

  /** Everybody, each once. */
  people(): Person[] {
    return [...new Set(this.#named.values())]
  }

  #join(targetId: string, sourceId: string): void {
    const [source, target] = [this.#named.get(sourceId), this.#named.get(targetId)]
    if (source?.identified && source !== target) {
      // Refused, and yet the target has now said who it is.
      ;(target ?? this.#birth(targetId)).identified = true
      return
    }
    const survivor = target ?? source ?? this.#birth(targetId)
    survivor.identified = true
    if (source && source !== survivor) {
      survivor.properties = { ...source.properties, ...survivor.properties }
      for (const id of source.distinctIds) this.#name(id, survivor)
    }
    for (const id of [targetId, sourceId]) if (!this.#named.has(id)) this.#name(id, survivor)
  }

  #birth(distinctId: string): Person {
    const person: Person = { distinctIds: [], identified: false, properties: {} }
    this.#name(distinctId, person)
    return person
  }

  #name(distinctId: string, person: Person): void {
    person.distinctIds.push(distinctId)
    this.#named.set(distinctId, person)
  }
}
