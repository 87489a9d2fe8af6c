import assert from 'node:assert/strict'
import test from 'node:test'
import { must } from '../src/kernel/assert.ts'
import { type Account, check, type Stored, type StoredEvent, type StoredOperation } from './check.ts'
import { Expectation } from './expectation.ts'
import type { Item } from './items.ts'
import type { Person } from './model.ts'
import type { Answer } from './record.ts'
import { type Turn, turnsOf } from './turns.ts'

type Batch = Extract<Turn, { kind: 'batch' }>

const turns = [0, 1].flatMap((client) =>
  turnsOf({ seed: 'planted', client, flood: false, deletes: true }).take(400).toArray(),
)

/** What a service without faults answers and stores. */
function honest(): { expectation: Expectation; stored: Stored & { events: StoredEvent[] } } {
  const expectation = new Expectation()
  const answers = new Map<string, Answer>()
  for (const turn of turns) expectation.take(turn, answerTo(turn, answers))
  const events = [...expectation.events].filter(([, { acknowledged }]) => acknowledged)
  const people = new Map<string, Person>()
  for (const [, { distinctId, effect }] of events) {
    if (effect.effect !== 'count') continue
    const properties = people.get(distinctId)?.properties ?? {}
    const sum = Number(properties[effect.counter] ?? 0) + effect.amount
    const changed = { ...properties, [effect.counter]: sum }
    people.set(distinctId, { distinctIds: [distinctId], identified: false, properties: changed })
  }
  for (const model of expectation.stories.values()) {
    for (const person of structuredClone(model.people())) for (const id of person.distinctIds) people.set(id, person)
  }
  const operations = new Map<string, StoredOperation>()
  const accounts = new Map<string, Account>()
  /** Changes the one account that all distinct ids of a customer lead to. */
  const change = (distinctId: string, { units = 0, spent = (used: number) => used }) => {
    const { used, granted } = accounts.get(distinctId) ?? { used: 0, granted: 0 }
    const [nowUsed, nowGranted] = [spent(used), granted + units]
    const account = { used: nowUsed, drawn: nowUsed, granted: nowGranted, remaining: nowGranted - nowUsed }
    for (const id of people.get(distinctId)?.distinctIds ?? [distinctId]) accounts.set(id, account)
  }
  for (const [customer, units] of expectation.granted) change(customer, { units })
  for (const [operationId, { spend }] of expectation.operations) {
    const { mode, quantity, customer } = spend
    operations.set(operationId, { mode, quantity, ...decision })
    change(customer, { spent: (used) => (mode === 'consume' ? used + quantity : Math.max(used, quantity)) })
  }
  const rows = events.map(([uuid]) => ({ uuid, rows: 1, seen: 1, logged: 1 }))
  return { expectation, stored: { events: rows, people, operations, accounts, sharedPositions: 0, findings: [] } }
}

const decision = { accepted: true, code: 'consumed', balance: 5, occurredAtMs: 1000 }

function answerTo(turn: Turn, before: Map<string, Answer>): Answer {
  switch (turn.kind) {
    case 'event': {
      const { fate } = turn.item
      return fate.kind === 'taken' || fate.kind === 'contested'
        ? { status: 200, body: { eventId: fate.uuid } }
        : { status: 410, body: { code: 'customer_deleted' } }
    }
    case 'batch':
      return { status: 200, body: replyTo(turn.items) }
    case 'spend': {
      if (turn.conflicts) return { status: 409, body: { code: 'operation_conflict' } }
      const { operationId } = turn.spend
      const idempotentReplay = before.has(operationId)
      const answer = { status: 200, body: { operationId, ...decision, idempotentReplay } }
      before.set(operationId, answer)
      return answer
    }
    case 'grant':
      return { status: 201, body: {} }
    case 'delete':
    case 'look':
      return { status: 200, body: {} }
  }
}

function replyTo(items: Item[]) {
  const refused = items.flatMap(({ fate: { kind } }, index) =>
    kind === 'taken' || kind === 'contested' ? [] : [{ index, event: 'e', error: kind, kind }],
  )
  const eventIds = items.flatMap(({ fate }) => (fate.kind === 'taken' || fate.kind === 'contested' ? [fate.uuid] : []))
  const validationFailed = refused.filter(({ kind }) => kind === 'invalid').length
  return {
    ...{ total: items.length, accepted: eventIds.length, processed: eventIds.length, failed: refused.length },
    ...{ validationFailed, rejectedFailed: refused.length - validationFailed, eventIds, errors: refused },
  }
}

test('a service without faults passes, with everything in it that the load can send', () => {
  const { expectation, stored } = honest()
  assert.deepEqual(check(expectation, stored), { lost: 0, doubled: 0, faults: [] })
  assert.equal(expectation.unlisted, 0)
  const [{ operations, stories, deleted, granted }] = [expectation]
  assert.ok(operations.size > 50 && stories.size > 10 && deleted.size > 5 && granted.size > 3)
  assert.ok(expectation.acknowledged > 3000)
})

test('one missing event row, seen key or row of the log is a loss', () => {
  for (const gone of ['rows', 'seen', 'logged'] as const) {
    const { expectation, stored } = honest()
    const event = storyEvent(expectation, stored)
    event[gone] = 0
    assert.deepEqual(counts(expectation, stored), { lost: 1, doubled: 0, faults: 1 })
  }
})

test('one event row more is a double', () => {
  const { expectation, stored } = honest()
  must(stored.events[7], 'there are events').rows = 2
  assert.deepEqual(counts(expectation, stored), { lost: 0, doubled: 1, faults: 1 })
  assert.equal(counts(expectation, { ...honest().stored, sharedPositions: 1 }).faults, 1)
})

test('an event that nobody sent is a fault', () => {
  const { expectation, stored } = honest()
  stored.events.push({ uuid: 'made up', rows: 1, seen: 1, logged: 1 })
  assert.equal(counts(expectation, stored).faults, 1)
})

test('a total that is too small is a loss, one that is too large a double', () => {
  for (const counter of ['n', 'h'] as const) {
    for (const [by, lost, doubled] of [
      [-1, 1, 0],
      [1, 0, 1],
    ] as const) {
      const { expectation, stored } = honest()
      const { properties } = must(stored.people.get('counter 3'), 'it was counted on')
      properties[counter] = Number(properties[counter]) + by
      assert.deepEqual(counts(expectation, stored), { lost, doubled, faults: 1 })
    }
  }
})

test('an operation that is not saved is a loss, one that is saved with another decision a fault', () => {
  const { expectation, stored } = honest()
  const [first = '', second = ''] = stored.operations.keys()
  stored.operations.delete(first)
  stored.operations.set(second, { ...must(stored.operations.get(second), 'it is saved'), balance: 6 })
  stored.operations.set('of somebody else', { mode: 'consume', quantity: 1, ...decision })
  assert.deepEqual(counts(expectation, stored), { lost: 1, doubled: 0, faults: 3 })
})

test('units spent twice and units that never left are found on the counter, the entries and the grants', () => {
  for (const part of ['used', 'drawn', 'granted'] as const) {
    const { expectation, stored } = honest()
    const account = must(stored.accounts.get('spender 2'), 'it spent')
    account[part]++
    assert.deepEqual(counts(expectation, stored), { lost: 0, doubled: 1, faults: 1 })
    account[part] -= 2
    assert.deepEqual(counts(expectation, stored), { lost: 1, doubled: 0, faults: 1 })
  }
})

test('a customer that differs from the model, is not merged or was split is a fault', () => {
  const changes: ((person: Person) => void)[] = [
    (person) => {
      person.properties.k = 'nobody set this'
    },
    (person) => {
      person.distinctIds = person.distinctIds.slice(1)
    },
    (person) => {
      person.identified = !person.identified
    },
  ]
  for (const change of changes) {
    const { expectation, stored } = honest()
    const person = must(
      [...stored.people.values()].find(({ distinctIds }) => distinctIds.length > 1),
      'somebody was merged',
    )
    change(person)
    assert.equal(counts(expectation, stored).faults, 1)
  }
})

test('a deleted customer that is there again is a fault, an event of hers that is gone is none', () => {
  const { expectation, stored } = honest()
  const [gone = ''] = expectation.deleted
  const isHers = ({ uuid }: StoredEvent) => expectation.events.get(uuid)?.distinctId === gone
  const events = stored.events.filter((event) => !isHers(event))
  assert.ok(events.length < stored.events.length)
  assert.equal(counts(expectation, { ...stored, events }).faults, 0)
  stored.people.set(gone, { distinctIds: [gone], identified: false, properties: {} })
  assert.equal(counts(expectation, stored).faults, 1)
})

test('the objections of the ledger are faults', () => {
  const { expectation, stored } = honest()
  assert.equal(counts(expectation, { ...stored, findings: ['rule'] }).faults, 1)
})

test('an item that is neither accepted nor listed is found, and so is a listed one that was to be taken', () => {
  const batch = must(
    turns.find((turn): turn is Batch => turn.kind === 'batch' && turn.items.length > 20),
    'there are batches',
  )
  const whole = replyTo(batch.items)
  const swapped = new Expectation()
  swapped.take(batch, { status: 200, body: { ...whole, eventIds: whole.eventIds.with(3, 'another') } })
  assert.equal(swapped.unlisted, 1)

  const index = batch.items.findIndex(({ fate }) => fate.kind === 'taken' || fate.kind === 'contested')
  const { kind } = must(batch.items[index], 'it is there').fate
  assert.equal(kind, 'taken')
  const listed = new Expectation()
  listed.take(batch, {
    status: 200,
    body: {
      ...whole,
      ...{ accepted: whole.accepted - 1, processed: whole.accepted - 1, failed: whole.failed + 1 },
      validationFailed: whole.validationFailed + 1,
      eventIds: whole.eventIds.slice(1),
      errors: [{ index, event: 'e', error: 'no' }, ...whole.errors],
    },
  })
  assert.equal(listed.faults.length, 1)

  const short = new Expectation()
  short.take(batch, { status: 200, body: { ...whole, eventIds: whole.eventIds.slice(1) } })
  assert.equal(short.faults.length, 1, 'sums that do not add up')
})

test('wrong answers are faults: other statuses, none at all, another decision for the same operation, a conflict accepted', () => {
  for (const turn of turns.slice(0, 200)) {
    const unsure = turn.kind === 'event' && turn.once
    const unanswered = new Expectation()
    unanswered.take(turn, null)
    assert.equal(unanswered.faults.length, unsure ? 0 : 1)
    const failed = new Expectation()
    failed.take(turn, { status: 500, body: { code: 'internal_error' } })
    assert.equal(failed.faults.length, 1)
  }
  const spend = must(
    turns.find((turn) => turn.kind === 'spend' && !turn.conflicts),
    'there are spends',
  )
  const twice = new Expectation()
  twice.take(spend, { status: 200, body: { ...decision, idempotentReplay: false } })
  twice.take(spend, { status: 200, body: { ...decision, balance: 4, idempotentReplay: false } })
  assert.equal(twice.faults.length, 1)
  const conflict = must(
    turns.find((turn) => turn.kind === 'spend' && turn.conflicts),
    'there are conflicts',
  )
  const accepted = new Expectation()
  accepted.take(conflict, { status: 200, body: decision })
  assert.equal(accepted.faults.length, 1)
})

function counts(expectation: Expectation, stored: Stored): { lost: number; doubled: number; faults: number } {
  const { lost, doubled, faults } = check(expectation, stored)
  return { lost, doubled, faults: faults.length }
}

/** One whose loss changes no total. */
function storyEvent(expectation: Expectation, { events }: { events: StoredEvent[] }): StoredEvent {
  return must(
    events.find(({ uuid }) => expectation.events.get(uuid)?.effect.effect === 'step'),
    'there are stories',
  )
}
