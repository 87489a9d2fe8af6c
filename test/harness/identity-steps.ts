import { deleteCustomer } from '../../src/customers/delete.ts'
import { patchProperties } from '../../src/customers/edit.ts'
import { mergeCustomers } from '../../src/customers/merge.ts'
import { createProjection } from '../../src/customers/projection.ts'
import { byDistinctId, listMerges } from '../../src/customers/read.ts'
import { splitMerge } from '../../src/customers/split.ts'
import type { Pool, Tx } from '../../src/db/pool.ts'
import { insertEvents, insertSeen } from '../../src/events/effects-store.ts'
import { eventRowOf } from '../../src/events/event-row.ts'
import { type Json, StaleSlice } from '../../src/events/index.ts'
import { ensureEventMonths, monthOf } from '../../src/events/partitions.ts'
import { must } from '../../src/kernel/assert.ts'
import { Refusal } from '../../src/kernel/errors.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import type { Edit } from './identity-model.ts'
import { loggedEvent } from './logged-event.ts'
import fc from './random.ts'

/** Random things that happen to a few people, and how they are done to the tables. */

export const tombstoneKey = Buffer.alloc(32, 5)
const services = { tombstoneKey, participants: [] }
const projection = createProjection(services)

export type Step =
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
export const events = fc.array(
  fc.record({
    kind: fc.constant('event' as const),
    id: ids,
    other: fc.option(ids, { nil: undefined }),
    edit: edits,
  }),
  { maxLength: 12 },
)
export const commands: fc.Arbitrary<Step[]> = fc.array(
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

export const parts: fc.Arbitrary<Step[][]> = fc.array(fc.oneof<fc.Arbitrary<Step[]>[]>(events, commands), {
  maxLength: 6,
})

/** What happened, by position. */
export type Happened = Map<bigint, Step>

export function isEvent(step: Step): step is EventStep {
  return step.kind === 'event'
}

/** Instants that rise with every use: what is written twice is then written at two times. */
let clock = Date.UTC(2026, 0, 1)
const now = () => ++clock

export type EventStep = Extract<Step, { kind: 'event' }>

/** Where an event that was received then can be stored. */
export function ensureMonth(pool: Pool, instant: number): Promise<void> {
  return ensureEventMonths(pool, [monthOf(instant)])
}

/** As the lane runs slices: load, decide, take positions, write; once more when something changed meanwhile. */
export async function runEvents(
  pool: Pool,
  scope: Scope,
  { steps, size, happened }: { steps: EventStep[]; size: number; happened: Happened },
): Promise<void> {
  const receivedAt = Date.now()
  await ensureMonth(pool, receivedAt)
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
        { at: now(), receivedAt },
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
        const rows = decision.outcomes.flatMap((outcome, i) =>
          outcome.kind === 'applied'
            ? [eventRowOf({ event: must(logged[i], 'sent'), bodyHash: 0n, pos: positions[i] ?? 0n }, outcome, [])]
            : [],
        )
        await insertSeen(tx, scope, rows)
        await insertEvents(tx, scope, rows, { historical: false })
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
export async function runCommands(pool: Pool, scope: Scope, steps: Step[], happened: Happened): Promise<void> {
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
