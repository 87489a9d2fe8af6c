import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { journeyTriesMax } from '../../src/kernel/limits.ts'
import { eventually } from '../app/project.ts'
import { startService } from '../harness/service.ts'
import { openStage, serverDraft } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

test('where nothing was published nothing is handed to journeys', async () => {
  const stage = await openStage(service)
  await stage.send(randomUUID(), '$journey_leg_started', { journey_id: 'none' })
  await stage.quiet()
  assert.deepEqual(await stage.dispositions(), {})
})

test('what journeys cannot be told stops nobody else, and makes way after its tries', async () => {
  const stage = await openStage(service)
  await stage.publish(serverDraft({ type: 'event', eventName: 'ordered' }))
  const scopeId = await stage.project.scopeId()
  const [stuck, other] = [randomUUID(), randomUUID()]
  const customer = (await stage.project.customer(stuck)).slice('cus_'.length)
  await service.pool.query(
    `insert into journey_inbox (scope_id, customer_id, pos, n, kind, received_at_ms, body) values ($1, $2, 0, 0, 'event', 0, 'no JSON')`,
    [scopeId, customer],
  )
  await stage.send(stuck, 'ordered')
  await stage.send(other, 'ordered')
  await eventually(async () => (await stage.journeysOf(other)).length === 1)
  assert.deepEqual(await stage.journeysOf(stuck), [])
  const attempts = await eventually(async () => {
    const [row] = await service.pool.query<{ attempts: number }>(
      'select attempts from journey_inbox where scope_id = $1 and pos = 0',
      [scopeId],
    )
    return row && row.attempts > 0 && row.attempts
  })
  assert.ok(attempts < journeyTriesMax)
  await service.pool.query('update journey_inbox set attempts = $2, due_at_ms = 0 where scope_id = $1 and pos = 0', [
    scopeId,
    journeyTriesMax - 1,
  ])
  await eventually(async () => (await stage.journeysOf(stuck)).length === 1)
  const [aside] = await service.pool.query<{ source: string; body: string }>(
    'select source, body from journey_quarantine where scope_id = $1',
    [scopeId],
  )
  assert.deepEqual([aside?.source, JSON.parse(aside?.body ?? '{}').body], ['inbox', 'no JSON'])
  // It was told of: an error of the lane worker's log, not of this process.
})
