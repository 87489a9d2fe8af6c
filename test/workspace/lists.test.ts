import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { aDraft } from '../harness/a-draft.ts'
import { type Api, assertRefused, startApi } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())
const ws = await api.workspace()

/** Makes five of each kind; gives their ids in the order they were made. */
async function five(make: (i: number) => Promise<string>): Promise<string[]> {
  const ids: string[] = []
  for (let i = 0; i < 5; i++) ids.push(await make(i))
  return ids
}

const { body: app } = await ws.post('/apps', { platform: 'ios', name: 'Phone' })
const { body: customer } = await ws.post('/customers', { distinct_id: 'list-owner' })
await ws.post('/features', { key: 'listed', name: 'Listed', type: 'metered' })

const lists: Record<string, () => Promise<string[]>> = {
  '/projects': () => five(async (i) => (await other.post('/projects', { name: `P${i}` })).body.id),
  '/apps': () =>
    five(
      async (i) => (await other.post('/apps', { project_id: other.projectId, platform: 'web', name: `A${i}` })).body.id,
    ),
  [`/apps/${app.id}/publishable_keys`]: () =>
    five(async () => (await ws.post(`/apps/${app.id}/publishable_keys`)).body.id),
  '/features': () =>
    five(async (i) => (await third.post('/features', { key: `f${i}`, name: 'F', type: 'boolean' })).body.id),
  '/products': () =>
    five(
      async (i) => (await third.post('/products', { key: `p${i}`, name: 'P', type: 'one_time', grants: [] })).body.id,
    ),
  '/signing_keys': () => five(async () => (await third.post('/signing_keys', {})).body.id),
  '/experiences': () => five(async (i) => (await third.post('/experiences', { key: `e${i}`, name: 'E' })).body.id),
  '/publications': () => five(published),
  '/customers': () => five(async (i) => (await third.post('/customers', { distinct_id: `c${i}` })).body.id),
  [`/customers/${customer.id}/grants`]: () =>
    five(async () => (await ws.post(`/customers/${customer.id}/grants`, { feature: 'listed', allowance: 1 })).body.id),
}
const other = await api.workspace()
const third = await api.workspace()
const fourth = await api.workspace()

/** Publishes in a workspace that has nothing else. */
async function published(i: number): Promise<string> {
  if (i === 0) {
    await fourth.post('/apps', { project_id: fourth.projectId, platform: 'ios', name: 'A' })
    await fourth.post(`/signing_keys/${(await fourth.post('/signing_keys', {})).body.id}/activate`, {})
    await fourth.post('/experiences', { key: 'e', name: 'E' })
    await fourth.call('PUT', '/experiences/e/draft', { body: aDraft(), headers: { 'if-match': '0' } })
  }
  await fourth.post('/experiences/e/versions', {})
  return (await fourth.get('/publications?limit=1')).body.data[0].id
}

const callers: Record<string, typeof ws> = {
  '/projects': other,
  '/apps': other,
  '/features': third,
  '/products': third,
  '/customers': third,
  '/signing_keys': third,
  '/experiences': third,
  '/publications': fourth,
}

for (const [path, make] of Object.entries(lists)) {
  const name = path.replace(/_[0-9a-z]{24}|_[0-9a-f-]{36}/, '_…')
  describe(`GET ${name}`, () => {
    test('walks from the newest to the oldest, page by page, each object once', async () => {
      const who = callers[path] ?? ws
      const before: string[] = (await who.get(`${path}?limit=100`)).body.data.map(({ id }: { id: string }) => id)
      const wanted = [...(await make()).toReversed(), ...before]
      const seen: string[] = []
      let cursor: string | null = null
      do {
        const query: string = cursor === null ? '' : `&cursor=${cursor}`
        const { status, body } = await who.get(`${path}?limit=2${query}`)
        assert.equal(status, 200)
        assert.equal(body.object, 'list')
        assert.equal(body.has_more, body.next_cursor !== null)
        seen.push(...body.data.map(({ id }: { id: string }) => id))
        cursor = body.next_cursor
      } while (cursor !== null)
      assert.deepEqual(seen, wanted)

      const exact = await who.get(`${path}?limit=${Math.min(wanted.length, 100)}`)
      assert.equal(exact.body.has_more, false)
      assert.equal(exact.body.next_cursor, null)
    })

    test('takes limits from 1 to 100 and cursors of its own only', async () => {
      const who = callers[path] ?? ws
      for (const limit of ['1', '100']) assert.equal((await who.get(`${path}?limit=${limit}`)).status, 200)
      for (const limit of ['0', '101', '-1', '1.5', 'ten', '', '01']) {
        assertRefused(await who.get(`${path}?limit=${limit}`), 400, 'invalid_request', 'limit')
      }
      const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
      const cursors = ['!', 'abc', encoded(7), encoded(null), encoded(['a']), encoded("x' or 1"), encoded('\0')]
      for (const cursor of cursors) {
        assertRefused(await who.get(`${path}?cursor=${cursor}`), 400, 'invalid_request', 'cursor')
      }
    })
  })
}

test('a page has 20 objects when no limit is named', async () => {
  const many = await api.workspace()
  for (let i = 0; i < 21; i++) await many.post('/features', { key: `f${i}`, name: 'F', type: 'boolean' })
  const { body } = await many.get('/features')
  assert.equal(body.data.length, 20)
  assert.equal(body.has_more, true)
})
