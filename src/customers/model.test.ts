import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import fc from 'fast-check'
import { testDatabase } from '../../test/harness/database.ts'
import { type Edit, IdentityModel } from '../../test/harness/identity-model.ts'
import { testScope } from '../../test/harness/lane.ts'
import { loggedEvent } from '../../test/harness/logged-event.ts'
import type { Tx } from '../db/pool.ts'
import { type Json, StaleSlice } from '../events/index.ts'
import { Refusal } from '../kernel/errors.ts'
import type { Scope } from '../tenancy/index.ts'
import { deleteCustomer } from './delete.ts'
import { patchProperties } from './edit.ts'
import { mergeCustomers } from './merge.ts'
import { createProjection } from './projection.ts'
import { byDistinctId, listMerges } from './read.ts'
import { splitMerge } from './split.ts'

const { pool, ...database } = await testDatabase()
after(() => database[Symbol.asyncDispose]())
const tombstoneKey = Buffer.alloc(32, 5)
const services = { tombstoneKey, participants: [] }
const projection = createProjection(services)

type Step =
  | { kind: 'event'; id: string; other?: string | undefined; edit: Edit }
  | { kind: 'edit'; id: string; edit: Edit }
  | { kind: 'merge'; id: string; source: string; force: boolean }
  | { kind: 'split' | 'delete'; id: string }

const ids = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'null')
const keys = fc.constantFrom('k', 'n', '__proto__')
const dictionary = <Value>(value: fc.Arbitrary<Value>) =>
  fc.array(fc.tuple(keys, value), { maxLength: 2 }).map((entries) => {
    const object: Record<string, Value> = Object.create(null)
    for (const [key, each] of entries) object[key] = each
    return object
  })
const edits: fc.Arbitrary<Edit> = fc.record(
  {
    set: dictionary(fc.constantFrom<Json>(null, 0, 1, 'text')),
    increment: dictionary(fc.constantFrom(1, -2)),
    unset: fc.array(keys, { maxLength: 1 }),
  },
  { requiredKeys: [] },
)
const events = fc.array(
  fc.record({
    kind: fc.constant('event' as const),
    id: ids,
    other: fc.option(ids, { nil: undefined }),
    edit: edits,
  }),
  { maxLength: 12 },
)
const commands: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('edit' as const), id: ids, edit: edits }) },
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('merge' as const), id: ids, source: ids, force: fc.boolean() }),
    },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('split' as const), id: ids }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete' as const), id: ids }) },
  ),
  { maxLength: 8 },
)

const parts: fc.Arbitrary<Step[][]> = fc.array(fc.oneof<fc.Arbitrary<Step[]>[]>(events, commands), { maxLength: 6 })

/** What happened, by position. */
type Happened = Map<bigint, Step>

test('events, identifies, edits, merges, splits and deletions from several connections equal the model in the order of the lane', async () => {
  await fc.assert(
    fc.asyncProperty(events, commands, commands, fc.integer({ min: 1, max: 5 }), async (sent, one, other, size) => {
      const scope = await testScope(pool)
      const happened: Happened = new Map()
      const [before, meanwhile] = [sent.slice(0, 6), sent.slice(6)]
      await lane(scope, before, size, happened)
      await Promise.all([
        lane(scope, meanwhile, size, happened),
        run(scope, one, happened),
        run(scope, other, happened),
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
        await lane(scope, part.filter(isEvent), 3, happened)
        await run(
          scope,
          part.filter((step) => !isEvent(step)),
          happened,
        )
      }
      assert.deepEqual(await shown(scope), modelOf(happened).shown())
    }),
    { numRuns: 40 },
  )
  assertSeen()
})

const seen = new Map<Step['kind'], number>()

/** Steps of every kind were taken, in both tests together. */
function assertSeen(): void {
  assert.deepEqual([...seen.keys()].toSorted(), ['delete', 'edit', 'event', 'merge', 'split'])
}

function isEvent(step: Step): step is EventStep {
  return step.kind === 'event'
}

function modelOf(happened: Happened): IdentityModel {
  const model = new IdentityModel()
  for (const [pos, step] of [...happened].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const at = Number(pos)
    seen.set(step.kind, (seen.get(step.kind) ?? 0) + 1)
    if (step.kind === 'event') model.event(at, step)
    else if (step.kind === 'edit') model.edit(at, step.id, step.edit)
    else if (step.kind === 'merge') model.join(at, { target: step.id, source: step.source, force: step.force })
    else if (step.kind === 'split') model.split(at, step.id)
    else model.delete(step.id)
  }
  return model
}

/** Instants that rise with every use: what is written twice is then written at two times. */
let clock = Date.UTC(2026, 0, 1)
const now = () => ++clock

type EventStep = Extract<Step, { kind: 'event' }>

/** As the lane runs slices: load, decide, take positions, write; once more when something changed meanwhile. */
async function lane(scope: Scope, steps: EventStep[], size: number, happened: Happened): Promise<void> {
  for (let from = 0; from < steps.length; ) {
    const slice = steps.slice(from, from + size)
    const logged = slice.map(({ id, other, edit }) =>
      loggedEvent(
        id,
        {
          event: other === undefined ? 'opened' : '$identify',
          ...(other === undefined ? {} : { $anon_distinct_id: other }),
          properties: directives(edit),
        },
        { at: now() },
      ),
    )
    const decision = projection.decide(scope, await projection.load(pool, scope, logged), logged)
    const done = await pool
      .transaction(async (tx) => {
        const applied = decision.outcomes.map(({ kind }) => kind === 'applied')
        const count = applied.filter(Boolean).length
        const [row] = await tx.query<{ pos: bigint }>('update lane set pos = pos + $2 where id = $1 returning pos', [
          ...[scope.scopeId, count],
        ])
        let pos = (row?.pos ?? 0n) - BigInt(count)
        const positions = applied.map((isApplied) => (isApplied ? ++pos : pos))
        await projection.write(tx, scope, decision, positions)
        return applied.flatMap((isApplied, i) => (isApplied ? [[positions[i], slice[i]] as const] : []))
      })
      .catch((error: unknown) => {
        if (error instanceof StaleSlice) return null
        throw error
      })
    if (done === null) continue
    for (const [pos, step] of done) if (pos !== undefined && step) happened.set(pos, step)
    from += size
  }
}

function directives({ set, increment, unset }: Edit): { [key: string]: Json } {
  return { ...(set && { $set: set }), ...(increment && { $increment: increment }), ...(unset && { $unset: unset }) }
}

/** One connection that gives commands; what is refused did not happen. */
async function run(scope: Scope, steps: Step[], happened: Happened): Promise<void> {
  for (const step of steps) {
    const pos = await pool
      .transaction(async (tx) => {
        if (!(await command(tx, scope, step))) return null
        const [row] = await tx.query<{ pos: bigint }>('select pos from lane where id = $1', [scope.scopeId])
        return row?.pos ?? null
      })
      .catch((error: unknown) => {
        if (error instanceof Refusal) return null
        throw error
      })
    if (pos !== null) happened.set(pos, step)
  }
}

/** False when there is nothing to do. */
async function command(tx: Tx, scope: Scope, step: Step): Promise<boolean> {
  // Held from here on: what is looked up stays so.
  await tx.query('select from lane where id = $1 for update', [scope.scopeId])
  const customer = await byDistinctId(tx, scope, step.id)
  if (!customer || step.kind === 'event') return false
  const { id: customerId } = customer
  switch (step.kind) {
    case 'edit': {
      const { set, increment, unset } = step.edit
      const edit = { ...(set && { set }), ...(increment && { increment }), ...(unset && { unset }) }
      await patchProperties(tx, scope, customerId, edit, now())
      return true
    }
    case 'merge': {
      const { source: sourceDistinctId, force } = step
      const merged = { customerId, sourceDistinctId, force, now: now() }
      const { merge, replay } = await mergeCustomers(tx, scope, merged, services)
      // The command names the customer by whichever id it likes; the model is told which.
      step.id = merge.targetDistinctId
      return !replay
    }
    case 'split': {
      const merges = await listMerges(tx, scope, customerId, { limit: 50, before: null })
      const standing = merges.find(({ status }) => status === 'merged')
      if (!standing) return false
      await splitMerge(tx, scope, { customerId, mergeId: standing.id }, services)
      return true
    }
    case 'delete':
      await deleteCustomer(tx, scope, customerId, services)
      return true
  }
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
