import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from '../harness/random.ts'
import { type Api, startApi, type Workspace } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())

const key = fc.constantFrom('exports', 'chat', 'credits')
const person = fc.constantFrom('ada', 'grace')

const inBern = { property: { key: 'city', op: 'eq', value: 'Bern' } }

/** What one step asks for in the test environment; most of it is also there in live, under the same names. */
const step = fc.oneof(
  fc
    .record({ key, type: fc.constantFrom('boolean', 'metered') })
    .map(({ key, type }) => ['POST', '/features', { key, name: 'T', type }] as const),
  fc
    .record({ key, name: fc.string({ minLength: 1, maxLength: 5 }) })
    .map(({ key, name }) => ['PATCH', `/features/${key}`, { name: `n${name}` }] as const),
  key.map((key) => ['POST', `/features/${key}/archive`, undefined] as const),
  key.map(
    (key) =>
      ['POST', '/products', { key, name: 'T', type: 'one_time', grants: [{ feature: key, allowance: 9 }] }] as const,
  ),
  person.map((distinct_id) => ['POST', '/customers', { distinct_id, properties: { test: true } }] as const),
  person.map(
    (id) => ['PATCH', `/customers/{${id}}`, { properties: { set: { city: 'Bern' }, increment: { n: 1 } } }] as const,
  ),
  fc
    .tuple(person, key)
    .map(([id, feature]) => ['POST', `/customers/{${id}}/grants`, { feature, allowance: 3 }] as const),
  fc.tuple(person, key).map(([id, product]) => ['POST', `/customers/{${id}}/products`, { product }] as const),
  fc
    .tuple(person, key)
    .map(([id, feature]) => ['POST', `/customers/{${id}}/entities`, { feature, entity_id: 'seat' }] as const),
  fc.constant(['POST', '/apps/{app}/publishable_keys', undefined] as const),
  fc
    .tuple(person, fc.uuid())
    .map(([distinct_id, uuid]) => ['POST', '/events', { events: [{ event: 'e', distinct_id, uuid }] }] as const),
  key.map((name) => ['POST', '/segments', { name, definition: { version: 1, where: inBern } }] as const),
  person.map((id) => ['POST', `/customers/{${id}}/merge`, { source_distinct_id: 'grace', force: true }] as const),
  person.map((id) => ['DELETE', `/customers/{${id}}`, undefined] as const),
  fc.constant(['POST', '/signing_keys', {}] as const),
  key.map((key) => ['POST', '/experiences', { key, name: 'T' }] as const),
  fc.tuple(person, key, fc.nat(5)).map(([id, feature, quantity]) => ['spend', id, { feature, quantity }] as const),
)

/** Everything the live environment says of itself. */
async function liveAnswers(ws: Workspace, appId: string): Promise<unknown[]> {
  const get = async (path: string) => (await ws.get(path, { environment: 'live' })).body
  const lists = await Promise.all(
    [
      ...['/features', '/products', '/customers', `/apps/${appId}`, `/apps/${appId}/publishable_keys`],
      ...['/segments', '/signing_keys', '/experiences', '/publications'],
    ].map(get),
  )
  // Without how fresh they are.
  const ofEvents = await Promise.all(
    ['/events', '/event_names', '/customer_changes'].map(async (path) => (await get(path)).data),
  )
  const customers: { id: string }[] = lists[2].data
  const each = customers.flatMap(({ id }) =>
    ['', '/balances', '/ledger', '/operations', '/merges', '/memberships'].map((part) => `/customers/${id}${part}`),
  )
  return [...lists, ...ofEvents, ...(await Promise.all(each.map(get)))]
}

async function furnish(ws: Workspace, environment: string): Promise<void> {
  const post = async (path: string, body: object) => (await ws.post(path, body, { environment })).body
  for (const key of ['exports', 'chat']) {
    await post('/features', { key, name: key, type: 'metered' })
    await post('/products', { key, name: key, type: 'subscription', grants: [{ feature: key, allowance: 7 }] })
  }
  const { id } = await post('/customers', { distinct_id: 'ada', properties: { city: 'Zug' } })
  await post(`/customers/${id}/products`, { product: 'exports' })
}

test('no sequence of calls in test changes an answer in live', async () => {
  const ws = await api.workspace()
  const app = (await ws.post('/apps', { platform: 'ios', name: 'A' })).body.id
  await furnish(ws, 'live')
  await furnish(ws, 'test')
  await api.spend(ws.scopes.live, { distinctId: 'ada', feature: 'exports', quantity: 2, operationId: 'same' })
  const before = await liveAnswers(ws, app)
  let done = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const ids = new Map<string, string>([['app', app]])
      for (const [method, path, body] of steps) {
        if (method === 'spend') {
          await api.spend(ws.scopes.test, { distinctId: path, ...body, operationId: 'same' }).catch(() => {})
          continue
        }
        for (const name of ['ada', 'grace']) {
          const found = await ws.get(`/customers/by_distinct_id/${name}`)
          ids.set(name, found.body.id ?? 'none')
        }
        const named = path.replace(/\{(\w+)\}/, (_, name: string) => ids.get(name) ?? 'none')
        const answer = await ws.call(method, named, { body })
        assert.ok(answer.status < 500)
        if (answer.status < 300) done++
      }
      assert.deepEqual(await liveAnswers(ws, app), before)
    }),
    { numRuns: 12, endOnFailure: true },
  )
  assert.ok(done > 20, `only ${done} calls did something`)
})
