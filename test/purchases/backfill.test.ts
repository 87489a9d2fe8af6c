import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { tokenBackfillSlice } from '../../src/kernel/limits.ts'
import { clientAccountToken, playAccountToken, standardAccountToken } from '../../src/purchases/account-tokens.ts'
import { anEvent, eventually, openProject } from '../app/project.ts'
import { startService } from '../harness/service.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

test('ids from before an app could sell are in the index of account tokens soon after it can, and follow its bundle id', async () => {
  const project = await openProject(service)
  const app = await project.app('ios', 'test')
  const { account_token_namespace: namespace } = await project.get(`/apps/${app.id}`)
  const ids = Array.from({ length: 2 * tokenBackfillSlice + 1 }, (_, n) => `early-${n}`)
  for (let from = 0; from < ids.length; from += 100) {
    const batch = ids.slice(from, from + 100).map((id) => anEvent(id))
    const body = gzipSync(JSON.stringify({ apiKey: app.key, batch }))
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const { status } = await fetch(`${service.url}/batch`, { method: 'POST', headers, body })
    assert.equal(status, 200)
  }
  const count = async (values: string[]) => {
    const found = await service.pool.query<{ customer_id: string }>(
      `select customer_id from account_binding where app_id = $1 and value = any($2::text[])`,
      [app.id, values],
    )
    return new Set(found.map(({ customer_id }) => customer_id)).size
  }
  await eventually(async () => {
    const known = await service.pool.query(`select from customer_alias where distinct_id like 'early-%'`)
    return known.length === ids.length
  }, 20_000)
  const standard = ids.map((id) => standardAccountToken(namespace, 'test', id))
  assert.equal(await count(standard), 0)

  const put = (on: string, body: object) => service.workspace('PUT', `/apps/${on}/store_credentials`, { body })
  assert.equal((await put(app.id, { kind: 'appstore', app_apple_id: 1234 })).status, 200)
  await eventually(async () => (await count(standard)) === ids.length, 20_000)

  const ofClients = ids.map((id) => clientAccountToken('com.example.late', 'production', id))
  assert.equal(await count(ofClients), 0)
  await project.patch(`/apps/${app.id}`, { bundle_id: 'com.example.late' })
  await eventually(async () => (await count(ofClients)) === ids.length, 20_000)
  assert.equal(await count(ids.map(playAccountToken)), 0, 'of the other store')

  await eventually(async () => {
    const left = await service.pool.query('select from account_token_backfill where due_at_ms is not null')
    return left.length === 0
  }, 20_000)
  await service.workspace('DELETE', `/apps/${app.id}/store_credentials?kind=appstore`)
  await eventually(async () => (await service.pool.query('select from account_token_backfill')).length === 0)
})
