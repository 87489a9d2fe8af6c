import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { openStore } from '../app/store-world.ts'
import { server } from '../harness/a-draft.ts'
import { startService } from '../harness/service.ts'
import { openStage, serverDraft } from './stage.ts'

const service = await startService()
const store = await openStore(service)
after(async () => {
  await store[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
const stage = await openStage(service, { of: store })
const bought = '$purchase_completed'

const started = async (id: string, who: string): Promise<string> => {
  const body = { app_id: store.app.id, distinct_id: who }
  const { status, body: answer } = await stage.call('POST', `/experiences/${id}/start`, { body })
  assert.deepEqual([status, answer.status], [202, 'started'])
  return answer.journey_id
}

test('a verified purchase converts, and ends a wait with trust: server in front of a grant; a word of the device does neither', async () => {
  const draft = serverDraft(
    { type: 'api' },
    {
      policy: {
        goal: {
          criterion: { type: 'event', eventName: bought },
          attribution: { basis: 'entry', window: { amount: 1, unit: 'day' } },
        },
      },
    },
  )
  const wait = { type: 'wait_for_event', eventName: bought, trust: 'server', timeoutMs: 86_400_000 }
  draft.graph.entry = 'paid'
  draft.graph.steps = [
    server('paid', wait, { matched: 'bonus', timeout: null }),
    server('bonus', { type: 'grant_feature', featureId: 'exports', amount: 7 }, { next: null }),
  ]
  const of = await stage.publish(draft)
  const who = randomUUID()
  const id = await started(of.id, who)
  await stage.send(who, bought, { product_id: 'com.example.pro' })
  await stage.quiet()
  const waiting = await stage.journey(id)
  assert.deepEqual([waiting.status, waiting.step_id, waiting.conversion.conversion], ['waiting', 'paid', null])

  assert.equal((await store.bring(who, store.transaction(who))).status, 200)
  const done = await stage.journeyIs(id, ({ status }) => status === 'ended')
  assert.deepEqual([done.end_reason, done.trust], ['completed', 'server'])
  const [fact] = await service.pool.query<{ uuid: string; ts: Date }>(
    `select uuid, ts
     from event
     where scope_id = $1
       and event = $2
     order by pos desc
     limit 1`,
    [await stage.project.scopeId(), bought],
  )
  assert.deepEqual(done.conversion.conversion, { event_id: fact?.uuid, occurred_at: fact?.ts.toISOString() })
  assert.deepEqual(
    (await stage.transitions(id)).toReversed().map(({ to }) => to),
    ['waiting:paid', 'waiting:paid', 'ended:completed'],
  )
  assert.equal((await store.entitled(who, 'exports')).balance, 7)
})
