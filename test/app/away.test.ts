import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, describe, mock, test } from 'node:test'
import { startService } from '../harness/service.ts'
import type { Answer } from './answers.ts'
import { anEvent, assertRefused, clientOf, eventually, openProject, send } from './project.ts'

/** A way to the database that can be closed and opened again. */
async function gateTo(url: string) {
  const target = new URL(url)
  const folder = target.searchParams.get('host')
  const targetPort = target.searchParams.get('port') ?? (target.port || '5432')
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const database = folder?.startsWith('/')
      ? connect(`${folder}/.s.PGSQL.${targetPort}`)
      : connect(Number(targetPort), target.hostname)
    const end = () => {
      client.destroy()
      database.destroy()
    }
    for (const socket of [client, database]) {
      sockets.add(socket)
      socket.on('error', end)
      socket.on('close', end)
    }
    client.pipe(database)
    database.pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // a TCP address after listen
  target.hostname = '127.0.0.1'
  target.port = String(port)
  target.search = ''
  return {
    url: target.href,
    async close() {
      if (!server.listening) return
      server.close()
      for (const socket of sockets) socket.destroy()
      sockets.clear()
      await once(server, 'close')
    },
    async open() {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
  }
}

const service = await startService()
const gate = await gateTo(service.databaseUrl)
const node = await service.another({ ROLE: 'api', DATABASE_URL: gate.url })
after(async () => {
  await node[Symbol.asyncDispose]()
  await gate.close()
  await service[Symbol.asyncDispose]()
})
const project = await openProject(service)
const { key } = await project.app()
await project.feature('exports')
await project.grant('ada', { feature: 'exports', allowance: 100 })
await eventually(async () => (await send(node.url, 'GET', `/status?apiKey=${key}`, undefined)).status === 200)
const app = clientOf(node.url, key)

const operationId = randomUUID()
const uuid = randomUUID()
const operations: Record<string, { code: string; ask: () => Promise<Answer> }> = {
  '/profile': { code: 'service_unavailable', ask: () => app.post('/profile', { distinct_id: 'ada' }) },
  '/profile with a tag': {
    code: 'service_unavailable',
    ask: () => app.post('/profile', { distinct_id: 'ada' }, { 'if-none-match': '"x"' }),
  },
  '/event': { code: 'service_unavailable', ask: () => app.post('/event', anEvent('ada', { uuid })) },
  '/batch': { code: 'service_unavailable', ask: () => app.postGzip('/batch', { batch: [anEvent('ada', { uuid })] }) },
  '/entitled': {
    code: 'billing_unavailable',
    ask: () => app.post('/entitled', { customerId: 'ada', featureId: 'exports' }),
  },
  '/feature/consume': {
    code: 'billing_unavailable',
    ask: () => app.post('/feature/consume', { customerId: 'ada', featureId: 'exports', operationId, quantity: 3 }),
  },
}

describe('while the database is away', () => {
  for (const warm of [false, true]) {
    const when = warm ? 'after having served' : 'before anything was read'
    test(`every operation is 503 with Retry-After, ${when}`, async () => {
      await gate.close()
      for (const [operation, { code, ask }] of Object.entries(operations)) {
        for (let times = 0; times < 2; times++) {
          const answer = await ask()
          assertRefused(answer, 503, code)
          assert.ok(Number(answer.headers.get('retry-after')) >= 1, operation)
        }
      }
      const ready = await send(node.url, 'GET', '/ready', undefined)
      assert.deepEqual([ready.status, ready.body.checks[0].ok], [503, false])
      assert.equal((await send(node.url, 'GET', '/health', undefined)).status, 200)
      await gate.open()
    })

    test(`and works again when it is back, ${when}: what was refused can be sent again`, async () => {
      for (const { ask } of Object.values(operations)) {
        await eventually(async () => (await ask()).status === 200)
      }
      await eventually(async () => (await send(node.url, 'GET', '/ready', undefined)).status === 200)
      const { body } = await app.post('/entitled', { customerId: 'ada', featureId: 'exports' })
      assert.equal(body.balance, 97)
    })
  }

  test('GET /status is 503 once the configuration could not be checked for ten seconds', async () => {
    const status = () => send(node.url, 'GET', `/status?apiKey=${key}`, undefined)
    await gate.close()
    assert.equal((await status()).status, 200)
    mock.timers.enable({ apis: ['Date'], now: Date.now() + 10_000 })
    const late = await status()
    mock.timers.reset()
    assertRefused(late, 503, 'service_unavailable')
    await gate.open()
    await eventually(async () => (await status()).status === 200)
  })

  test('bad requests are still refused as such, and keys still known', async () => {
    await gate.close()
    assertRefused(await app.post('/profile', '{'), 400, 'invalid_json')
    assertRefused(await app.post('/entitled', { customerId: '', featureId: 'x' }), 400, 'invalid_request')
    assertRefused(await app.post('/event', { apiKey: 'pk_test_nobody' }), 401, 'invalid_api_key')
    assert.equal((await send(node.url, 'GET', `/event?apiKey=${key}`, undefined)).status, 200)
    await gate.open()
  })
})
