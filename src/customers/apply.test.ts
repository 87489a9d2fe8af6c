import assert from 'node:assert/strict'
import test from 'node:test'
import { CustomerWorld } from '../../test/harness/customer-world.ts'
import { identifyEvent, loggedEvent } from '../../test/harness/logged-event.ts'
import type { EventOutcome } from '../events/index.ts'
import { distinctIdsMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { customerIdFor } from './customer-id.ts'

const scope: Scope = { scopeId: 1, workspaceId: 'ws_1', projectId: 'proj_1', environment: 'live' }
const birthId = (distinctId: string) => customerIdFor(scope, distinctId, 0)

/** What became of an event: its customer's birth name, its merge and its warnings. */
function told(outcome: EventOutcome | undefined): unknown {
  if (outcome?.kind !== 'applied') return outcome?.reason
  const { merge, warnings } = outcome
  return [merge?.reason ?? merge?.status ?? null, ...warnings.map(({ code, detail }) => `${code}: ${detail}`)]
}

function customerOf(world: CustomerWorld, distinctId: string) {
  const customer = world.customers.get(world.aliases.get(distinctId)?.customerId ?? '')
  assert.ok(customer && customer.mergedInto === null, `${distinctId} names a live customer`)
  return { ...customer, properties: JSON.parse(customer.properties ?? '') as object }
}

test('the first event of an unknown id creates a customer as old as the event, not identified', () => {
  const world = new CustomerWorld(scope)
  const outcomes = world.run([loggedEvent('u', { $set: { plan: 'pro' } }, { at: 1234 })])
  assert.deepEqual(outcomes, [{ kind: 'applied', customerId: birthId('u'), merge: null, warnings: [] }])
  const { createdAt, identified, version, aliasCount, properties } = customerOf(world, 'u')
  const expected = { createdAt: 1234, identified: false, version: 1, aliasCount: 1, properties: { plan: 'pro' } }
  assert.deepEqual({ createdAt, identified, version, aliasCount, properties }, expected)
})

test('events that change nothing leave the version; one event raises it once', () => {
  const world = new CustomerWorld(scope)
  world.run([loggedEvent('u', { $set: { a: 1 } })])
  world.run([loggedEvent('u'), loggedEvent('u', { $set: { a: 1 } })])
  assert.equal(customerOf(world, 'u').version, 1)
  world.run([loggedEvent('u', { $set: { a: 2, b: 1 }, $increment: { c: 1 } }), loggedEvent('u', { $unset: ['a'] })])
  assert.equal(customerOf(world, 'u').version, 3)
})

test('an identify of two unknown ids makes one customer of both, born from the target', () => {
  const world = new CustomerWorld(scope)
  const [outcome] = world.run([identifyEvent('u', 'anon', { $set: { a: 1 } })])
  assert.deepEqual(outcome, { kind: 'applied', customerId: birthId('u'), merge: { status: 'merged' }, warnings: [] })
  assert.equal(world.customers.size, 1)
  assert.equal(customerOf(world, 'anon').id, birthId('u'))
  const { identified, aliasCount, properties } = customerOf(world, 'u')
  assert.deepEqual({ identified, aliasCount, properties }, { identified: true, aliasCount: 2, properties: { a: 1 } })
  assert.equal(world.aliases.get('anon')?.identified, false)
})

test('an identify of a known anonymous id keeps its customer, which gains the new id', () => {
  const world = new CustomerWorld(scope)
  world.run([loggedEvent('anon', { $set: { a: 1 } }), identifyEvent('u', 'anon'), loggedEvent('u', { $set: { b: 1 } })])
  const { id, identified, aliasCount, properties } = customerOf(world, 'u')
  assert.deepEqual([id, identified, aliasCount, properties], [birthId('anon'), true, 2, { a: 1, b: 1 }])
})

test('an identify with an unknown anonymous id attaches it to the known customer', () => {
  const world = new CustomerWorld(scope)
  world.run([loggedEvent('u'), identifyEvent('u', 'anon'), loggedEvent('anon', { $set: { a: 1 } })])
  assert.deepEqual(customerOf(world, 'anon'), customerOf(world, 'u'))
  assert.equal(customerOf(world, 'u').aliasCount, 2)
})

test('when both exist the target survives with both property sets, the earlier birth and a version above both', () => {
  const world = new CustomerWorld(scope)
  world.run([
    loggedEvent('anon', { $set: { a: 'anon', both: 'anon', n: 1 } }, { at: 100 }),
    loggedEvent('anon', { $increment: { n: 1 } }),
    loggedEvent('u', { $set: { both: 'u', n: 5 } }, { at: 200 }),
    identifyEvent('u', 'anon', { $set: { last: true } }),
  ])
  const { id, properties, createdAt, version, aliasCount } = customerOf(world, 'u')
  assert.deepEqual([id, createdAt, version, aliasCount], [birthId('u'), 100, 3, 2])
  assert.deepEqual(properties, { a: 'anon', both: 'u', n: 5, last: true })
  const { customerId, sincePos } = world.aliases.get('anon') ?? assert.fail()
  assert.deepEqual([customerId, sincePos], [birthId('u'), 3])
  assert.equal(world.customers.get(birthId('anon'))?.mergedInto, birthId('u'))
})

test('the journal of a merge holds what a split needs', () => {
  const world = new CustomerWorld(scope)
  world.run([loggedEvent('anon', { $set: { a: 1 } }, { at: 7 }), loggedEvent('u', { $set: { a: 2 } })])
  world.run([identifyEvent('u', 'anon')])
  const { moved, status, sourceCustomerId, customerId, pos } = world.journal[0] ?? assert.fail()
  assert.deepEqual([status, sourceCustomerId, customerId, pos], ['merged', birthId('anon'), birthId('u'), 2])
  assert.equal(moved?.how, 'join')
  assert.deepEqual(moved?.distinct_ids, ['anon'])
  assert.deepEqual(JSON.parse(JSON.stringify(moved?.source)), {
    customer_id: birthId('anon'),
    identified: false,
    created_at_ms: 7,
    version: 1,
    generation: 0,
    properties: { a: 1 },
    props_at: { a: 7 },
  })
  assert.deepEqual(JSON.parse(JSON.stringify(moved?.target)).properties, { a: 2 })
})

test('a repeated identify is no refusal and changes nothing', () => {
  const world = new CustomerWorld(scope)
  world.run([identifyEvent('u', 'anon')])
  const before = world.rows()
  const outcomes = world.run([identifyEvent('u', 'anon'), identifyEvent('u', 'anon')])
  assert.deepEqual(outcomes.map(told), [['same'], ['same']])
  world.outcomes.length = 1
  assert.deepEqual(world.rows(), before)
})

test('an identified customer is never swallowed, also by an id never seen', () => {
  const world = new CustomerWorld(scope)
  world.run([identifyEvent('first', 'phone')])
  const outcomes = world.run([identifyEvent('second', 'phone', { $set: { a: 1 } }), identifyEvent('second', 'first')])
  assert.deepEqual(outcomes.map(told), [
    ['source_identified', 'merge_refused: source_identified'],
    ['source_identified', 'merge_refused: source_identified'],
  ])
  assert.equal(customerOf(world, 'phone').id, customerOf(world, 'first').id)
  const { id, identified, properties } = customerOf(world, 'second')
  assert.deepEqual([id, identified, properties], [birthId('second'), true, { a: 1 }])
})

test('a refusal for equal or illegal ids identifies nobody and still records the event and its directives', () => {
  const world = new CustomerWorld(scope)
  const outcomes = world.run([
    identifyEvent('u', 'u', { $set: { a: 1 } }),
    identifyEvent('u', 'null'),
    identifyEvent('user', 'anon', { $set: { a: 1 } }),
    loggedEvent('u', { event: '$identify', $anon_distinct_id: 7 }),
  ])
  const illegal = ['illegal_id', 'merge_refused: illegal_id']
  assert.deepEqual(outcomes.map(told), [['same_id', 'merge_refused: same_id'], illegal, illegal, illegal])
  assert.deepEqual(
    [...world.customers.values()].map(({ identified }) => identified),
    [false, false],
  )
  assert.deepEqual([...world.aliases.keys()], ['u', 'user'])
  assert.deepEqual(customerOf(world, 'user').properties, { a: 1 })
  assert.deepEqual(
    world.journal.map(({ sourceDistinctId }) => sourceDistinctId),
    ['u', 'null', 'anon', '7'],
  )
})

test('events of a deleted id are dropped; as a source it is refused and not created', () => {
  const world = new CustomerWorld(scope, ['gone'])
  const outcomes = world.run([
    loggedEvent('gone', { $set: { a: 1 } }),
    identifyEvent('gone', 'anon'),
    identifyEvent('u', 'gone'),
  ])
  assert.deepEqual(outcomes.map(told), [
    'customer_deleted',
    'customer_deleted',
    ['source_deleted', 'merge_refused: source_deleted'],
  ])
  assert.deepEqual([...world.aliases.keys()], ['u'])
  assert.equal(customerOf(world, 'u').identified, true)
})

test('a customer gathers at most 1,000 distinct ids', () => {
  const world = new CustomerWorld(scope)
  const outcomes = world.run(Array.from({ length: distinctIdsMax + 1 }, (_, i) => identifyEvent('u', `phone-${i}`)))
  assert.deepEqual(outcomes.slice(-3).map(told), [
    ['merged'],
    ['id_cap', 'merge_refused: id_cap'],
    ['id_cap', 'merge_refused: id_cap'],
  ])
  assert.equal(customerOf(world, 'u').aliasCount, distinctIdsMax)
})

test('$identify without an anonymous id applies directives and identifies nobody', () => {
  const world = new CustomerWorld(scope)
  const payload = {
    event: '$identify',
    $set: { a: 1 },
    $anon_distinct_id: null,
    properties: { $anon_distinct_id: null },
  }
  assert.deepEqual(world.run([loggedEvent('u', payload)]).map(told), [[null]])
  assert.equal(customerOf(world, 'u').identified, false)
})

test('the anonymous id is read at the top level, then in properties', () => {
  const world = new CustomerWorld(scope)
  const properties = { $anon_distinct_id: 'inside' }
  world.run([
    loggedEvent('u1', { event: '$identify', properties }),
    loggedEvent('u2', { event: '$identify', properties, $anon_distinct_id: 'outside' }),
  ])
  assert.equal(customerOf(world, 'inside').id, customerOf(world, 'u1').id)
  assert.equal(customerOf(world, 'outside').id, customerOf(world, 'u2').id)
})

test('on other events the anonymous id is ignored with a warning', () => {
  const world = new CustomerWorld(scope)
  const [outcome] = world.run([loggedEvent('u', { $anon_distinct_id: 'anon' })])
  assert.deepEqual(told(outcome), [null, 'anon_id_ignored: $anon_distinct_id counts on $identify only'])
  assert.deepEqual([...world.aliases.keys()], ['u'])
})

test('each outcome names the survivor of its own moment', () => {
  const world = new CustomerWorld(scope)
  const outcomes = world.run([loggedEvent('anon'), loggedEvent('u'), identifyEvent('u', 'anon'), loggedEvent('anon')])
  const ids = outcomes.map((outcome) => outcome.kind === 'applied' && outcome.customerId)
  assert.deepEqual(ids, [birthId('anon'), birthId('u'), birthId('u'), birthId('u')])
})

test('a removed key does not return with later events of the slice', () => {
  const world = new CustomerWorld(scope)
  world.run([loggedEvent('u', { $set: { a: 1, b: 1 } })])
  world.run([loggedEvent('u', { $unset: ['a'] }), loggedEvent('u', { $set: { b: 2 } }), loggedEvent('u')])
  assert.deepEqual(customerOf(world, 'u').properties, { b: 2 })
})
