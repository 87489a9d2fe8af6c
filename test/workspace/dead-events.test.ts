import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { ensurePartitions } from '../../src/events/index.ts'
import { type Api, assertRefused, auditOf, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())
await ensurePartitions(api.pool)

/** As the lane leaves it. */
async function dead(ws: Workspace, { text = '', distinctId = 'u1' } = {}): Promise<{ id: string; uuid: string }> {
  const uuid = randomUUID()
  const payload = text || JSON.stringify({ event: 'e', distinct_id: distinctId, uuid, properties: {}, trust: 'device' })
  const [row] = await api.pool.query<{ id: bigint }>(
    `insert into dead_event (scope_id, stream, gen, xid, seq, uuid, distinct_id, app_id, received_at, payload, error, error_code)
    values ($1, 0, 1, '900', 7, $2, $3, 'app_1', '2026-11-20T12:00:00Z', $4, 'division by zero', '22012')
    returning id`,
    [ws.scopes.test.scopeId, uuid, distinctId, payload],
  )
  return { id: `dead_${row?.id}`, uuid }
}

const logged = async (uuid: string) =>
  (
    await api.pool.query<{ lane: number; stream: number }>('select lane, stream from event_log where uuid = $1', [uuid])
  ).map(({ lane, stream }) => [lane, stream])

describe('GET /v1/dead_events', () => {
  test('200: shows what was accepted and why it could not be applied, newest first', async () => {
    const ws = await api.workspace()
    const first = await dead(ws)
    const second = await dead(ws, { text: '{' })
    const { status, body } = await ws.get('/dead_events')
    assert.equal(status, 200)
    assert.deepEqual(
      body.data.map(({ id }: { id: string }) => id),
      [second.id, first.id],
    )
    const { created_at, ...shown } = body.data[1]
    assert.match(created_at, /^\d{4}-.*Z$/)
    assert.deepEqual(shown, {
      ...{ object: 'dead_event', id: first.id, uuid: first.uuid, distinct_id: 'u1', app_id: 'app_1' },
      payload: { event: 'e', distinct_id: 'u1', uuid: first.uuid, properties: {}, trust: 'device' },
      error: { code: '22012', message: 'division by zero' },
      ...{ log_position: '1.900.7', stream: 'live', received_at: '2026-11-20T12:00:00.000Z', replayed_at: null },
    })
    assert.equal(body.data[0].payload, '{')
  })

  test('200: pages meet without gaps', async () => {
    const ws = await api.workspace()
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.unshift((await dead(ws)).id)
    const seen: string[] = []
    let cursor = ''
    do {
      const { body } = await ws.get(`/dead_events?limit=2${cursor}`)
      seen.push(...body.data.map(({ id }: { id: string }) => id))
      cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
    } while (cursor !== '')
    assert.deepEqual(seen, ids)
  })

  test('200: shows nothing of another workspace or environment', async () => {
    const ws = await api.workspace()
    await dead(ws)
    assert.deepEqual((await (await api.workspace()).get('/dead_events')).body.data, [])
    assert.deepEqual((await ws.get('/dead_events', { environment: 'live' })).body.data, [])
  })

  test('400: a cursor of another list; an unknown parameter', async () => {
    const ws = await api.workspace()
    const cursor = Buffer.from('"a"').toString('base64url')
    assertRefused(await ws.get(`/dead_events?cursor=${cursor}`), 400, 'invalid_request')
    assert.equal((await ws.get('/dead_events?code=a')).status, 400)
  })
})

describe('POST /v1/dead_events/{id}/replay', () => {
  test('200: logs it again once, however often it is asked, with one audit row', async () => {
    const ws = await api.workspace()
    const { id, uuid } = await dead(ws)
    const first = await ws.post(`/dead_events/${id}/replay`)
    assert.equal(first.status, 200)
    assert.equal(first.body.id, id)
    assert.match(first.body.replayed_at, /Z$/)
    const again = await ws.post(`/dead_events/${id}/replay`)
    assert.deepEqual([again.status, again.body], [200, first.body])
    assert.deepEqual(await logged(uuid), [[ws.scopes.test.scopeId, 0]])
    const audit = await auditOf(api.pool, id)
    assert.equal(audit.length, 1)
  })

  test('410: its customer was deleted, and stays so', async () => {
    const ws = await api.workspace()
    const { id, uuid } = await dead(ws, { distinctId: 'erased' })
    await api.pool.query(
      `insert into customer_tombstone (scope_id, id_hash) values ($1, sha256($2::bytea || convert_to('erased', 'UTF8')))`,
      [ws.scopes.test.scopeId, api.tombstoneKey],
    )
    assertRefused(await ws.post(`/dead_events/${id}/replay`), 410, 'customer_deleted')
    assert.deepEqual(await logged(uuid), [])
  })

  test('404: no such event, for this workspace and environment', async () => {
    const ws = await api.workspace()
    const { id } = await dead(ws)
    const other = await api.workspace()
    assertRefused(await other.post(`/dead_events/${id}/replay`), 404, 'not_found')
    assertRefused(await ws.post(`/dead_events/${id}/replay`, undefined, { environment: 'live' }), 404, 'not_found')
    for (const none of ['dead_0', 'dead_x', 'dead_999999999999999999', id.slice(5)])
      assertRefused(await ws.post(`/dead_events/${none}/replay`), 404, 'not_found')
  })
})
