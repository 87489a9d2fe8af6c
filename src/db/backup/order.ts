import type { Reference, Table } from './tables-store.ts'

/** Tables so that each comes after those its rows refer to. Throws when they refer to one another in a circle. */
export function loadOrder(tables: Table[], references: Reference[]): Table[] {
  const names = new Set(tables.map(({ name }) => name))
  const needs = new Map(tables.map(({ name }) => [name, new Set<string>()]))
  for (const { from, to } of references) if (from !== to && names.has(to)) needs.get(from)?.add(to)

  const ordered: Table[] = []
  let waiting = tables
  while (waiting.length > 0) {
    const ready = waiting.filter(({ name }) => needs.get(name)?.size === 0)
    if (ready.length === 0) {
      throw new Error(`tables refer to one another in a circle: ${waiting.map(({ name }) => name).join(', ')}`)
    }
    for (const { name } of ready) for (const set of needs.values()) set.delete(name)
    ordered.push(...ready)
    waiting = waiting.filter((table) => !ready.includes(table))
  }
  return ordered
}
