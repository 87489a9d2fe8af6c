import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { testDatabase } from '../../../test/harness/database.ts'
import {
  commands,
  ensureMonth,
  events,
  isEvent,
  parts,
  runCommands,
  runEvents,
  type Step,
  tombstoneKey,
} from '../../../test/harness/identity-steps.ts'
import { testScope } from '../../../test/harness/lane.ts'
import fc from '../../../test/harness/random.ts'
import { somebodyWaits } from '../../../test/harness/waits.ts'
import type { Tx } from '../../db/pool.ts'
import { eraseEvents, forgetOldEvents } from '../../events/index.ts'
import { must } from '../../kernel/assert.ts'
import type { Scope } from '../../tenancy/index.ts'
import { deleteCustomer } from '../delete.ts'
import { byDistinctId } from '../read.ts'
import { resolveOrCreate } from '../resolve.ts'
import { settleChanges } from '../settle.ts'
import { type Finding, type Rebuilt, rebuildCustomers } from './rebuild.ts'

const { pool, url, ...database } = await testDatabase()
after(() => database[Symbol.asyncDispose]())

async function rebuilt(scope: Scope, { check = false } = {}): Promise<Rebuilt & { findings: Finding[] }> {
  const findings: Finding[] = []
  const onFinding = (finding: Finding) => void findings.push(finding)
  return { ...(await rebuildCustomers(scope, { url, pool, tombstoneKey, check, onFinding })), findings }
}

/** Takes the events and commands one part after the other, and lets a request create `silent` first. */
async function live(scope: Scope, steps: Step[][], silent: string[] = []): Promise<void> {
  const happened = new Map<bigint, Step>()
  for (const [i, part] of steps.entries()) {
    const born = silent[i]
    if (born !== undefined) await call(scope, born)
    await runEvents(pool, scope, { steps: part.filter(isEvent), size: 3, happened })
    const rest = part.filter((step) => !isEvent(step))
    await runCommands(pool, scope, rest, happened)
  }
}

/** As `POST /customers` does. */
async function call(scope: Scope, id: string, properties: Record<string, string> = {}): Promise<void> {
  const options = { tombstoneKey, now: Date.UTC(2025, 5, 1) + ++calls, properties }
  await pool.transaction((tx) => resolveOrCreate(tx, scope, id, options)).catch(() => {})
}
let calls = 0

async function settle(scope: Scope): Promise<void> {
  const erasers = [{ name: 'events', erase: eraseEvents }]
  const options = { erasers, now: Date.now, appendsEndMs: -1000 }
  while ((await settleChanges(pool, options, scope.scopeId - 1))?.isMore);
}

/** Everything that a rebuild may change, but versions, which rise with every mend. */
async function rows(scope: Scope): Promise<object> {
  return {
    customers: await pool.query(
      `select id, properties, props_at, identified, created_at, generation, alias_count, merged_into
       from customer where scope_id = $1 order by id`,
      [scope.scopeId],
    ),
    aliases: await pool.query(
      `select distinct_id, customer_id, identified, first_seen_at
       from customer_alias where scope_id = $1 order by distinct_id`,
      [scope.scopeId],
    ),
  }
}

test('what is made again from the history of events and commands equals what is live', async () => {
  const silent = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { maxLength: 6 })
  let compared = 0
  await fc.assert(
    fc.asyncProperty(parts, silent, fc.boolean(), async (steps, born, erased) => {
      const scope = await testScope(pool)
      await live(scope, steps, born)
      if (erased) await settle(scope)
      const before = await rows(scope)
      const result = await rebuilt(scope)
      assert.deepEqual(result.findings, [])
      assert.deepEqual([result.different, result.mended], [0, 0])
      assert.deepEqual(await rows(scope), before)
      compared += result.customers
    }),
    { numRuns: 25 },
  )
  assert.ok(compared > 0)
})

test('so does what happened over several connections at once', async () => {
  await fc.assert(
    fc.asyncProperty(events, commands, async (sent, given) => {
      const scope = await testScope(pool)
      const happened = new Map<bigint, Step>()
      const [a, b] = [sent.slice(0, 6), sent.slice(6)]
      const steps = (each: typeof sent) => runEvents(pool, scope, { steps: each, size: 3, happened })
      await steps(a)
      await Promise.all([steps(b), runCommands(pool, scope, given, happened), call(scope, 'e', { k: 'called' })])
      assert.deepEqual((await rebuilt(scope, { check: true })).findings, [])
    }),
    { numRuns: 12 },
  )
})

const story: Step[][] = [
  [
    { kind: 'event', id: 'a', edit: { set: { k: 1 }, increment: { n: 1 } } },
    { kind: 'event', id: 'b', edit: { set: { k: 2 } } },
    { kind: 'event', id: 'd', edit: { set: { k: 4 } } },
    { kind: 'event', id: 'c', other: 'b', edit: { increment: { n: 1 } } },
    { kind: 'event', id: 'a', edit: { increment: { n: 1 } } },
  ],
  [
    { kind: 'edit', id: 'a', edit: { set: { k: 'text' } } },
    { kind: 'merge', id: 'a', source: 'd', force: true },
  ],
]

const damages: Record<string, string> = {
  'a property': `update customer set properties = '{"k": "wrong"}' where scope_id = $1`,
  'the time of a property': `update customer set props_at = '{}' where scope_id = $1`,
  'a flag': 'update customer set identified = not identified where scope_id = $1 and merged_into is null',
  'a count': 'update customer set alias_count = alias_count + 1 where scope_id = $1 and merged_into is null',
  'a time': `update customer set created_at = created_at + interval '1 hour' where scope_id = $1`,
  'whom an id names': `update customer_alias set customer_id = (
      select customer_id from customer_alias where scope_id = $1 and distinct_id = 'c'
    ) where scope_id = $1 and distinct_id = 'a'`,
  'an id': `delete from customer_alias where scope_id = $1 and distinct_id = 'b'`,
  'a customer': `delete from customer where scope_id = $1 and merged_into is null`,
}

for (const [what, damage] of Object.entries(damages)) {
  test(`a rebuild mends ${what}; a check finds it and changes nothing`, async () => {
    const scope = await testScope(pool)
    await live(scope, story)
    const right = await rows(scope)
    await pool.query(damage, [scope.scopeId])
    const wrong = await rows(scope)

    const checked = await rebuilt(scope, { check: true })
    assert.ok(checked.different > 0)
    assert.ok(checked.findings.every(({ outcome }) => outcome === 'left'))
    assert.deepEqual(await rows(scope), wrong)

    const mended = await rebuilt(scope)
    assert.ok(mended.mended > 0)
    assert.equal(mended.different, 0)
    assert.deepEqual(await rows(scope), right)
    assert.deepEqual((await rebuilt(scope)).findings, [])
    // The lane goes on from there.
    await live(scope, [[{ kind: 'event', id: 'a', edit: { increment: { n: 5 } } }]])
    assert.deepEqual((await rebuilt(scope)).findings, [])
  })
}

test('whose device names somebody deleted is compared like all others', async () => {
  const scope = await testScope(pool)
  await live(scope, [
    ...story,
    [{ kind: 'delete', id: 'a' }],
    [{ kind: 'event', id: 'c', other: 'a', edit: { set: { k: 3 } } }],
  ])
  const { customers, incomplete, findings } = await rebuilt(scope)
  assert.deepEqual([customers, incomplete, findings], [1, 0, []])
})

test('a slice that was decided on before a mend is decided again', async () => {
  const scope = await testScope(pool)
  await live(scope, story)
  await pool.query(damages['a property'] ?? '', [scope.scopeId])
  const versions = () =>
    pool.query<{ version: bigint }>('select version from customer where scope_id = $1 order by id', [scope.scopeId])
  const before = await versions()
  await rebuilt(scope)
  for (const [i, { version }] of (await versions()).entries()) assert.ok(version > (before[i]?.version ?? 0n))
})

test('a merge that the history does not know stays, since grants went with it; so do customers that no event tells of', async () => {
  const scope = await testScope(pool)
  await live(scope, story)
  await call(scope, 'silent')
  await pool.query(
    `update customer set merged_into = (select customer_id from customer_alias where scope_id = $1 and distinct_id = 'c')
     where scope_id = $1 and id = (select customer_id from customer_alias where scope_id = $1 and distinct_id = 'a')`,
    [scope.scopeId],
  )
  await pool.query(
    `insert into customer (scope_id, id, properties, created_at)
     values ($1, gen_random_uuid(), '{"k": 1}', now())`,
    [scope.scopeId],
  )
  const before = await rows(scope)
  const result = await rebuilt(scope)
  assert.deepEqual([result.mended, result.different, result.kept], [0, 2, 1])
  assert.deepEqual(result.findings.map(({ field, outcome }) => `${field} ${outcome}`).toSorted(), [
    'merged_into left',
    'record left',
  ])
  assert.deepEqual(await rows(scope), before)
})

test('whose events were dropped by their age is left alone, and so is whoever was joined to them', async () => {
  const own = await testDatabase()
  await using _ = own
  const scope = await testScope(own.pool)
  const oldMonth = Date.UTC(2026, 0, 15)
  await own.pool.query('update project set created_at = $2 where id = $1', [scope.projectId, new Date(oldMonth)])
  const happened = new Map<bigint, Step>()
  const send = (steps: Parameters<typeof runEvents>[2]['steps']) =>
    runEvents(own.pool, scope, { steps, size: 3, happened })
  await send([
    { kind: 'event', id: 'a', edit: { increment: { n: 7 } } },
    { kind: 'event', id: 'b', edit: {} },
  ])
  await ensureMonth(own.pool, oldMonth)
  await own.pool.query('update event set received_at = $2 where scope_id = $1', [scope.scopeId, new Date(oldMonth)])
  const { partitions } = must(await forgetOldEvents(own.pool, { eventDays: 100 }), 'nobody else is at it')
  assert.ok(partitions.includes('event_202601'))
  await own.pool.query(`update customer set created_at = $2 where scope_id = $1`, [scope.scopeId, new Date(oldMonth)])
  // Received now, and by their own time too.
  const fresh = Date.now()
  await send([
    { kind: 'event', id: 'a', edit: { increment: { n: 1 } } },
    { kind: 'event', id: 'c', other: 'b', edit: {} },
    { kind: 'event', id: 'd', edit: { set: { k: 1 } } },
  ])
  await own.pool.query(
    `update customer set created_at = $2 where scope_id = $1 and id = (select customer_id from customer_alias where scope_id = $1 and distinct_id = 'd')`,
    [scope.scopeId, new Date(fresh)],
  )
  const findings: Finding[] = []
  const options = { url: own.url, pool: own.pool, tombstoneKey, check: false }
  const result = await rebuildCustomers(scope, { ...options, onFinding: (each) => void findings.push(each) })
  assert.deepEqual([result.incomplete, result.different], [2, 0])
  assert.deepEqual(
    findings.map(({ field }) => field),
    ['created_at'],
  )
  const [a] = await own.pool.query<{ n: number }>(
    `select (properties ->> 'n')::int as n from customer where scope_id = $1 and properties ? 'n'`,
    [scope.scopeId],
  )
  assert.equal(a?.n, 8)
})

test('a rebuild beside a lane at work ends with nothing different', async () => {
  const scope = await testScope(pool)
  await live(scope, story)
  await pool.query(damages['whom an id names'] ?? '', [scope.scopeId])
  let isDone = false
  const happened = new Map<bigint, Step>()
  const traffic = (async () => {
    for (let n = 0; n < 200 && !isDone; n++)
      await runEvents(pool, scope, {
        steps: [
          { kind: 'event', id: 'a', edit: { increment: { n: 1 } } },
          { kind: 'event', id: `new ${n}`, edit: { set: { k: n % 2 } } },
        ],
        ...{ size: 2, happened },
      })
  })()
  const result = await rebuilt(scope).finally(() => {
    isDone = true
  })
  await traffic
  assert.ok(result.mended > 0)
  assert.equal(result.different, 0)
  assert.deepEqual((await rebuilt(scope)).findings, [])
})

test('whose history loses a month or a neighbour while it is read is left alone', async () => {
  const own = await testDatabase()
  await using _ = own
  const scope = await testScope(own.pool)
  const now = new Date()
  const lastMonth = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 15)
  const month = `event_${new Date(lastMonth).toISOString().slice(0, 7).replace('-', '')}`
  await ensureMonth(own.pool, lastMonth)
  await own.pool.query('update project set created_at = $2 where id = $1', [scope.projectId, new Date(lastMonth)])
  const happened = new Map<bigint, Step>()
  const send = (steps: Parameters<typeof runEvents>[2]['steps']) =>
    runEvents(own.pool, scope, { steps, size: 3, happened })
  const order = (steps: Step[]) => runCommands(own.pool, scope, steps, happened)
  const propertiesOf = async (id: string) => {
    const [row] = await own.pool.query(
      `select c.properties from customer c join customer_alias a on a.customer_id = c.id and a.scope_id = c.scope_id
       where c.scope_id = $1 and a.distinct_id = $2`,
      [scope.scopeId, id],
    )
    return row
  }
  /** Does `work` in the transaction that a rebuild waits for, which has begun by then. */
  const rebuiltBeside = async (work: (tx: Tx) => Promise<unknown>) => {
    const findings: Finding[] = []
    const options = { url: own.url, pool: own.pool, tombstoneKey, check: false }
    const rebuild = await own.pool.transaction(async (tx) => {
      await tx.query('select from lane where id = $1 for update', [scope.scopeId])
      const result = rebuildCustomers(scope, { ...options, onFinding: (each) => void findings.push(each) })
      await somebodyWaits(own.pool)
      await work(tx)
      return { result }
    })
    return { ...(await rebuild.result), findings }
  }

  // Written to the survivor before the split, these are not the source's: without the merge they would be.
  await send([
    { kind: 'event', id: 'gone', edit: {} },
    { kind: 'event', id: 'split', edit: { set: { k: 1 } } },
  ])
  await order([{ kind: 'merge', id: 'gone', source: 'split', force: true }])
  await send([{ kind: 'event', id: 'split', edit: { set: { n: 5 } } }])
  await order([{ kind: 'split', id: 'gone' }])
  const options = { erasers: [], now: Date.now, appendsEndMs: -1000 }
  while ((await settleChanges(own.pool, options, scope.scopeId - 1))?.isMore);
  const customer = must(await byDistinctId(own.pool, scope, 'gone'), 'it is there')
  const beside = await rebuiltBeside(async (tx) => {
    await deleteCustomer(tx, scope, customer.id, { tombstoneKey, participants: [] })
    await eraseEvents(tx, scope, { customerIds: [customer.id], distinctIds: ['gone'], mentions: [] })
  })
  assert.deepEqual(await propertiesOf('split'), { properties: { k: 1 } })
  assert.deepEqual([beside.mended, beside.incomplete], [0, 1], JSON.stringify(beside))

  await send([{ kind: 'event', id: 'old', edit: { increment: { n: 7 } } }])
  await own.pool.query(`update event set received_at = $2 where scope_id = $1 and distinct_id = 'old'`, [
    ...[scope.scopeId, new Date(lastMonth)],
  ])
  await own.pool.query(
    `update customer set created_at = $2
     where scope_id = $1 and id = (select customer_id from customer_alias where scope_id = $1 and distinct_id = 'old')`,
    [scope.scopeId, new Date(lastMonth)],
  )
  await send([{ kind: 'event', id: 'old', edit: { increment: { n: 1 } } }])
  const dropped = await rebuiltBeside(async (tx) => {
    await tx.query(`alter table event detach partition ${month}`)
    await tx.query(`drop table ${month}`)
  })
  assert.deepEqual(await propertiesOf('old'), { properties: { n: 8 } })
  assert.deepEqual(dropped.mended, 0, JSON.stringify(dropped))
})
