import type { JsonObject } from '../../events/index.ts'
import type { Facts } from '../types.ts'

export interface Edit {
  set: JsonObject
  setOnce: JsonObject
  increment: Record<string, number>
  unset: string[]
}

/** What later steps of the same run see of the customer: as `customers` will apply it, but for its bounds. */
export function withEdit(facts: Facts, { set, setOnce, increment, unset }: Edit): Facts {
  if (!facts.customer) return facts
  const properties = new Map(Object.entries(facts.customer.properties ?? {}))
  for (const [key, value] of Object.entries(setOnce)) if (!properties.has(key)) properties.set(key, value)
  for (const [key, value] of Object.entries(set)) properties.set(key, value)
  for (const [key, by] of Object.entries(increment)) {
    const before = properties.get(key) ?? 0
    if (typeof before === 'number') properties.set(key, before + by)
  }
  for (const key of unset) properties.delete(key)
  return { ...facts, customer: { ...facts.customer, properties: Object.fromEntries(properties) } }
}
