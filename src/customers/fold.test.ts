import assert from 'node:assert/strict'
import test from 'node:test'
import { CustomerWorld } from '../../test/harness/customer-world.ts'
import fc from '../../test/harness/random.ts'
import { randomEvents } from '../../test/harness/random-events.ts'
import type { EventOutcome, LoggedEvent } from '../events/index.ts'
import type { Scope } from '../tenancy/index.ts'

const scope: Scope = { scopeId: 1, workspaceId: 'ws_1', projectId: 'proj_1', environment: 'live' }

function run(all: LoggedEvent[], cuts: number[]): CustomerWorld {
  const world = new CustomerWorld(scope, ['gone'])
  let from = 0
  for (const to of [...cuts.filter((cut) => cut < all.length).toSorted((a, b) => a - b), all.length]) {
    world.run(all.slice(from, to))
    from = to
  }
  return world
}

test('however a sequence of events is cut into slices, the rows, the journal and the outcomes are the same', () => {
  fc.assert(
    fc.property(randomEvents, fc.array(fc.integer({ min: 1, max: 13 }), { maxLength: 4 }), (all, cuts) => {
      const oneByOne = run(all, [...all.keys()]).rows()
      assert.deepEqual(run(all, cuts).rows(), oneByOne)
      assert.deepEqual(run(all, []).rows(), oneByOne)
    }),
    { numRuns: 300 },
  )
})

test('identity equals a small sequential model, event by event', () => {
  fc.assert(
    fc.property(randomEvents, (all) => {
      const world = run(all, [])
      const model = new Model()
      const expected = all.map((event) => model.apply(event))
      assert.deepEqual(world.outcomes.map(resultOf), expected)
      assert.deepEqual(peopleIn(world), model.people())
    }),
    { numRuns: 300 },
  )
})

function resultOf(outcome: EventOutcome): string {
  if (outcome.kind === 'dropped') return 'dropped'
  return outcome.merge?.reason ?? outcome.merge?.status ?? 'no merge'
}

/** Who is who: the ids of each customer, whether it is identified and when it was created. */
function peopleIn(world: CustomerWorld): object[] {
  const live = [...world.customers.values()].filter(({ mergedInto }) => mergedInto === null)
  const people = live.map(({ id, identified, createdAt, aliasCount }) => {
    const names = [...world.aliases].filter(([, alias]) => alias.customerId === id).map(([name]) => name)
    assert.equal(names.length, aliasCount)
    return { ids: names.toSorted(), identified, createdAt }
  })
  return people.toSorted((a, b) => (String(a.ids) < String(b.ids) ? -1 : 1))
}

interface Person {
  ids: string[]
  identified: boolean
  createdAt: number
}

/** The rules once more, as plainly as can be: a list of people, changed one event at a time. */
class Model {
  #people: Person[] = []

  people(): Person[] {
    const sorted = this.#people.map((person) => ({ ...person, ids: person.ids.toSorted() }))
    return sorted.toSorted((a, b) => (String(a.ids) < String(b.ids) ? -1 : 1))
  }

  apply(event: LoggedEvent): string {
    if (event.distinctId === 'gone') return 'dropped'
    const anonymousId = event.payload.event === '$identify' ? event.payload.$anon_distinct_id : undefined
    const result = typeof anonymousId === 'string' ? this.#identify(anonymousId, event) : 'no merge'
    if (!this.#find(event.distinctId)) this.#create([event.distinctId], event.at)
    if (!['no merge', 'same_id', 'illegal_id'].includes(result)) {
      const person = this.#find(event.distinctId)
      if (person) person.identified = true
    }
    return result
  }

  #identify(anonymousId: string, { distinctId, at }: LoggedEvent): string {
    if (anonymousId === distinctId) return 'same_id'
    if (anonymousId === 'null' || distinctId === 'null') return 'illegal_id'
    const source = this.#find(anonymousId)
    const target = this.#find(distinctId)
    if (source && source === target) return 'same'
    if (anonymousId === 'gone') return 'source_deleted'
    if (source?.identified) return 'source_identified'
    if (source && target) {
      target.ids.push(...source.ids)
      target.createdAt = Math.min(target.createdAt, source.createdAt)
      this.#people = this.#people.filter((person) => person !== source)
    } else if (source) source.ids.push(distinctId)
    else if (target) target.ids.push(anonymousId)
    else this.#create([distinctId, anonymousId], at)
    return 'merged'
  }

  #find(id: string): Person | undefined {
    return this.#people.find((person) => person.ids.includes(id))
  }

  #create(names: string[], createdAt: number): void {
    this.#people.push({ ids: names, identified: false, createdAt })
  }
}
