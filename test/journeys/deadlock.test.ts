import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRetryable, type Tx } from '../../src/db/pool.ts'
import { applyCommand, StaleSlice } from '../../src/events/index.ts'
import { hourMs, step, t0 } from '../../src/journeys/engine/testing/a-plan.ts'
import { createJourneyParticipant } from '../../src/journeys/index.ts'
import { heldRecheckMs } from '../../src/kernel/limits.ts'
import { openJourneys } from './world.ts'

const world = await openJourneys()
after(() => world[Symbol.asyncDispose]())
const { pool, services } = world

/** As lane and engine do it: what gives way is tried again, whole. */
async function persistently(work: () => Promise<unknown>): Promise<number> {
  for (let tries = 1; ; tries++) {
    try {
      await work()
      return tries
    } catch (error) {
      if (!(isRetryable(error) || error instanceof StaleSlice) || tries === 20) throw error
    }
  }
}

test('a merge that waits for a journey which waits for the lane: one of them gives way, and both are done once', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, {
    entry: 'd',
    steps: {
      d: step({ type: 'delay', durationMs: hourMs }, { next: 'write' }),
      write: step({ type: 'set_properties', increment: { n: 1 } }, { next: null }),
    },
  })
  const [source, target] = [await world.customer(scope), await world.customer(scope)]
  const id = await world.start(scope, plan, source, t0)
  const { merge } = createJourneyParticipant({ clock: { now: () => t0 + hourMs }, services })
  const holding = Promise.withResolvers<undefined>()
  const asLane = (tx: Tx) =>
    applyCommand(tx, scope, 'merge_customers', {}).then(async () => {
      holding.resolve(undefined)
      // Until the engine has the journey, and waits for the lane.
      await sleep(300)
      await merge(tx, scope, [{ sourceCustomerId: source, targetCustomerId: target }] as Parameters<typeof merge>[2])
    })
  const merging = persistently(() => pool.transaction(asLane))
  await holding.promise
  const firing = persistently(() => world.fire(t0 + hourMs))
  const tries = await Promise.all([merging, firing])
  assert.ok(Math.max(...tries) > 1, 'they did wait for each other')
  // A journey that somebody held is looked at again soon.
  await world.fire(t0 + hourMs + heldRecheckMs)
  const { journeys, transitions } = await world.rows(scope)
  assert.deepEqual(
    journeys.map((row) => [row.id, row.customer_id, row.status, row.rev]),
    [[id, target, 'ended', 2]],
  )
  assert.equal(transitions.length, 2)
  const [{ sum } = { sum: 0 }] = await pool.query<{ sum: number }>(
    `select coalesce(sum((properties ->> 'n')::int), 0)::int as sum from customer where scope_id = $1`,
    [scope.scopeId],
  )
  assert.equal(sum, 1)
})
