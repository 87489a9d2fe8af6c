import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { hourMs, step } from '../../src/journeys/engine/testing/a-plan.ts'
import { selectGauges } from '../../src/journeys/store/quarantine-store.ts'
import { openJourneys } from './world.ts'

const world = await openJourneys()
after(() => world[Symbol.asyncDispose]())
const { pool } = world

test('gauges tell of what waits too long, what was set aside, and what changed nothing', async () => {
  assert.deepEqual(await selectGauges(pool), {
    ...{ timerLagMs: 0, outboxLagMs: 0, outboxRows: 0, quarantined: 0, dispositions: [] },
  })
  const scope = await world.scope()
  const hook = { type: 'webhook', endpointId: 'whe_1', body: {}, timeoutMs: 1000, attempts: 1 }
  const plan = await world.plan(scope, {
    entry: 'd',
    steps: {
      d: step({ type: 'delay', durationMs: hourMs }, { next: 'h' }),
      h: step(hook, { success: null, failure: null }),
    },
  })
  const now = Date.now()
  const id = await world.start(scope, plan, await world.customer(scope), now - 2 * hourMs)
  assert.ok(Math.abs((await selectGauges(pool)).timerLagMs - hourMs) < 60_000)
  await world.fire(now - hourMs)
  await world.tell(scope, [{ journeyId: id, input: { kind: 'webhookResult', key: 'other', ok: true } }], now)
  await pool.query(
    `insert into journey_quarantine (scope_id, source, body, error, at_ms) values ($1, 'timer', '{}', 'x', 0)`,
    [scope.scopeId],
  )
  const { timerLagMs, outboxLagMs, ...gauges } = await selectGauges(pool)
  assert.equal(timerLagMs, 0)
  assert.ok(Math.abs(outboxLagMs - hourMs) < 60_000)
  assert.deepEqual(gauges, {
    ...{ outboxRows: 1, quarantined: 1, dispositions: [{ disposition: 'unknown_key', count: 1 }] },
  })
})
