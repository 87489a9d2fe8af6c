import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { hourMs, step, t0 } from '../../src/journeys/engine/testing/a-plan.ts'
import { insertInbox, quarantine } from '../../src/journeys/intake/inbox-store.ts'
import { setAside } from '../../src/journeys/timers/set-aside.ts'
import { journeyTriesMax } from '../../src/kernel/limits.ts'
import { openJourneys } from './world.ts'

const world = await openJourneys()
after(() => world[Symbol.asyncDispose]())
const { pool, services } = world
const guide = readFileSync(new URL('../../docs/journeys.md', import.meta.url), 'utf8')
const [look = '', freeing = ''] = [...guide.matchAll(/```sql\n(.+?)```/gs)].map(([, text]) => text)
const [inputs = '', timers = ''] = freeing.split(/;\s/)

test('a timer that was set aside is found as the guide says, and goes on as it says', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, {
    entry: 'd',
    steps: { d: step({ type: 'delay', durationMs: hourMs }, { next: null }) },
  })
  const id = await world.start(scope, plan, await world.customer(scope), t0)
  const now = t0 + hourMs
  await pool.query('update journey_timer set attempts = $2 where journey_id = $1', [id, journeyTriesMax - 1])
  const key = { scopeId: scope.scopeId, journeyId: id, timer: 'step' as const }
  await setAside(pool, key, { error: new Error('it broke'), services, now })
  await world.fire(now)
  assert.equal((await world.journey(scope, id)).status, 'waiting')
  const found = await pool.query<{ source: string; journey_id: string; error: string }>(look)
  assert.deepEqual(
    found.map(({ source, journey_id, error }) => [source, journey_id, error]),
    [['timer', id, 'Error: it broke']],
  )
  for (let i = 0; i < 2; i++) await pool.query(timers)
  assert.deepEqual(await pool.query(look), [])
  await world.fire(now)
  assert.equal((await world.journey(scope, id)).status, 'ended')
})

test('an input that was set aside is told again as the guide says', async () => {
  const scope = await world.scope()
  const row = { customerId: crypto.randomUUID(), pos: 7n, n: 1, receivedAt: t0 }
  const body = { kind: 'touched' } as const
  const stored = 'select customer_id, pos, n, kind, received_at_ms, body, attempts, due_at_ms from journey_inbox'
  await pool.transaction((tx) => insertInbox(tx, scope, [{ ...row, body }]))
  const before = await pool.query(stored)
  await pool.transaction((tx) =>
    quarantine(tx, scope, { ...row, text: JSON.stringify(body), attempts: 8 }, { error: 'it broke', now: t0 }),
  )
  assert.deepEqual(await pool.query(stored), [])
  for (let i = 0; i < 2; i++) await pool.query(inputs)
  assert.deepEqual(await pool.query(stored), before)
  assert.deepEqual(await pool.query(look), [])
})
