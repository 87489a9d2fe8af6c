import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { auditSegments, patchProperties } from '../../src/customers/index.ts'
import { segmentPartCustomers } from '../../src/kernel/limits.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { segmentLane } from './world.ts'

const lane = await segmentLane()
after(() => lane[Symbol.asyncDispose]())
const { pool, clock, heard } = lane

/** Public ids of the segments that the customer is a member of, as the table says. */
async function memberships(scope: Scope, distinctId: string): Promise<string[]> {
  const { id } = await lane.customer(scope, distinctId)
  const rows = await pool.query<{ public_id: string }>(
    `select s.public_id
     from membership m
     join segment_version v on v.scope_id = m.scope_id and v.id = m.version_id and v.state = 'serving'
     join segment s on s.scope_id = v.scope_id and s.id = v.segment_id
     where m.scope_id = $1
       and m.customer_id = $2
     order by s.id`,
    [scope.scopeId, id],
  )
  return rows.map(({ public_id: publicId }) => publicId)
}

const told = (scope: Scope) =>
  heard.filter(({ scopeId }) => scopeId === scope.scopeId).map(({ edge, cause }) => `${edge} ${cause}`)

const twice = { performed: { event: 'e', count: { op: 'gte', value: 2 }, within: { value: 1, unit: 'hour' } } }
const paying = { property: { key: 'plan', op: 'eq', value: 'pro' } }

describe('events', () => {
  test('a customer enters with the event that makes the definition true, and is told of once', async () => {
    const scope = await lane.scope()
    const segment = await lane.define(scope, twice)
    await lane.settle(scope)
    await lane.send(scope, [{ distinctId: 'u' }])
    assert.deepEqual(await memberships(scope, 'u'), [])
    await lane.send(scope, [{ distinctId: 'u' }, { distinctId: 'u' }, { distinctId: 'v' }])
    assert.deepEqual(await memberships(scope, 'u'), [segment])
    assert.deepEqual(await memberships(scope, 'v'), [])
    assert.deepEqual(told(scope), ['entered event'])
    const [row] = await pool.query<{ member_count: bigint }>(
      'select member_count from segment_version where scope_id = $1',
      [scope.scopeId],
    )
    assert.equal(row?.member_count, 1n)
  })

  test('of more customers in a slice than are looked at together each one is, and all are told in the order of their events', async () => {
    const scope = await lane.scope()
    await lane.define(scope, twice)
    await lane.define(scope, paying, 'P')
    await lane.settle(scope)
    const count = 2 * segmentPartCustomers + 3
    const pays = { $set: { plan: 'pro' } }
    const each = Array.from({ length: count }, (_, n) => ({ distinctId: `u${n}` }))
    await lane.send(scope, [...each, ...each.map((one, n) => (n % 3 === 0 ? { ...one, properties: pays } : one))])
    const counts = await pool.query(
      'select member_count::int as n from segment_version where scope_id = $1 order by id',
      [scope.scopeId],
    )
    assert.deepEqual(counts, [{ n: count }, { n: Math.ceil(count / 3) }])
    const positions = heard.filter(({ scopeId }) => scopeId === scope.scopeId).map(({ pos }) => Number(pos))
    assert.equal(positions.length, count + Math.ceil(count / 3))
    assert.deepEqual(
      positions,
      positions.toSorted((a, b) => a - b),
    )
  })

  test('imported events count too, and say so', async () => {
    const scope = await lane.scope()
    const segment = await lane.define(scope, { performed: { event: 'e' } })
    await lane.settle(scope)
    await lane.send(scope, [{ distinctId: 'u', live: false, at: clock.at - 86_400_000 }])
    assert.deepEqual(await memberships(scope, 'u'), [segment])
    assert.deepEqual(told(scope), ['entered historical'])
  })

  test('a directive moves its customer in the same transaction', async () => {
    const scope = await lane.scope()
    const segment = await lane.define(scope, { all: [paying, { not: { performed: { event: 'gone' } } }] })
    await lane.settle(scope)
    await lane.send(scope, [{ distinctId: 'u', more: { $set: { plan: 'pro' } } }])
    assert.deepEqual(await memberships(scope, 'u'), [segment])
    await lane.send(scope, [
      { distinctId: 'u', more: { $unset: ['plan'] } },
      { distinctId: 'u', more: { $set: { plan: 'pro' } } },
    ])
    assert.deepEqual(told(scope), ['entered event'], 'what a slice takes and gives back is no change')
    await lane.send(scope, [{ distinctId: 'u', event: 'gone' }])
    assert.deepEqual(told(scope), ['entered event', 'left event'])
  })

  test('whoever is seen first is a member of what holds on nothing', async () => {
    const scope = await lane.scope()
    const segment = await lane.define(scope, { not: { performed: { event: 'e', within: { value: 7, unit: 'day' } } } })
    await lane.settle(scope)
    await lane.send(scope, [{ distinctId: 'u', event: 'other' }])
    assert.deepEqual(await memberships(scope, 'u'), [segment])
    await lane.send(scope, [{ distinctId: 'u' }])
    assert.deepEqual(await memberships(scope, 'u'), [])
  })

  test('the newest statement about a Feature counts, and its edges ring', async () => {
    const scope = await lane.scope()
    const segment = await lane.define(scope, { feature: { id: 'pro', is: 'active' } })
    await lane.settle(scope)
    const says = (version: string, from: number, until: number | null, trust?: 'server') => ({
      ...{ distinctId: 'u', event: '$feature_access_changed', ...(trust && { trust }) },
      properties: { feature: 'pro', version, intervals: [[from, until]] },
    })
    await lane.send(scope, [says('9', 0, null)])
    assert.deepEqual(await memberships(scope, 'u'), [], 'a device cannot say so')
    await lane.send(scope, [says('10', clock.at + 1000, clock.at + 5000, 'server'), says('9', 0, null, 'server')])
    assert.deepEqual(await memberships(scope, 'u'), [])
    clock.at += 1000
    await lane.settle(scope)
    assert.deepEqual(await memberships(scope, 'u'), [segment])
    clock.at += 4000
    await lane.settle(scope)
    assert.deepEqual(told(scope), ['entered timer', 'left timer'])
  })
})

describe('time', () => {
  test('a window ends by a timer, not before it is over and at most one bucket later', async () => {
    const scope = await lane.scope()
    await lane.define(scope, twice)
    await lane.settle(scope)
    await lane.send(scope, [{ distinctId: 'u' }, { distinctId: 'u' }])
    const since = clock.at
    clock.at = since + 3600_000
    await lane.settle(scope)
    assert.deepEqual(told(scope), ['entered event'])
    clock.at = since + 3600_000 + 60_000
    await lane.settle(scope)
    assert.deepEqual(told(scope), ['entered event', 'left timer'])
  })
})

describe('definitions', () => {
  test('a new one knows what was before, a changed one serves when it knows everybody', async () => {
    const scope = await lane.scope()
    await lane.send(
      scope,
      Array.from({ length: 300 }, (_, i) => ({ distinctId: `u${i}`, event: i % 2 ? 'odd' : 'even' })),
    )
    const segment = await lane.define(scope, { performed: { event: 'odd' } })
    await lane.settle(scope)
    assert.equal(told(scope).filter((edge) => edge === 'entered backfill').length, 150)
    assert.deepEqual(await memberships(scope, 'u1'), [segment])
    const { updateSegment } = await import('../../src/customers/index.ts')
    const definition = {
      version: 1,
      where: { any: [{ performed: { event: 'even' } }, { performed: { event: 'both' } }] },
    }
    await pool.transaction((tx) => updateSegment(tx, [scope], segment, { definition, keptDays: 400 }))
    await lane.send(scope, [
      { distinctId: 'u1', event: 'both' },
      { distinctId: 'new', event: 'even' },
    ])
    assert.deepEqual(await memberships(scope, 'u1'), [segment], 'the one before serves')
    assert.deepEqual(await memberships(scope, 'u0'), [])
    await lane.settle(scope)
    assert.deepEqual(await memberships(scope, 'u1'), [segment])
    assert.deepEqual(await memberships(scope, 'u0'), [segment])
    assert.deepEqual(await memberships(scope, 'new'), [segment])
    const edges = told(scope).slice(150)
    assert.equal(edges.filter((edge) => edge === 'left definition').length, 149)
    assert.equal(edges.filter((edge) => edge === 'entered definition').length, 151)
    assert.equal(edges.length, 300)
    assert.deepEqual((await auditSegments(pool, scope, { now: clock.at, customers: 1000, keptDays: 400 }))?.wrong, [])
  })
})

describe('what comes from elsewhere', () => {
  test('a merge adds up what both did, and tells of the survivor', async () => {
    const scope = await lane.scope()
    const segment = await lane.define(scope, twice)
    await lane.settle(scope)
    await lane.send(scope, [{ distinctId: 'anon' }])
    await lane.send(scope, [{ distinctId: 'ida' }])
    await lane.send(scope, [{ distinctId: 'ida', event: '$identify', more: { $anon_distinct_id: 'anon' } }])
    assert.deepEqual(await memberships(scope, 'ida'), [segment])
    assert.deepEqual(told(scope), ['entered merge'])
    assert.deepEqual((await auditSegments(pool, scope, { now: clock.at, customers: 100, keptDays: 400 }))?.wrong, [])
  })

  test('an edit through the Workspace API moves its customer', async () => {
    const scope = await lane.scope()
    const segment = await lane.define(scope, paying)
    await lane.settle(scope)
    await lane.send(scope, [{ distinctId: 'u' }])
    const { id } = await lane.customer(scope, 'u')
    await pool.transaction((tx) => patchProperties(tx, scope, id, { set: { plan: 'pro' } }, clock.at))
    await lane.settle(scope)
    assert.deepEqual(await memberships(scope, 'u'), [segment])
  })

  test('the audit finds what was damaged, and puts it right', async () => {
    const scope = await lane.scope()
    const segment = await lane.define(scope, { performed: { event: 'e' } })
    await lane.settle(scope)
    await lane.send(scope, [{ distinctId: 'u' }, { distinctId: 'v' }])
    const { id } = await lane.customer(scope, 'u')
    await pool.query('delete from segment_customer where scope_id = $1 and customer_id = $2', [scope.scopeId, id])
    const audit = () => auditSegments(pool, scope, { now: clock.at, customers: 100, keptDays: 400 })
    assert.deepEqual(await audit(), { checked: 2, wrong: [id] })
    assert.deepEqual(await audit(), { checked: 2, wrong: [] })
    assert.deepEqual(await memberships(scope, 'u'), [segment])
  })
})
