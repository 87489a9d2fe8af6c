import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { IdentityModel } from '../../test/harness/identity-model.ts'
import {
  commands,
  events,
  type Happened,
  isEvent,
  parts,
  runCommands,
  runEvents,
  type Step,
} from '../../test/harness/identity-steps.ts'
import { testScope } from '../../test/harness/lane.ts'
import fc from '../../test/harness/random.ts'
import type { Scope } from '../tenancy/index.ts'
import { byDistinctId } from './read.ts'

const { pool, ...database } = await testDatabase()
after(() => database[Symbol.asyncDispose]())

test('events, identifies, edits, merges, splits and deletions from several connections equal the model in the order of the lane', async () => {
  await fc.assert(
    fc.asyncProperty(events, commands, commands, fc.integer({ min: 1, max: 5 }), async (sent, one, other, size) => {
      const scope = await testScope(pool)
      const happened: Happened = new Map()
      const [before, meanwhile] = [sent.slice(0, 6), sent.slice(6)]
      await runEvents(pool, scope, { steps: before, size, happened })
      await Promise.all([
        runEvents(pool, scope, { steps: meanwhile, size, happened }),
        runCommands(pool, scope, one, happened),
        runCommands(pool, scope, other, happened),
      ])
      assert.deepEqual(await shown(scope), modelOf(happened).shown())
    }),
    { numRuns: 50 },
  )
})

test('one step at a time too', async () => {
  await fc.assert(
    fc.asyncProperty(parts, async (steps) => {
      const scope = await testScope(pool)
      const happened: Happened = new Map()
      for (const part of steps) {
        await runEvents(pool, scope, { steps: part.filter(isEvent), size: 3, happened })
        await runCommands(
          pool,
          scope,
          part.filter((step) => !isEvent(step)),
          happened,
        )
      }
      assert.deepEqual(await shown(scope), modelOf(happened).shown())
    }),
    { numRuns: 40, examples: [[each]] },
  )
  assert.deepEqual([...seen.keys()].toSorted(), ['delete', 'edit', 'event', 'merge', 'split'])
})

/** One step of every kind that can be taken. */
const each: Step[][] = [
  [
    { kind: 'event', id: 'a', edit: { set: { k: 1 } } },
    { kind: 'event', id: 'b', edit: {} },
  ],
  [
    { kind: 'edit', id: 'a', edit: { set: { k: 'text' } } },
    { kind: 'merge', id: 'a', source: 'b', force: false },
    { kind: 'split', id: 'a' },
    { kind: 'delete', id: 'b' },
  ],
]

/** Kinds of steps that were taken, in both tests together. */
const seen = new Set<Step['kind']>()

function modelOf(happened: Happened): IdentityModel {
  const model = new IdentityModel()
  for (const [pos, step] of [...happened].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const at = Number(pos)
    seen.add(step.kind)
    if (step.kind === 'event') model.event(at, step)
    else if (step.kind === 'edit') model.edit(at, step.id, step.edit)
    else if (step.kind === 'merge') model.join(at, { target: step.id, source: step.source, force: step.force })
    else if (step.kind === 'split') model.split(at, step.id)
    else model.delete(step.id)
  }
  return model
}

async function shown(scope: Scope): Promise<Record<string, object>> {
  const rows = await pool.query<{ distinct_id: string }>(
    'select distinct_id from customer_alias where scope_id = $1 order by distinct_id',
    [scope.scopeId],
  )
  const entries = await Promise.all(
    rows.map(async ({ distinct_id: id }) => {
      const customer = await byDistinctId(pool, scope, id)
      assert.ok(customer)
      const properties = Object.entries(customer.properties).toSorted(([a], [b]) => (a < b ? -1 : 1))
      return [
        id,
        {
          ids: customer.distinctIds.map(({ distinctId }) => distinctId).toSorted(),
          identified: customer.identified,
          properties: Object.fromEntries(properties),
        },
      ] as const
    }),
  )
  return Object.fromEntries(entries)
}
