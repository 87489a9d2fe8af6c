import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { temporaryFolder } from '../harness/server.ts'
import { startService } from '../harness/service.ts'
import { call, runTurnpike } from '../harness/turnpike.ts'
import { openStage, serverDraft } from './stage.ts'

test('5 of 1,000 parallel starts with one key over four processes exactly one is started; all name one journey', async () => {
  await using stack = new AsyncDisposableStack()
  const service = stack.use(await startService())
  const stage = await openStage(service)
  const { id } = await stage.publish(serverDraft({ type: 'api' }))
  const folder = await temporaryFolder()
  stack.defer(() => rm(folder, { recursive: true }))
  const settings = {
    DATABASE_URL: service.databaseUrl,
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    ROLE: 'api',
  }
  const processes = ['a', 'b', 'c', 'd'].map((name) =>
    stack.use(runTurnpike({ dataDir: `${folder}/${name}`, settings })),
  )
  const urls = await Promise.all(processes.map(({ url }) => url))

  const who = randomUUID()
  const headers = {
    ...{ authorization: `Bearer ${service.secretKey}`, 'x-service-env': 'test' },
    'idempotency-key': 'race',
  }
  const answers = await Promise.all(
    Array.from({ length: 1000 }, async (_, i) => {
      for (let attempt = 0; attempt < 200; attempt++) {
        const command = { app_id: stage.app.id, distinct_id: who }
        const { status, body } = await call(`${urls[i % 4]}`, `/v1/experiences/${id}/start`, command, headers)
        if (status === 202) return body
        assert.equal(status, 503, JSON.stringify(body))
        await sleep(20 + attempt)
      }
      throw new Error('no final answer')
    }),
  )
  const by = Map.groupBy(answers, ({ status }) => status)
  assert.deepEqual([by.get('started')?.length, by.get('coalesced')?.length], [1, 999])
  assert.equal(new Set(answers.map(({ journey_id }) => journey_id)).size, 1)
  const rows = await service.pool.query<{ id: string }>('select id from journey where scope_id = $1', [
    await stage.project.scopeId(),
  ])
  assert.deepEqual(rows, [{ id: answers[0]?.journey_id }])
})
