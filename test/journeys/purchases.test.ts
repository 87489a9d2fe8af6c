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

test('a verified purchase meets exitWhenAny; a word of the device does not, but for what only a device can know', async () => {
  const exitOn = (eventName: string) =>
    stage.publish(serverDraft({ type: 'api' }, { policy: { exitWhenAny: [{ type: 'event', eventName }] } }))
  const [onBought, onSynced, onCancelled] = [
    await exitOn(bought),
    await exitOn('$purchase_synced'),
    await exitOn('$purchase_cancelled'),
  ]
  const who = randomUUID()
  const [id, synced, cancelled] = [
    await started(onBought.id, who),
    await started(onSynced.id, who),
    await started(onCancelled.id, who),
  ]
  for (const claim of [bought, '$purchase_synced', '$purchase_cancelled']) await stage.send(who, claim)
  const gone = await stage.journeyIs(cancelled, ({ status }) => status === 'ended')
  assert.deepEqual([gone.end_reason, gone.end_detail], ['exited', 'event:$purchase_cancelled'])
  await stage.quiet()
  assert.deepEqual([(await stage.journey(id)).status, (await stage.journey(synced)).status], ['armed', 'armed'])

  assert.equal((await store.bring(who, store.transaction(who))).status, 200)
  const done = await stage.journeyIs(id, ({ status }) => status === 'ended')
  assert.deepEqual([done.end_reason, done.end_detail], ['exited', `event:${bought}`])
})
