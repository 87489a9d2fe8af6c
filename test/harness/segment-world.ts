import assert from 'node:assert/strict'
import { type CompiledSet, compile, type Definition } from '../../src/customers/segments/compile.ts'
import type { Condition } from '../../src/customers/segments/definition.ts'
import { dependentsOf } from '../../src/customers/segments/dependents.ts'
import { parseDefinition } from '../../src/customers/segments/parse-definition.ts'
import { isCounted } from '../../src/customers/segments/place.ts'
import { emptyState, joinStates, parseState, stateText } from '../../src/customers/segments/state.ts'
import { type Happened, tell } from '../../src/customers/segments/step.ts'
import { close, interrupt, type Opened, open, recount, type Visit } from '../../src/customers/segments/visit.ts'
import type { JsonObject } from '../../src/events/index.ts'
import { must } from '../../src/kernel/assert.ts'

interface Person {
  text: string | null
  properties: JsonObject
  /** Everything that happened to it and to those merged into it. */
  events: Happened[]
  /** Marked: more of its events are to be counted. */
  isCounting: boolean
}

/** The segments of one lane in memory, run by the same functions as over tables. */
export class SegmentWorld {
  readonly people = new Map<string, Person>()
  /** What was told, in order. */
  readonly told: { segmentId: number; customerId: string; edge: 'entered' | 'left' }[] = []
  now = Date.UTC(2026, 2, 1)
  readonly #survivors = new Map<string, string>()
  #definitions: Definition[] = []
  #set: CompiledSet = compile([])
  #walkedTo: string | null = null
  #nextId = 1
  #nextPos = 1
  readonly #eventsMax: number

  /** `eventsMax`: stored events that one visit counts again at most. */
  constructor(eventsMax = 2) {
    this.#eventsMax = eventsMax
  }

  /** A new definition of a segment, which serves once everybody was walked. */
  define(segmentId: number, where: object): void {
    this.#prepare(segmentId, parseDefinition({ version: 1, where }))
    for (const publicId of dependentsOf(this.#definitions, `seg_${segmentId}`)) {
      const newest = this.#definitions.findLast((one) => one.publicId === publicId)
      if (newest) this.#prepare(newest.segmentId, newest.condition)
    }
    this.#set = compile(this.#definitions)
    this.#walkedTo = '0'
  }

  #prepare(segmentId: number, condition: Condition): void {
    this.#definitions = this.#definitions.filter((one) => one.segmentId !== segmentId || !one.pending)
    this.#definitions.push({ id: this.#nextId++, segmentId, publicId: `seg_${segmentId}`, pending: true, condition })
  }

  /** The next customer of the walk; after the last one new definitions serve and everybody is told. */
  walk(): void {
    const counting = [...this.people].find(([, { isCounting }]) => isCounting)
    if (counting) this.#visit({ ...visitTo(counting[0]), whole: true, cause: 'backfill' })
    if (counting || this.#walkedTo === null) return
    const next = [...this.people.keys()].toSorted().find((id) => id > must(this.#walkedTo, 'a walk is on'))
    if (next !== undefined) {
      this.#walkedTo = next
      this.#visit(visitTo(next))
      return
    }
    const pending = new Set(this.#definitions.filter((one) => one.pending).map(({ segmentId }) => segmentId))
    this.#definitions = this.#definitions
      .filter((one) => one.pending || !pending.has(one.segmentId))
      .map((one) => ({ ...one, pending: false }))
    this.#set = compile(this.#definitions)
    this.#walkedTo = null
    for (const [customerId, person] of this.people) {
      const state = person.text === null ? emptyState() : parseState(person.text)
      for (const version of this.#set.versions) {
        const edge = tell(state, version)
        if (edge) this.told.push({ segmentId: version.segmentId, customerId, edge })
      }
      if (person.text !== null || state.told.size > 0) person.text = stateText(state)
    }
  }

  happen(id: string, some: Omit<Happened, 'place'>[], set: JsonObject = {}): void {
    const events = some.map((event): Happened => ({ ...event, place: [event.at, `${this.#nextPos++}`] }))
    const customerId = this.#survivors.get(id) ?? id
    const person = this.#person(customerId)
    person.events.push(...events)
    Object.assign(person.properties, set)
    this.#visit({ ...visitTo(customerId), events, keys: new Set(Object.keys(set)) })
  }

  merge(sourceId: string, targetId: string): void {
    const [source, target] = [this.#person(sourceId), this.#person(targetId)]
    const states = [source, target].map(({ text }) => (text === null ? emptyState() : parseState(text)))
    this.people.delete(sourceId)
    this.#survivors.set(sourceId, targetId)
    for (const [id, survivor] of this.#survivors) if (survivor === sourceId) this.#survivors.set(id, targetId)
    target.text = stateText(joinStates(this.#set, must(states[0], 'the source'), must(states[1], 'the target')))
    target.events.push(...source.events)
    target.properties = { ...source.properties, ...target.properties }
    this.#visit({ ...visitTo(targetId), whole: true, cause: 'merge' })
  }

  /** Moves the clock, either way, and lets timers ring. */
  pass(ms: number): void {
    this.now += ms
    for (const [customerId, { text }] of this.people) {
      const due = text === null ? null : parseState(text).due
      if (due !== null && due <= this.now) this.#visit({ ...visitTo(customerId), whole: true, cause: 'timer' })
    }
  }

  /** By what was told of the customer last. */
  isIn(segmentId: number, customerId: string): boolean {
    const own = (one: { segmentId: number; customerId: string }) =>
      one.segmentId === segmentId && one.customerId === customerId
    return this.told.findLast(own)?.edge === 'entered'
  }

  /** Everybody's memberships are what their events and properties say, and what was told. */
  check(shuffle: <Item>(items: Item[]) => Item[]): void {
    for (const [customerId, person] of this.people) {
      const state = person.text === null ? emptyState() : parseState(person.text)
      const now = Math.max(this.now, state.now)
      const visit: Visit = { ...visitTo(customerId), recount: true }
      const opened = open(this.#set, visit, { text: null, properties: person.properties }, { now, walkedTo: null })
      for (const event of shuffle(person.events)) recount(this.#set, opened, event)
      const { opened: scratch } = close(this.#set, opened)
      const served = this.#set.versions.filter(({ pending }) => !pending)
      const members = (of: Map<number, number>) =>
        served.filter(({ id }) => of.has(id)).map(({ segmentId }) => segmentId)
      assert.deepEqual(members(state.members), members(scratch.state.members), customerId)
      assert.deepEqual(state.told, new Set(members(state.members)))
      const said = new Map<number, string>()
      for (const { segmentId, edge } of this.told.filter((one) => one.customerId === customerId)) {
        assert.notEqual(said.get(segmentId) ?? 'left', edge, 'entered and left alternate')
        said.set(segmentId, edge)
      }
    }
  }

  #person(customerId: string): Person {
    const person = this.people.get(customerId) ?? { text: null, properties: {}, events: [], isCounting: false }
    this.people.set(customerId, person)
    return person
  }

  #visit(visit: Visit): void {
    const person = this.#person(visit.customerId)
    const opened = open(this.#set, visit, person, { now: this.now, walkedTo: this.#walkedTo })
    this.#countAgain(opened, person)
    const closed = close(this.#set, opened)
    for (const { version, edge } of closed.edges) {
      this.told.push({ segmentId: version.segmentId, customerId: visit.customerId, edge })
    }
    if (closed.text !== null) person.text = closed.text
    person.isCounting = parseState(person.text ?? stateText(emptyState())).counting !== null
  }

  #countAgain(opened: Opened, { events }: Person): void {
    if (opened.again === null) return
    const { after } = opened.again.counting
    const waiting = events
      .filter(({ place }) => !isCounted(after, place))
      .toSorted((a, b) => a.place[0] - b.place[0] || Number(a.place[1]) - Number(b.place[1]))
    const now = waiting.slice(0, this.#eventsMax)
    for (const event of now) recount(this.#set, opened, event)
    if (now.length < waiting.length) interrupt(opened, now.at(-1)?.place ?? null)
  }
}

function visitTo(customerId: string): Visit {
  return { customerId, events: [], keys: new Set(), whole: false, recount: false, cause: 'event', pos: null }
}
