import { namesOnePerson } from '../../src/customers/identity.ts'
import type { Json } from '../../src/events/index.ts'

/** A value and the step that wrote it last; without a value it was removed then. */
interface Cell {
  value?: Json
  step: number
}

interface Person {
  ids: Set<string>
  cells: Map<string, Cell>
  /** Merges that stand, oldest first, those of everybody who went in included. */
  merges: Merge[]
}

interface Merge {
  step: number
  source: Person
  /** How both were; the source's are null when it was nobody. */
  sourceBefore: { ids: string[]; cells: Map<string, Cell>; merges: Merge[] } | null
  targetBefore: { cells: Map<string, Cell>; merges: Merge[] }
}

export type Edit = { set?: Record<string, Json>; increment?: Record<string, number>; unset?: string[] }

/**
 * Who is who, step by step, as the rules say it in words: people who hold ids, instead of rows that ids point at. Written
 * apart from the code that it judges.
 */
export class IdentityModel {
  readonly people = new Map<string, Person>()
  readonly deleted = new Set<string>()
  readonly identified = new Set<string>()

  /** An event: `other` is the id that it wants joined. */
  event(step: number, { id, other, edit }: { id: string; other?: string | undefined; edit: Edit }): void {
    if (this.deleted.has(id)) return
    if (other !== undefined) this.join(step, { target: id, source: other, force: false })
    this.edit(step, id, edit)
  }

  edit(step: number, id: string, { set = {}, increment = {}, unset = [] }: Edit): void {
    const { cells } = this.#person(id)
    const now = new Map([...cells].map(([key, { value }]) => [key, value]))
    for (const [key, value] of Object.entries(set)) now.set(key, value)
    for (const [key, amount] of Object.entries(increment)) {
      const value = now.get(key) ?? (now.has(key) && now.get(key) !== undefined ? null : 0)
      if (typeof value === 'number') now.set(key, value + amount)
    }
    for (const key of unset) now.set(key, undefined)
    for (const [key, value] of now) {
      if (JSON.stringify(value) === JSON.stringify(cells.get(key)?.value)) continue
      cells.set(key, value === undefined ? { step } : { value, step })
    }
  }

  join(step: number, { target, source, force }: { target: string; source: string; force: boolean }): void {
    if (target === source || !namesOnePerson(source) || !namesOnePerson(target)) return
    const [to, from] = [this.people.get(target), this.people.get(source)]
    const refused =
      from !== to || from === undefined
        ? this.deleted.has(source) || (force && !from) || (!force && from !== undefined && this.#isIdentified(from))
        : true
    const isNew = to === undefined
    if (!refused) this.#merge(step, { target, source, to, from })
    else if (isNew) this.#person(target)
    this.identified.add(target)
  }

  #merge(
    step: number,
    { target, source, to, from }: { target: string; source: string; to: Person | undefined; from: Person | undefined },
  ): void {
    const sourceBefore = from ? { ids: [...from.ids], cells: new Map(from.cells), merges: [...from.merges] } : null
    const targetBefore = { cells: new Map(to?.cells), merges: [...(to?.merges ?? [])] }
    // Whose ids and values these are, not whose row: an unknown target is a person with nothing yet.
    const person = to ?? { ids: new Set([target]), cells: new Map<string, Cell>(), merges: [] }
    const gone = from ?? { ids: new Set([source]), cells: new Map<string, Cell>(), merges: [] }
    const merge: Merge = { step, source: gone, sourceBefore, targetBefore }
    for (const [key, cell] of gone.cells) {
      const own = person.cells.get(key)
      const isOwn = own !== undefined && 'value' in own
      const isLater = own === undefined || 'value' in cell || cell.step > own.step
      if (!isOwn && isLater) person.cells.set(key, cell)
    }
    for (const id of gone.ids) person.ids.add(id)
    person.merges = [...person.merges, ...gone.merges, merge].toSorted((a, b) => a.step - b.step)
    for (const id of person.ids) this.people.set(id, person)
  }

  /** The newest merge of whoever has the id; undefined when none stands. */
  newest(id: string): Merge | undefined {
    return this.people.get(id)?.merges.at(-1)
  }

  /** `source` is one of the ids that come out. */
  split(step: number, id: string): void {
    const person = this.#person(id)
    const merge = person.merges.at(-1)
    if (!merge) throw new Error(`nothing to split at ${step}`)
    const { source, sourceBefore, targetBefore } = merge
    for (const [key, cell] of sourceBefore?.cells ?? []) {
      if (person.cells.get(key) !== cell) continue
      const before = targetBefore.cells.get(key)
      if (before) person.cells.set(key, before)
      else person.cells.delete(key)
    }
    const ids = sourceBefore?.ids ?? [...source.ids]
    person.merges = targetBefore.merges
    const out: Person = {
      ids: new Set(ids),
      cells: new Map(sourceBefore?.cells),
      merges: sourceBefore?.merges ?? [],
    }
    for (const each of ids) {
      person.ids.delete(each)
      this.people.set(each, out)
    }
  }

  delete(id: string): void {
    for (const each of this.#person(id).ids) {
      this.people.delete(each)
      this.deleted.add(each)
    }
  }

  /** By distinct id: all ids of the same person, whether somebody logged in as one of them, and the properties. */
  shown(): Record<string, object> {
    return Object.fromEntries(
      [...this.people].toSorted(byKey).map(([id, person]) => {
        const properties = [...person.cells].filter(([, cell]) => 'value' in cell).toSorted(byKey)
        return [
          id,
          {
            ids: [...person.ids].toSorted(),
            identified: this.#isIdentified(person),
            properties: Object.fromEntries(properties.map(([key, { value }]) => [key, value])),
          },
        ]
      }),
    )
  }

  #isIdentified(person: Person): boolean {
    return [...person.ids].some((id) => this.identified.has(id))
  }

  #person(id: string): Person {
    const known = this.people.get(id)
    if (known) return known
    const person: Person = { ids: new Set([id]), cells: new Map(), merges: [] }
    this.people.set(id, person)
    return person
  }
}

function byKey([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1
}
